// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_STREAM_H_
#define TFPLUG_TESTING_FAKE_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/device/event.h"
#include "tfplug/testing/internal/host_tasks.h"
#include "tfplug/testing/internal/plugin_device.h"

#pragma GCC visibility push(hidden)

// TensorFlow's side of a plug-in's streams, events and timers. Each function
// makes one C call. FakeDevice creates the objects; their destructors destroy
// the plug-in's objects.
namespace tfplug::testing {

// Returns the struct in which TensorFlow passes memory, for one call.
inline WithCanary<capi::SP_DeviceMemoryBase> ToC(const PluginDevice& device,
                                                 DeviceMemory memory) {
  WithCanary<capi::SP_DeviceMemoryBase> c(device.sizes.device_memory);
  c->opaque = memory.opaque();
  c->size = memory.size();
  c->payload = memory.payload();
  return c;
}

class FakeEvent {
 public:
  FakeEvent(const PluginDevice& device, capi::SP_Event handle)
      : device_(device), handle_(handle) {}
  FakeEvent(const FakeEvent&) = delete;
  FakeEvent& operator=(const FakeEvent&) = delete;
  ~FakeEvent() { device_.fns.destroy_event(device_.get(), handle_); }

  capi::SP_Event handle() const { return handle_; }

  EventStatus Poll() const {
    return static_cast<EventStatus>(
        device_.fns.get_event_status(device_.get(), handle_));
  }
  absl::Status BlockHost() const {
    return CallWithStatus(device_.fns.block_host_for_event, device_.get(),
                          handle_);
  }

 private:
  const PluginDevice& device_;
  const capi::SP_Event handle_;
};

class FakeTimer {
 public:
  FakeTimer(const PluginDevice& device, capi::SP_Timer handle)
      : device_(device), handle_(handle) {}
  FakeTimer(const FakeTimer&) = delete;
  FakeTimer& operator=(const FakeTimer&) = delete;
  ~FakeTimer() { device_.fns.destroy_timer(device_.get(), handle_); }

  capi::SP_Timer handle() const { return handle_; }
  uint64_t Nanoseconds() const {
    return device_.timer_fns.nanoseconds(handle_);
  }

 private:
  const PluginDevice& device_;
  const capi::SP_Timer handle_;
};

class FakeStream {
 public:
  FakeStream(PluginDevice& device, capi::SP_Stream handle)
      : device_(device), handle_(handle) {}
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  // Waits for the stream's work first, and ignores its result.
  ~FakeStream() {
    BlockHostUntilDone().IgnoreError();
    device_.fns.destroy_stream(device_.get(), handle_);
  }

  capi::SP_Stream handle() const { return handle_; }

  absl::Status GetStatus() const { return Call(device_.fns.get_stream_status); }
  absl::Status WaitForStream(const FakeStream& other) {
    return Call(device_.fns.create_stream_dependency, other.handle_);
  }
  absl::Status RecordEvent(FakeEvent& event) {
    return Call(device_.fns.record_event, event.handle());
  }
  absl::Status WaitForEvent(FakeEvent& event) {
    return Call(device_.fns.wait_for_event, event.handle());
  }

  absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                uint64_t size) {
    const auto c_dst = ToC(device_, dst);
    return Call(device_.fns.memcpy_htod, c_dst.get(), src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, DeviceMemory src, uint64_t size) {
    const auto c_src = ToC(device_, src);
    return Call(device_.fns.memcpy_dtoh, dst, c_src.get(), size);
  }
  absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                  uint64_t size) {
    const auto c_dst = ToC(device_, dst), c_src = ToC(device_, src);
    return Call(device_.fns.memcpy_dtod, c_dst.get(), c_src.get(), size);
  }

  // MemZero, Memset and Memset32 return UNIMPLEMENTED in releases before 2.7.
  absl::Status MemZero(DeviceMemory dst, uint64_t size) {
    if (device_.fns.mem_zero == nullptr) return NotInThisRelease("mem_zero");
    const auto c_dst = ToC(device_, dst);
    return Call(device_.fns.mem_zero, c_dst.get(), size);
  }
  absl::Status Memset(DeviceMemory dst, BytePattern pattern, uint64_t size) {
    if (device_.fns.memset == nullptr) return NotInThisRelease("memset");
    const auto c_dst = ToC(device_, dst);
    return Call(device_.fns.memset, c_dst.get(), pattern.value, size);
  }
  absl::Status Memset32(DeviceMemory dst, WordPattern pattern, uint64_t size) {
    if (device_.fns.memset32 == nullptr) return NotInThisRelease("memset32");
    const auto c_dst = ToC(device_, dst);
    return Call(device_.fns.memset32, c_dst.get(), pattern.value, size);
  }

  // Returns INTERNAL if the plug-in rejects the task, as in TensorFlow.
  absl::Status RunOnHost(std::function<absl::Status()> task) {
    void* const argument = device_.host_tasks.Add(std::move(task));
    if (device_.fns.host_callback(device_.get(), handle_, &HostTasks::Run,
                                  argument)) {
      return absl::OkStatus();
    }
    device_.host_tasks.Reject(argument);
    return absl::InternalError("host_callback returned false");
  }

  // Records an event and waits for it if block_host_until_done is null.
  absl::Status BlockHostUntilDone() {
    if (device_.fns.block_host_until_done != nullptr) {
      return Call(device_.fns.block_host_until_done);
    }
    capi::SP_Event handle = nullptr;
    if (absl::Status status =
            CallWithStatus(device_.fns.create_event, device_.get(), &handle);
        !status.ok()) {
      return status;
    }
    if (handle == nullptr) {
      return absl::InternalError("create_event left the handle unset");
    }
    FakeEvent event(device_, handle);
    if (absl::Status status = RecordEvent(event); !status.ok()) return status;
    return event.BlockHost();
  }

  absl::Status StartTimer(FakeTimer& timer) {
    return Call(device_.fns.start_timer, timer.handle());
  }
  absl::Status StopTimer(FakeTimer& timer) {
    return Call(device_.fns.stop_timer, timer.handle());
  }

 private:
  template <class Function, class... Arguments>
  absl::Status Call(Function function, Arguments... arguments) const {
    return CallWithStatus(function, device_.get(), handle_, arguments...);
  }
  static absl::Status NotInThisRelease(const char* slot) {
    return absl::UnimplementedError(std::string("SP_StreamExecutor has no ") +
                                    slot + " in this release");
  }

  PluginDevice& device_;
  const capi::SP_Stream handle_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_STREAM_H_
