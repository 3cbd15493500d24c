// SPDX-License-Identifier: Apache-2.0
#include "small_device.h"

#include <sys/mman.h>
#include <unistd.h>

namespace toy {

intptr_t distance = 0;

namespace {

constexpr uint64_t kBytes = 64 << 20;

// Core's allocator takes all of the memory in one block, and divides it.
class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    if (block_ != nullptr || size > kBytes) {
      return absl::ResourceExhaustedError("the toy has one block of 64 MiB");
    }
    const int file = memfd_create("toy", 0);
    if (file < 0 || ftruncate(file, kBytes) != 0) {
      return absl::ResourceExhaustedError("the host has no memory for a toy");
    }
    const auto map = [&](int rights) {
      return mmap(nullptr, kBytes, rights, MAP_SHARED, file, 0);
    };
    block_ = map(PROT_NONE);
    void* const seen_by_device = map(PROT_READ | PROT_WRITE);
    close(file);
    if (block_ == MAP_FAILED || seen_by_device == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          "the host has no addresses for a toy");
    }
    distance = reinterpret_cast<intptr_t>(seen_by_device) -
               reinterpret_cast<intptr_t>(block_);
    return tfplug::DeviceMemory(block_, size);
  }
  // When the process ends.
  absl::Status Deallocate(tfplug::DeviceMemory) override {
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{kBytes, kBytes};
  }

 private:
  void* block_ = nullptr;
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  absl::Status SynchronizeAllActivity() override { return absl::OkStatus(); }
};

struct Platform : tfplug::Platform<Device> {
  static constexpr char kName[] = "TOY", kType[] = "TOY";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);

}  // namespace
}  // namespace toy
