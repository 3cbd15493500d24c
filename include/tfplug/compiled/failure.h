// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_FAILURE_H_
#define TFPLUG_COMPILED_FAILURE_H_

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// Returns the error of a source that does not compile: the compiler's output
// and the path of a file with the source. TensorFlow adds the op and the node.
[[gnu::cold, gnu::noinline]] inline absl::Status CompilationFailed(
    const absl::Status& status, const std::string& source, const char* entry) {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp",
                                  "/tfplug_", entry, "_XXXXXX");
  const int file = mkstemp(&path[0]);
  const bool is_written =
      file >= 0 && write(file, source.data(), source.size()) ==
                       static_cast<ssize_t>(source.size());
  if (file >= 0) close(file);
  return absl::Status(
      status.code(),
      absl::StrCat("the device's compiler rejects a kernel that tfplug "
                   "generated (",
                   entry, "). The source is in ",
                   is_written ? path : "no file, because none can be written",
                   "; report it with this output:\n", status.message()));
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_FAILURE_H_
