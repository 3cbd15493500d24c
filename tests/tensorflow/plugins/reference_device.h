// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_DEVICE_H_
#define TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_DEVICE_H_

#include <cstring>

#include "copy_hooks.h"
#include "tfplug/plugin.h"

// A synchronous device in host memory.
namespace reference {

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return absl::OkStatus(); }
};

class Stream : public CopyHooks<Stream, Event> {
 public:
  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(Event&) override { return absl::OkStatus(); }
  absl::Status WaitForEvent(Event&) override { return absl::OkStatus(); }
  static absl::Status Copy(void* dst, const void* src, uint64_t size) {
    std::memmove(dst, src, size);
    return absl::OkStatus();
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    std::memset(dst.opaque(), pattern.value, size);
    return absl::OkStatus();
  }
  absl::Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }
};

}  // namespace reference

#endif  // TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_DEVICE_H_
