// SPDX-License-Identifier: Apache-2.0
#include "small_device.h"

#include <sys/mman.h>
#include <unistd.h>

namespace small {

intptr_t distance = 0;

namespace {

constexpr uint64_t kBytes = 64 << 20;

// TensorFlow's allocator takes all of the memory in one block and divides it.
class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    if (block_ != nullptr || size > kBytes) {
      return absl::ResourceExhaustedError(
          "the device has a single block of 64 MiB");
    }
    const int file = memfd_create("small_device", 0);
    if (file < 0 || ftruncate(file, kBytes) != 0) {
      return absl::ResourceExhaustedError(
          "the host has no memory for the device");
    }
    const auto map = [&](int protection) {
      return mmap(nullptr, kBytes, protection, MAP_SHARED, file, 0);
    };
    block_ = map(PROT_NONE);
    void* const device_mapping = map(PROT_READ | PROT_WRITE);
    close(file);
    if (block_ == MAP_FAILED || device_mapping == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          "the host has no addresses for the device");
    }
    distance = reinterpret_cast<intptr_t>(device_mapping) -
               reinterpret_cast<intptr_t>(block_);
    return tfplug::DeviceMemory(block_, size);
  }
  // Called when the process exits.
  absl::Status Deallocate(tfplug::DeviceMemory) override {
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{kBytes, kBytes};
  }

 private:
  void* block_ = nullptr;
};

class Device : public tfplug::Device<Stream, Memory> {};

struct Platform : tfplug::Platform<Device> {
  static constexpr char kName[] = "SMALL", kType[] = "SMALL";
  // The variable kernels themselves are under test.
  static constexpr bool kWrapsPythonUpdates = false;
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);

}  // namespace
}  // namespace small
