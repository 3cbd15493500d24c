// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_
#define TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/plugin.h"

// A device that does its work at once, and whose memory the host cannot touch:
// what TensorFlow or a kernel does to it without asking the device crashes.
namespace toy {

// The device sees its memory at this distance from where core does.
extern intptr_t distance;

// Where the device itself sees its memory that core holds at `address`.
template <class T>
T* OnDevice(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<intptr_t>(address) + distance);
}

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return absl::OkStatus(); }
};

class Stream : public tfplug::Stream<Stream, Event> {
 public:
  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(Event&) override { return absl::OkStatus(); }
  absl::Status WaitForEvent(Event&) override { return absl::OkStatus(); }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    std::memcpy(OnDevice(dst.as<char>()), src, size);
    return absl::OkStatus();
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    std::memcpy(dst, OnDevice(src.as<char>()), size);
    return absl::OkStatus();
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    std::memmove(OnDevice(dst.as<char>()), OnDevice(src.as<char>()), size);
    return absl::OkStatus();
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    std::memset(OnDevice(dst.as<char>()), pattern.value, size);
    return absl::OkStatus();
  }
  absl::Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }
};

}  // namespace toy

#endif  // TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_
