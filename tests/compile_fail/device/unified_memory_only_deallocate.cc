// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: override both AllocateUnified and DeallocateUnified, or neither
#include "minimal_device.h"

class Memory : public minimal::Memory {
 public:
  absl::Status DeallocateUnified(void*) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_DEVICE(
    minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>>);
