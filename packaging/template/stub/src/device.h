// The device: memory, streams, events.
#pragma once

#include "driver.h"
#include "tfplug/plugin.h"

namespace my_device {

inline absl::Status ToStatus(bool is_ok) {
  return is_ok ? absl::OkStatus()
               : absl::InternalError("the driver reported an error");
}

// TODO: with a queue of your driver, an event is recorded and becomes complete
// later.
class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return absl::OkStatus(); }
};

// A queue of work. TODO: create a queue of your driver in the constructor.
class Stream : public tfplug::Stream<Stream, Event> {
 public:
  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(Event&) override { return absl::OkStatus(); }
  absl::Status WaitForEvent(Event&) override { return absl::OkStatus(); }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    return ToStatus(driver::Copy(dst.opaque(), src, size));
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    return ToStatus(driver::Copy(dst, src.opaque(), size));
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    return ToStatus(driver::Copy(dst.opaque(), src.opaque(), size));
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    return ToStatus(driver::Fill(dst.opaque(), pattern.value, size));
  }
  absl::Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }
};

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    void* memory = driver::Malloc(size);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError("the device's memory is full");
    }
    return tfplug::DeviceMemory(memory, size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    driver::Free(memory.opaque());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    const auto total = static_cast<int64_t>(driver::TotalMemory());
    return tfplug::MemoryUsage{total, total};
  }
};

class Device : public tfplug::Device<Stream, Memory> {};

struct Platform : tfplug::Platform<Device> {
  static constexpr char kName[] = "MY_DEVICE", kType[] = "MY_DEVICE";
  absl::StatusOr<int> DeviceCount() override { return driver::CountDevices(); }
};

}  // namespace my_device
