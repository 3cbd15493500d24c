// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the allocator class does not override Usage; copy its declaration from tfplug/device/allocator.h
// expect-errors: 1
#include "minimal_device.h"

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t, int64_t) override {
    return tfplug::DeviceMemory();
  }
  absl::Status Deallocate(tfplug::DeviceMemory) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_DEVICE(
    minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>>);
