// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_CPU_SIM_H_
#define CPU_SIM_CPU_SIM_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/device/caching_allocator.h>
#include <tfplug/plugin.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/types/span.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/machine.h"
#include "runtime/stream.h"

// A TensorFlow device on top of the driver in runtime/: the code that a vendor
// writes. Each class wraps an object of the driver and forwards calls to it.
namespace cpu_sim {

class Device;

class Event final : public tfplug::Event {
 public:
  absl::Status Init() override {
    TFPLUG_ASSIGN_OR_RETURN(event_, rt::Event::Create());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::EventStatus> Poll() override;
  absl::Status BlockHost() override { return event_->Synchronize(); }

  rt::Event& runtime() { return *event_; }

 private:
  std::unique_ptr<rt::Event> event_;
};

class Timer final : public tfplug::Timer {
 public:
  absl::Status Init() override {
    TFPLUG_ASSIGN_OR_RETURN(timer_, rt::Timer::Create());
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> Nanoseconds() override {
    return timer_->Nanoseconds();
  }
  absl::StatusOr<tfplug::WorkTimes> GetTimes() override {
    TFPLUG_ASSIGN_OR_RETURN(const auto points, timer_->Get());
    return tfplug::WorkTimes{points->start, points->stop};
  }

  rt::Timer& runtime() { return *timer_; }

 private:
  std::unique_ptr<rt::Timer> timer_;
};

class Stream final : public tfplug::Stream<Stream, Event, Timer> {
 public:
  explicit Stream(Device& device) : device_(device) {}
  absl::Status Init() override;

  absl::Status GetStatus() override { return stream_->status(); }
  absl::Status BlockHostUntilDone() override { return stream_->Synchronize(); }

  absl::Status RecordEvent(Event& event) override {
    return stream_->Record(event.runtime());
  }
  absl::Status WaitForEvent(Event& event) override {
    return stream_->WaitFor(event.runtime());
  }
  absl::Status WaitForStream(Stream& other) override {
    return stream_->WaitFor(*other.stream_);
  }

  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    return stream_->CopyToDevice(dst.opaque(), src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    return stream_->CopyToHost(dst, src.opaque(), size);
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    return stream_->CopyOnDevice(dst.opaque(), src.opaque(), size);
  }

  absl::Status MemZero(tfplug::DeviceMemory dst, uint64_t size) override {
    return stream_->Zero(dst.opaque(), size);
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    return stream_->Fill(dst.opaque(), pattern.value, size);
  }
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override {
    return stream_->Fill32(dst.opaque(), pattern.value, size);
  }

  absl::Status RunOnHost(tfplug::HostTask task) override {
    const bool is_short = task.is_short();
    return stream_->RunOnHost(std::move(task), is_short);
  }

  absl::Status StartTimer(Timer& timer) override {
    return stream_->Start(timer.runtime());
  }
  absl::Status StopTimer(Timer& timer) override {
    return stream_->Stop(timer.runtime());
  }

  // Runs task() on the device. It needs private addresses (runtime/arena.h).
  template <typename Task>
  absl::Status LaunchTask(Task task) {
    return stream_->Launch(std::move(task));
  }
  // Returns the private address of device memory.
  absl::StatusOr<void*> ToPrivate(const void* address, uint64_t bytes) const {
    return stream_->device().ToPrivate(address, bytes);
  }

  // Runs function(arguments...) on the device, for kernels. A Span of device
  // memory is converted to a private address (runtime/arena.h); other arguments
  // are copied.
  template <typename Function, typename... Arguments>
  absl::Status Launch(Function function, const Arguments&... arguments) {
    absl::Status status;
    // Braces fix the order of evaluation.
    std::tuple<decltype(ForDevice(arguments, status))...> on_device{
        ForDevice(arguments, status)...};
    if (!status.ok()) return status;
    return stream_->Launch(
        [function, on_device] { std::apply(function, on_device); });
  }

 private:
  template <typename T>
  T* ForDevice(const absl::Span<T>& span, absl::Status& status) const {
    auto address =
        stream_->device().ToPrivate(span.data(), span.size() * sizeof(T));
    status.Update(address.status());
    return address.ok() ? static_cast<T*>(*address) : nullptr;
  }
  template <typename T>
  T ForDevice(const T& argument, absl::Status&) const {
    return argument;
  }

  Device& device_;
  std::unique_ptr<rt::Stream> stream_;
};

// Allocates directly from the driver. Device puts a cache in front of it.
class Memory final : public tfplug::Allocator {
 public:
  explicit Memory(Device& device);

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t space) override;
  absl::Status Deallocate(tfplug::DeviceMemory memory) override;

  absl::StatusOr<void*> AllocateHost(uint64_t size) override {
    return device_.AllocateHost(size);
  }
  absl::Status DeallocateHost(void* memory) override {
    device_.FreeHost(memory);
    return absl::OkStatus();
  }

  absl::StatusOr<void*> AllocateUnified(uint64_t size) override {
    return device_.AllocateManaged(size);
  }
  absl::Status DeallocateUnified(void* memory) override;

  absl::StatusOr<tfplug::AllocatorStats> Stats() override;
  absl::StatusOr<tfplug::MemoryUsage> Usage() override;

  bool has_canaries() const { return device_.has_canaries(); }

 private:
  rt::Device& device_;
};

// Memory that is cached, unless each block has canaries.
class TensorMemory final : public tfplug::CachingAllocator<Memory> {
 public:
  using CachingAllocator::CachingAllocator;

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t space) override {
    return source().has_canaries() ? source().Allocate(size, space)
                                   : CachingAllocator::Allocate(size, space);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    return source().has_canaries() ? source().Deallocate(memory)
                                   : CachingAllocator::Deallocate(memory);
  }
};

// With CPU_SIM_BFC=0, each tensor is allocated from the cache over Memory;
// otherwise, the cache serves the few large blocks of TensorFlow's own
// allocator.
class Device final : public tfplug::Device<Stream, TensorMemory> {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}
  absl::Status Init() override;

  std::string HardwareName() override { return "host threads"; }
  std::string Vendor() override { return "tfplug"; }

  absl::Status SynchronizeAllActivity() override {
    return device_->Synchronize();
  }
  absl::StatusOr<uint64_t> GetTime() override { return rt::NowNanoseconds(); }
  absl::Status CopyHostToDeviceSync(tfplug::DeviceMemory dst, const void* src,
                                    uint64_t size) override {
    return device_->CopyToDevice(dst.opaque(), src, size);
  }
  absl::Status CopyDeviceToHostSync(void* dst, tfplug::DeviceMemory src,
                                    uint64_t size) override {
    return device_->CopyToHost(dst, src.opaque(), size);
  }
  absl::Status CopyDeviceToDeviceSync(tfplug::DeviceMemory dst,
                                      tfplug::DeviceMemory src,
                                      uint64_t size) override {
    return device_->CopyOnDevice(dst.opaque(), src.opaque(), size);
  }

  rt::Device& runtime() { return *device_; }

 private:
  const int ordinal_;
  rt::Device* device_ = nullptr;  // owned by the machine
};

class Platform final : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "CPU_SIM";
  // Must not contain "CPU": TensorFlow's graph optimizers treat such a device
  // type as the CPU and insert ops that have kernels only on the CPU.
  static constexpr char kType[] = "SIM";
  // The device computes on the processors on which TensorFlow would poll.
  static constexpr int kPollMicroseconds = 200;

  tfplug::PlatformOptions Options() override;
  absl::StatusOr<int> DeviceCount() override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_CPU_SIM_H_
