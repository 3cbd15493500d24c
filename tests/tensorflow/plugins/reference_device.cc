// SPDX-License-Identifier: Apache-2.0
#include "reference_device.h"

#include <cstdlib>

#include "tfplug/graph_pass.h"

namespace reference {
namespace {

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    void* memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError("the device is full");
    }
    return tfplug::DeviceMemory(memory, size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    std::free(memory.opaque());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{1 << 30, 1 << 30};
  }
};

class Device : public tfplug::Device<Stream, Memory> {};

struct Platform : tfplug::Platform<Device> {
  static constexpr char kName[] = "REFERENCE", kType[] = "REFERENCE";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
TFPLUG_REGISTER_DEVICE(Platform);

}  // namespace
}  // namespace reference

TFPLUG_REGISTER_GRAPH_PASSES("REFERENCE");
