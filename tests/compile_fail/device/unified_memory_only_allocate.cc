// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: override both AllocateUnified and DeallocateUnified, or neither
// expect-errors: 1
#include "minimal_device.h"

class Memory : public minimal::Memory {
 public:
  absl::StatusOr<void*> AllocateUnified(uint64_t) override { return nullptr; }
};
TFPLUG_REGISTER_DEVICE(
    minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>>);
