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

// A mapping that unmaps itself unless released.
class Mapping {
 public:
  Mapping(int file, size_t bytes, int protection)
      : address_(mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE,
                      file, 0)),
        bytes_(bytes) {}
  ~Mapping() {
    if (ok()) munmap(address_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool ok() const { return address_ != MAP_FAILED; }
  void* Release() { return std::exchange(address_, MAP_FAILED); }

 private:
  void* address_;
  size_t bytes_;
};

absl::Status OutOfMemory(size_t bytes) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot map ", bytes, " bytes of device memory"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(size_t bytes,
                                                     HostAccess access) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes > std::numeric_limits<off_t>::max() - page) {
    return absl::InvalidArgumentError(
        absl::StrCat("a device cannot have ", bytes, " bytes of memory"));
  }
  bytes = (bytes + page - 1) / page * page;

  const int file = memfd_create("cpu_sim device memory", MFD_CLOEXEC);
  if (file < 0) return OutOfMemory(bytes);
  // The mappings keep the file alive; its descriptor need not outlive this.
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
      new Arena(device.Release(), static_cast<char*>(own.Release()), bytes));
}

Arena::~Arena() {
  munmap(base_, size_);
  munmap(private_, size_);
}

}  // namespace cpu_sim::rt
