// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_
#define TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/plugin.h"

// A synchronous device whose memory the host cannot access: an access by
// TensorFlow or by a kernel that bypasses the device crashes.
namespace small {

// The distance in bytes from the addresses that TensorFlow uses, which are not
// accessible, to the device's own mapping of the same memory.
extern intptr_t distance;

// Returns the device's own address for TensorFlow's `address`.
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

}  // namespace small

#endif  // TFPLUG_TESTS_TENSORFLOW_PLUGINS_SMALL_DEVICE_H_
