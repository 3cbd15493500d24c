// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_DISK_CACHE_H_
#define TFPLUG_COMPILED_DISK_CACHE_H_

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/compiled/program.h"
#include "tfplug/compiled/sha256.h"

#pragma GCC visibility push(hidden)

// Compiled programs in files, for later processes. The name of a file is the
// hash of everything that the binary depends on, and the file begins with a
// hash of that and the binary. A file is input: it is read only if it is a
// regular one, of this user, that nobody else can write, in a folder of which
// the same is true. Processes may write at the same time, because files are
// renamed when they are complete. All failures are ignored: a program is then
// compiled.
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

// A file descriptor, closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (is_open()) close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Logs, once, that a folder is not used.
[[gnu::cold, gnu::noinline]] inline void RefuseCacheFolder(
    const std::string& folder, const char* reason) {
  static std::atomic<bool> is_logged{false};
  if (is_logged.exchange(true)) return;
  internal::LogWarning(
      "TFPLUG_CACHE_DIR",
      absl::StrCat("compiled programs are not cached, because \"",
                   absl::CEscape(folder), "\" ", reason)
          .c_str());
}

// The files of one folder.
class DiskCache {
 public:
  static constexpr int64_t kMostBytes = 256 << 20;  // of all files
  static constexpr int64_t kMostBytesOfFile = 64 << 20;

  explicit DiskCache(std::string folder, int64_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns the contents of a file, or "" if it is absent or cannot be trusted.
  std::string Read(const std::string& name) const {
    const Descriptor folder(OpenFolder());
    if (!folder.is_open()) return "";
    // This does not wait for a writer of a FIFO.
    const Descriptor file(
        openat(folder.number(), name.c_str(),
               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info;
    if (!file.is_open() || fstat(file.number(), &info) != 0 ||
        !S_ISREG(info.st_mode) || !IsOnlyOurs(info) || info.st_size <= 0 ||
        info.st_size > kMostBytesOfFile) {
      return "";
    }
    std::string contents(static_cast<size_t>(info.st_size), '\0');
    size_t done = 0;
    while (done < contents.size()) {
      const ssize_t n =
          read(file.number(), &contents[done], contents.size() - done);
      if (n <= 0) return "";
      done += static_cast<size_t>(n);
    }
    futimens(file.number(), nullptr);  // the time of the last use
    return contents;
  }

  // Writes a file, and removes the least recently used ones if there is no
  // space for all.
  void Write(const std::string& name, const std::string& contents) const {
    if (static_cast<int64_t>(contents.size()) > kMostBytesOfFile) return;
    if (folder_[0] == '/') MakeFolders();
    const Descriptor folder(OpenFolder());
    if (!folder.is_open()) return;
    const std::string temporary = absl::StrCat(
        name, ".", getpid(), ".",
        std::chrono::steady_clock::now().time_since_epoch().count());
    {
      const Descriptor file(
          openat(folder.number(), temporary.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!file.is_open()) return;
      if (write(file.number(), contents.data(), contents.size()) !=
              static_cast<ssize_t>(contents.size()) ||
          renameat(folder.number(), temporary.c_str(), folder.number(),
                   name.c_str()) != 0) {
        unlinkat(folder.number(), temporary.c_str(), 0);
        return;
      }
    }
    RemoveLeastRecentlyUsed(folder.number());
  }

  static constexpr absl::string_view kSuffix = ".kernel";

 private:
  // Returns whether the owner is this user, and nobody else can write.
  static bool IsOnlyOurs(const struct stat& info) {
    return info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  }

  // Returns a descriptor of the folder, or -1.
  int OpenFolder() const {
    if (folder_.empty()) return -1;
    if (folder_[0] != '/') {
      RefuseCacheFolder(folder_, "is not an absolute path");
      return -1;
    }
    Descriptor folder(
        open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info;
    if (!folder.is_open() || fstat(folder.number(), &info) != 0) return -1;
    if (!IsOnlyOurs(info)) {
      RefuseCacheFolder(folder_,
                        "belongs to another user, or others can write to it: "
                        "change its mode to 700, or set TFPLUG_CACHE_DIR to a "
                        "folder that only you can write to");
      return -1;
    }
    return folder.Release();
  }

  // Creates the folder and those that contain it, for this user alone.
  void MakeFolders() const {
    for (size_t end = 0; end != std::string::npos;) {
      end = folder_.find('/', end + 1);
      mkdir(folder_.substr(0, end).c_str(), 0700);
    }
  }

  void RemoveLeastRecentlyUsed(int folder) const {
    struct File {
      std::string name;
      int64_t size;
      std::pair<time_t, long> used;  // NOLINT: the type of tv_nsec
    };
    std::vector<File> files;
    int64_t bytes = 0;
    DIR* const list =
        fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (list == nullptr) return;
    while (const dirent* const entry = readdir(list)) {
      const std::string name = entry->d_name;
      struct stat info;
      // This includes those that were not completed.
      if (name.find(kSuffix.data()) == std::string::npos ||
          fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(info.st_mode)) {
        continue;
      }
      bytes += info.st_size;
      files.push_back(
          {name, info.st_size, {info.st_mtim.tv_sec, info.st_mtim.tv_nsec}});
    }
    closedir(list);
    if (bytes <= most_bytes_) return;
    std::sort(files.begin(), files.end(),
              [](const File& a, const File& b) { return a.used < b.used; });
    for (const File& file : files) {
      if (bytes <= most_bytes_) break;
      if (unlinkat(folder, file.name.c_str(), 0) == 0) bytes -= file.size;
    }
  }

  const std::string folder_;
  const int64_t most_bytes_;
};

// The binary of one source for one target.
class CachedBinary {
 public:
  CachedBinary(const Target& target, const std::string& source,
               DiskCache cache = DiskCache(DiskCacheFolder()))
      : cache_(std::move(cache)) {
    if (target.name.empty()) return;
    key_ = "tfplug 2\n";
    for (const std::string* part :
         {&target.name, &target.compiler_version, &source}) {
      absl::StrAppend(&key_, part->size(), "\n", *part);
    }
    name_ =
        absl::StrCat(absl::BytesToHexString(HashOf("")), DiskCache::kSuffix);
  }

  // Returns the binary, or "" if there is none.
  std::string Read() const {
    if (name_.empty()) return "";
    std::string file = cache_.Read(name_);
    if (file.size() <= kHashSize) return "";
    const std::string hash = file.substr(0, kHashSize);
    file.erase(0, kHashSize);
    return hash == HashOf(file) ? file : "";
  }

  void Write(const std::string& binary) const {
    if (!name_.empty()) cache_.Write(name_, HashOf(binary) + binary);
  }

 private:
  static constexpr size_t kHashSize = 32;

  std::string HashOf(absl::string_view binary) const {
    Sha256 hash;
    hash.Add(absl::StrCat(key_.size(), "\n"));
    hash.Add(key_);
    hash.Add(binary);
    return hash.Finish();
  }

  const DiskCache cache_;
  std::string key_, name_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_DISK_CACHE_H_
