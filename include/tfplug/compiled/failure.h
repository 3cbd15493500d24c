// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_FAILURE_H_
#define TFPLUG_COMPILED_FAILURE_H_

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/compiled/sha256.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// Returns the path of a temporary file with the source, "" if it cannot be
// written. A process writes each source once, unless the file is gone.
inline std::string FileWithSource(const std::string& source,
                                  const char* entry) {
  static auto* const mutex = new std::mutex;
  static auto* const paths = new std::map<std::string, std::string>;
  Sha256 hash;
  hash.Add(source);
  const std::lock_guard<std::mutex> lock(*mutex);
  std::string& known = (*paths)[hash.Finish()];
  if (!known.empty() && access(known.c_str(), R_OK) == 0) return known;
  const char* const folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp",
                                  "/tfplug_", entry, "_XXXXXX");
  const int file = mkstemp(&path[0]);
  const bool is_written =
      file >= 0 && write(file, source.data(), source.size()) ==
                       static_cast<ssize_t>(source.size());
  if (file >= 0) close(file);
  return known = is_written ? path : "";
}

// Returns the error of a source that does not compile: the compiler's output
// and the path of a file with the source. TensorFlow adds the op and the node.
[[gnu::cold, gnu::noinline]] inline absl::Status CompilationFailed(
    const absl::Status& status, const std::string& source, const char* entry) {
  const std::string path = FileWithSource(source, entry);
  return absl::Status(
      status.code(),
      absl::StrCat("the device's compiler rejects a kernel that tfplug "
                   "generated (",
                   entry, "). The source is in ",
                   path.empty() ? "no file, because none can be written" : path,
                   ". If the plug-in has a language of its own, a prelude or "
                   "template of it may lack a term of tfplug/compiled/"
                   "language.h; otherwise report it with this output:\n",
                   status.message()));
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_FAILURE_H_
