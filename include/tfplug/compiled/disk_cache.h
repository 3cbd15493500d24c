// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_DISK_CACHE_H_
#define TFPLUG_COMPILED_DISK_CACHE_H_

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

#pragma GCC visibility push(hidden)

// Compiled programs in files, for later processes. A file has the name of the
// target, the source, and the binary: it is used only if the first two are
// equal and the last one is intact, so that no version numbers are needed.
// Processes may write at the same time, because files are renamed when they are
// complete. All failures are ignored: a program is then compiled.
namespace tfplug::compiled_internal {

// Returns the folder of the cache: $TFPLUG_CACHE_DIR (empty: no cache), or
// tfplug in $XDG_CACHE_HOME or ~/.cache.
inline std::string DiskCacheFolder() {
  if (const char* const folder = getenv("TFPLUG_CACHE_DIR")) return folder;
  const char* const caches = getenv("XDG_CACHE_HOME");
  if (caches != nullptr && caches[0] == '/') {
    return absl::StrCat(caches, "/tfplug");
  }
  const char* const home = getenv("HOME");
  return home != nullptr && home[0] == '/'
             ? absl::StrCat(home, "/.cache/tfplug")
             : "";
}

inline uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

class CachedBinary {
 public:
  CachedBinary(const std::string& target, const std::string& source)
      : head_(absl::StrCat("tfplug 1\n", target, "\n", source)) {
    const std::string folder = DiskCacheFolder();
    if (target.empty() || folder.empty()) return;
    folder_ = folder;
    path_ = absl::StrCat(folder, "/",
                         absl::Hex(HashOf(head_), absl::kZeroPad16), ".kernel");
  }

  // Returns the binary, or "" if there is none.
  std::string Read() const {
    if (path_.empty()) return "";
    std::ifstream file(path_, std::ios::binary);
    std::string all{std::istreambuf_iterator<char>(file), {}};
    const size_t begin = head_.size() + sizeof(uint64_t);
    if (all.size() <= begin || all.compare(0, head_.size(), head_) != 0) {
      return "";
    }
    uint64_t hash;
    std::memcpy(&hash, all.data() + head_.size(), sizeof(hash));
    all.erase(0, begin);
    return hash == HashOf(all) ? all : "";
  }

  void Write(const std::string& binary) const {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    std::string temporary = path_ + ".XXXXXX";
    const int descriptor = mkstemp(&temporary[0]);
    if (descriptor < 0) return;
    close(descriptor);
    const uint64_t hash = HashOf(binary);
    std::ofstream file(temporary, std::ios::binary);
    file << head_;
    file.write(reinterpret_cast<const char*>(&hash), sizeof(hash));
    file << binary;
    file.close();
    if (file.fail() || std::rename(temporary.c_str(), path_.c_str()) != 0) {
      std::filesystem::remove(temporary, ignored);
    }
  }

 private:
  const std::string head_;
  std::string folder_, path_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_DISK_CACHE_H_
