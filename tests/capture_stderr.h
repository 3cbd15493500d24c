// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_CAPTURE_STDERR_H_
#define TFPLUG_TESTS_CAPTURE_STDERR_H_

#include <unistd.h>

#include <cstdio>
#include <string>

namespace tfplug {

// Returns the text that `function` writes to standard error.
template <class Function>
std::string CaptureStderr(Function function) {
  std::fflush(stderr);
  std::FILE* const file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  function();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_CAPTURE_STDERR_H_
