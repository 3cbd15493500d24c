// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_BY_HAND_FRAMEWORK_H_
#define TFPLUG_BENCHMARKS_BY_HAND_FRAMEWORK_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "driver.h"
#include "statistics.h"
#include "tfplug/plugin.h"

// The device of by_hand.cc as C++ classes.
namespace framework {

using absl::Status;
using tfplug::DeviceMemory;

// Converts a driver's error to the return type of a hook, in a cold function,
// so that the hooks themselves only contain a call.
struct Failure {
  int result;

  // NOLINTBEGIN(google-explicit-constructor): hooks return a Failure.
  operator Status() const { return Construct<Status>(); }
  template <class T>
  operator absl::StatusOr<T>() const {
    return Construct<absl::StatusOr<T>>();
  }
  // NOLINTEND(google-explicit-constructor)

 private:
  // Lets the compiler omit the path on which the status is OK.
  template <class Returned>
  Returned Construct() const {
    Returned created = ConstructCold<Returned>(result);
    if (created.ok()) __builtin_unreachable();
    return created;
  }
  template <class Returned>
  [[gnu::cold, gnu::noinline]] static Returned ConstructCold(int result) {
    return Status(result == DRV_OUT_OF_MEMORY
                      ? absl::StatusCode::kResourceExhausted
                      : absl::StatusCode::kInternal,
                  drv_error_string(result));
  }
};

inline Status ToStatus(int result) {
  if (ABSL_PREDICT_TRUE(result == DRV_OK)) return absl::OkStatus();
  return Failure{result};
}

class Device;

class Event : public tfplug::Event {
 public:
  explicit Event(Device& device);
  ~Event() override { drv_event_destroy(handle_); }
  Status Init() override { return ToStatus(created_); }

  absl::StatusOr<tfplug::EventStatus> Poll() override {
    const int result = drv_event_query(handle_);
    if (result == DRV_OK) return tfplug::EventStatus::kComplete;
    if (result == DRV_NOT_READY) return tfplug::EventStatus::kPending;
    return Failure{result};
  }
  Status BlockHost() override {
    return ToStatus(drv_event_synchronize(handle_));
  }

  drv_event* handle() { return handle_; }

 private:
  drv_event* handle_;
  const int created_;
};

class Stream : public tfplug::Stream<Stream, Event> {
 public:
  explicit Stream(Device& device);
  ~Stream() override { drv_stream_destroy(handle_); }
  Status Init() override { return ToStatus(created_); }

  drv_stream* handle() { return handle_; }

  Status GetStatus() override { return ToStatus(drv_stream_query(handle_)); }
  Status BlockHostUntilDone() override {
    return ToStatus(drv_stream_synchronize(handle_));
  }

  Status RecordEvent(Event& event) override {
    return ToStatus(drv_event_record(event.handle(), handle_));
  }
  Status WaitForEvent(Event& event) override {
    return ToStatus(drv_stream_wait_event(handle_, event.handle()));
  }

  Status CopyHostToDevice(DeviceMemory dst, const void* src,
                          uint64_t size) override {
    return ToStatus(drv_copy_async(handle_, dst.opaque(), src, size));
  }
  Status CopyDeviceToHost(void* dst, DeviceMemory src, uint64_t size) override {
    return ToStatus(drv_copy_async(handle_, dst, src.opaque(), size));
  }
  Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                            uint64_t size) override {
    return ToStatus(drv_copy_async(handle_, dst.opaque(), src.opaque(), size));
  }

  Status Memset(DeviceMemory dst, tfplug::BytePattern pattern,
                uint64_t size) override {
    return ToStatus(
        drv_fill8_async(handle_, dst.opaque(), pattern.value, size));
  }
  Status Memset32(DeviceMemory dst, tfplug::WordPattern pattern,
                  uint64_t size) override {
    return ToStatus(
        drv_fill32_async(handle_, dst.opaque(), pattern.value, size));
  }

  Status RunOnHost(tfplug::HostTask task) override {
    auto* released = new Released(task.Release());
    const int result = drv_host_task(handle_, &RunTask, released);
    if (ABSL_PREDICT_TRUE(result == DRV_OK)) return absl::OkStatus();
    delete released;
    return Failure{result};
  }

 private:
  using Released = std::pair<tfplug::capi::SE_StatusCallbackFn, void*>;

  static int RunTask(void* argument) {
    auto* released = static_cast<Released*>(argument);
    tfplug::HostTask task(released->first, released->second);
    delete released;
    return task().ok() ? DRV_OK : DRV_HOST_TASK_FAILED;
  }

  drv_stream* handle_;
  const int created_;
};

class Memory : public tfplug::Allocator {
 public:
  explicit Memory(Device& device);

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    void* memory;
    const int result = drv_alloc(driver_, size, &memory);
    if (result != DRV_OK) return Failure{result};
    statistics_.Add(size);
    return DeviceMemory(memory, size);
  }
  Status Deallocate(DeviceMemory memory) override {
    const int result = drv_free(driver_, memory.opaque());
    if (ABSL_PREDICT_FALSE(result != DRV_OK)) return Failure{result};
    statistics_.Subtract(memory.size());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::AllocatorStats> Stats() override {
    tfplug::AllocatorStats stats;
    stats.num_allocs = statistics_.num_allocs();
    stats.bytes_in_use = statistics_.bytes_in_use();
    stats.peak_bytes_in_use = statistics_.peak_bytes_in_use();
    stats.largest_alloc_size = statistics_.largest_alloc_size();
    return stats;
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    tfplug::MemoryUsage usage;
    const int result = drv_memory_info(driver_, &usage.free, &usage.total);
    if (result != DRV_OK) return Failure{result};
    return usage;
  }

 private:
  drv_device* const driver_;
  Statistics statistics_;
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}
  ~Device() override {
    if (driver_ != nullptr) drv_device_close(driver_);
  }
  Status Init() override {
    return ToStatus(drv_device_open(ordinal_, &driver_));
  }

  std::string HardwareName() override { return "by hand"; }
  std::string Vendor() override { return "tfplug"; }

  Status SynchronizeAllActivity() override {
    return ToStatus(drv_device_synchronize(driver_));
  }
  Status CopyHostToDeviceSync(DeviceMemory dst, const void* src,
                              uint64_t size) override {
    return ToStatus(drv_copy(driver_, dst.opaque(), src, size));
  }
  Status CopyDeviceToHostSync(void* dst, DeviceMemory src,
                              uint64_t size) override {
    return ToStatus(drv_copy(driver_, dst, src.opaque(), size));
  }
  Status CopyDeviceToDeviceSync(DeviceMemory dst, DeviceMemory src,
                                uint64_t size) override {
    return ToStatus(drv_copy(driver_, dst.opaque(), src.opaque(), size));
  }

  drv_device* driver() { return driver_; }

 private:
  const int ordinal_;
  drv_device* driver_ = nullptr;
};

inline Event::Event(Device& device)
    : created_(drv_event_create(device.driver(), &handle_)) {}

inline Stream::Stream(Device& device)
    : created_(drv_stream_create(device.driver(), &handle_)) {}

inline Memory::Memory(Device& device) : driver_(device.driver()) {}

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "FRAMEWORK";
  static constexpr char kType[] = "FRAMEWORK";

  absl::StatusOr<int> DeviceCount() override {
    int count = 0;
    const int result = drv_device_count(&count);
    if (result != DRV_OK) return Failure{result};
    return count;
  }
};

}  // namespace framework

#endif  // TFPLUG_BENCHMARKS_BY_HAND_FRAMEWORK_H_
