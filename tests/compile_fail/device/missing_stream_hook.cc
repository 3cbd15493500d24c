// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the stream class does not override CopyDeviceToDevice; copy its declaration from tfplug/device/stream.h
// expect: the stream class does not override RunOnHost
// expect-errors: 2
#include "minimal_device.h"

class Stream : public tfplug::Stream<Stream, minimal::Event> {
 public:
  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(minimal::Event&) override {
    return absl::OkStatus();
  }
  absl::Status WaitForEvent(minimal::Event&) override {
    return absl::OkStatus();
  }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory, const void*,
                                uint64_t) override {
    return absl::OkStatus();
  }
  absl::Status CopyDeviceToHost(void*, tfplug::DeviceMemory,
                                uint64_t) override {
    return absl::OkStatus();
  }
  absl::Status Memset(tfplug::DeviceMemory, tfplug::BytePattern,
                      uint64_t) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_DEVICE(minimal::PlatformOf<minimal::DeviceOf<Stream>>);
