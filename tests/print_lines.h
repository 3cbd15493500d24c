// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PRINT_LINES_H_
#define TFPLUG_TESTS_PRINT_LINES_H_

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace doctest {

template <>
struct StringMaker<std::vector<std::string>> {
  static String convert(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += "\n    " + line;
    return text.c_str();
  }
};

}  // namespace doctest

#endif  // TFPLUG_TESTS_PRINT_LINES_H_
