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

// Reserved addresses between two guard regions, which unmap themselves unless
// released. A forked child does not inherit them.
class Mapping {
 public:
  explicit Mapping(size_t bytes) : bytes_(bytes) {
    void* const reserved =
        mmap(nullptr, bytes + 2 * kGuard, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return;
    first_ = static_cast<char*>(reserved) + kGuard;
    if (madvise(reserved, bytes + 2 * kGuard, MADV_DONTFORK) != 0) {
      Unmap(std::exchange(first_, nullptr), bytes);
    }
  }
  ~Mapping() {
    if (ok()) Unmap(first_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Makes the addresses memory, in large pages if possible: a loop over many
  // megabytes is faster then.
  bool Commit() const {
    madvise(first_, bytes_, MADV_HUGEPAGE);
    return mprotect(first_, bytes_, PROT_READ | PROT_WRITE) == 0;
  }

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

  Mapping memory(bytes), inaccessible(bytes);
  if (!memory.ok() || !inaccessible.ok() || !memory.Commit()) {
    return OutOfMemory(bytes);
  }
  char* const own = memory.Release();
  char* const base = access == HostAccess::kNone ? inaccessible.Release() : own;
  return std::unique_ptr<Arena>(new Arena(base, own, bytes));
}

Arena::Arena(char* base, char* private_base, size_t size)
    : base_(base), private_(private_base), size_(size), owner_(getpid()) {}

Arena::~Arena() {
  // In a forked child these addresses may belong to other mappings.
  if (getpid() != owner_) return;
  Unmap(private_, size_);
  if (base_ != private_) Unmap(base_, size_);
}

}  // namespace cpu_sim::rt
