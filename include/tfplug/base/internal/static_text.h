// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_STATIC_TEXT_H_
#define TFPLUG_BASE_INTERNAL_STATIC_TEXT_H_

#include <cstddef>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// A copy of a text, terminated by a NUL byte.
//
// Names in an author's class, such as kType, are copied to a hidden variable at
// compile time. Their own addresses are not used: if two plug-ins are compiled
// without -fvisibility=hidden and have a class of the same name, the dynamic
// linker merges its static members, and the second plug-in would register the
// first one's names.
template <size_t size>
struct StaticText {
  char text[size + 1] = {};
};

template <size_t size>
constexpr StaticText<size> CopyText(std::string_view from) {
  StaticText<size> copy;
  for (size_t i = 0; i < size; ++i) copy.text[i] = from[i];
  return copy;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_STATIC_TEXT_H_
