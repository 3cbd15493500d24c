// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cpu_sim::rt {
namespace {

constexpr size_t kGuard = Arena::kGuardBytes;

void Unmap(char* first, size_t bytes) {
  munmap(first - kGuard, bytes + 2 * kGuard);
}

// A mapping of a file between two guard regions, which unmaps itself unless
// released. A forked child does not inherit it.
class Mapping {
 public:
  Mapping(int file, size_t bytes, int protection) : bytes_(bytes) {
    void* const reserved =
        mmap(nullptr, bytes + 2 * kGuard, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return;
    first_ = static_cast<char*>(reserved) + kGuard;
    if (mmap(first_, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
             file, 0) == MAP_FAILED ||
        madvise(first_, bytes, MADV_DONTFORK) != 0) {
      Unmap(std::exchange(first_, nullptr), bytes);
    }
  }
  ~Mapping() {
    if (ok()) Unmap(first_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool ok() const { return first_ != nullptr; }
  char* Release() { return std::exchange(first_, nullptr); }

 private:
  char* first_ = nullptr;
  const size_t bytes_;
};

absl::Status OutOfMemory(size_t bytes) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot map ", bytes, " bytes of device memory"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(size_t bytes,
                                                     HostAccess access) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 ||
      bytes > std::numeric_limits<off_t>::max() - page - 2 * kGuard) {
    return absl::InvalidArgumentError(
        absl::StrCat("a device cannot have ", bytes, " bytes of memory"));
  }
  bytes = (bytes + page - 1) / page * page;

  const int file = memfd_create("cpu_sim device memory", MFD_CLOEXEC);
  if (file < 0) return OutOfMemory(bytes);
  // The mappings keep the file alive after its descriptor is closed.
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return OutOfMemory(bytes);
  }

  Mapping device(
      file, bytes,
      access == HostAccess::kNone ? PROT_NONE : PROT_READ | PROT_WRITE);
  if (!device.ok()) return OutOfMemory(bytes);
  Mapping own(file, bytes, PROT_READ | PROT_WRITE);
  if (!own.ok()) return OutOfMemory(bytes);
  return std::unique_ptr<Arena>(
      new Arena(device.Release(), own.Release(), bytes));
}

Arena::Arena(char* base, char* private_base, size_t size)
    : base_(base), private_(private_base), size_(size), owner_(getpid()) {}

Arena::~Arena() {
  // In a forked child these addresses may belong to other mappings.
  if (getpid() != owner_) return;
  Unmap(base_, size_);
  Unmap(private_, size_);
}

}  // namespace cpu_sim::rt
