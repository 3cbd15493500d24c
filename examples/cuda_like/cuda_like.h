// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_CUDA_LIKE_H_
#define CUDA_LIKE_CUDA_LIKE_H_

#include <tfplug/compiled/program_cache.h>
#include <tfplug/plugin.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "blas.h"
#include "driver/driver.h"
#include "graph.h"
#include "staging.h"

// A TensorFlow device on CUDA's driver API. Each class wraps a handle of the
// driver and forwards calls to it.
namespace cuda_like {

class Device;

class Event final : public tfplug::Event {
 public:
  // `flags`: those of cuEventCreate.
  explicit Event(Device& device, unsigned flags = CU_EVENT_BLOCKING_SYNC |
                                                  CU_EVENT_DISABLE_TIMING)
      : device_(device), flags_(flags) {}
  ~Event() override;
  absl::Status Init() override;

  absl::StatusOr<tfplug::EventStatus> Poll() override;
  absl::Status BlockHost() override;

  CUevent handle() const { return event_; }

 private:
  Device& device_;
  const unsigned flags_;
  CUevent event_ = nullptr;
};

// The zero of the device's clock: the driver has only differences of events, as
// floats, so the clock starts again with each profile.
struct Epoch {
  std::shared_ptr<Event> event;
  uint64_t ns = 0;
};

// Measures the time between two events on a stream.
class Timer final : public tfplug::Timer {
 public:
  explicit Timer(Device& device)
      : device_(device),
        begin_(device, CU_EVENT_DEFAULT),
        end_(device, CU_EVENT_DEFAULT) {}
  absl::Status Init() override;

  absl::StatusOr<uint64_t> Nanoseconds() override;
  absl::StatusOr<tfplug::WorkTimes> GetTimes() override;

  Event& begin() { return begin_; }
  Event& end() { return end_; }

 private:
  Device& device_;
  Event begin_, end_;  // with the device's time when they are reached
  Epoch epoch_;
};

class Stream final : public tfplug::Stream<Stream, Event, Timer> {
 public:
  Stream(Device& device, tfplug::StreamOptions options)
      : device_(device),
        options_(options),
        graphs_(std::make_shared<Graphs>(*this)) {}
  ~Stream() override;
  absl::Status Init() override;

  absl::Status GetStatus() override;
  absl::Status BlockHostUntilDone() override;
  absl::Status RecordEvent(Event& event) override;
  absl::Status WaitForEvent(Event& event) override;

  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override;
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override;
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override;
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override;
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override;

  absl::Status RunOnHost(tfplug::HostTask task) override;
  absl::Status StartTimer(Timer& timer) override;
  absl::Status StopTimer(Timer& timer) override;

  Device& device() const { return device_; }
  CUstream handle() const { return stream_; }
  Blas& blas() { return blas_; }
  // Threads: any.
  Graphs& graphs() { return *graphs_; }

  // Enqueues what completes the copies that are staged. What lets others wait
  // for the stream must call it first.
  absl::Status FinishCopies();

  // Tells that the stream runs kernels: a copy to the host would wait for them.
  void set_computing() { is_computing_.store(true, std::memory_order_relaxed); }

  // Returns whether the stream captures a graph: what it enqueues does not run.
  bool is_capturing() const { return is_capturing_; }
  void set_capturing(bool is_capturing) { is_capturing_ = is_capturing; }

 private:
  // Calls run(argument) when the stream's work is done, after the copies that
  // are staged.
  absl::Status AddCallback(CUstreamCallback run, void* argument);

  // Fails on a stream that captures a graph.
  absl::Status CheckRuns(const char* work) const;

  Device& device_;
  const tfplug::StreamOptions options_;
  CUstream stream_ = nullptr;
  Blas blas_;
  bool is_capturing_ = false;
  std::atomic<bool> is_computing_{false};
  std::mutex staged_mutex_;
  std::vector<StagedCopy> staged_;
  std::shared_ptr<Graphs> graphs_;
};

class Memory final : public tfplug::Allocator {
 public:
  explicit Memory(Device& device) : device_(device) {}

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t space) override;
  absl::Status Deallocate(tfplug::DeviceMemory memory) override;

  // Page-locked, so that copies from it are asynchronous.
  absl::StatusOr<void*> AllocateHost(uint64_t size) override;
  absl::Status DeallocateHost(void* memory) override;

  absl::StatusOr<void*> AllocateUnified(uint64_t size) override;
  absl::Status DeallocateUnified(void* memory) override;

  absl::StatusOr<tfplug::MemoryUsage> Usage() override;

 private:
  Device& device_;
};

class Platform;

class Device final : public tfplug::Device<Stream, Memory> {
 public:
  Device(Platform& platform, int ordinal);
  ~Device() override;
  absl::Status Init() override;

  std::string HardwareName() override;
  std::string Vendor() override { return "NVIDIA"; }
  std::string PciBusId() override;
  int32_t NumaNode() override;
  int64_t MemoryBandwidth() override;

  absl::Status SynchronizeAllActivity() override;
  absl::StatusOr<uint64_t> GetTime() override;

  // Returns the nanoseconds from one event to another, which are both reached.
  absl::StatusOr<uint64_t> GetElapsed(const Event& begin,
                                      const Event& end) const;
  Epoch epoch();

  // Makes the device's context the calling thread's current one.
  absl::Status MakeCurrent() const {
    return driver_.Call(driver_.cuCtxSetCurrent, context_);
  }

  // Calls a function of the driver in the device's context, which it makes the
  // calling thread's current one.
  template <class... Parameters>
  absl::Status Call(
      const tfplug::DriverFunction<CUresult(Parameters...)>& function,
      std::common_type_t<Parameters>... arguments) const {
    const absl::Status status = MakeCurrent();
    return status.ok() ? driver_.Call(function, arguments...) : status;
  }

  // Returns an attribute of the device; 0 if the driver does not have it.
  int GetAttribute(CUdevice_attribute attribute) const;

  const Driver& driver() const { return driver_; }
  // Returns the architecture, such as 90 for sm_90.
  int sm() const { return sm_; }
  tfplug::ProgramCache& programs() { return *programs_; }
  Staging& staging() { return staging_; }
  void AddStream(Stream& stream);
  void RemoveStream(Stream& stream);
  // Held while a stream captures a graph: CUDA permits no waiting for the
  // context then.
  std::mutex& capture_mutex() { return capture_mutex_; }
  const BlasLibrary& blas() const;

 private:
  // Lets this device and a peer copy directly between their memories.
  void EnablePeerAccess(const Device& peer) const;

  Platform& platform_;
  const Driver& driver_;
  const int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  int sm_ = 0;
  CUstream clock_ = nullptr;  // for GetTime
  Staging staging_{*this};
  std::mutex streams_mutex_;
  std::vector<Stream*> streams_;
  std::mutex capture_mutex_;
  std::mutex epoch_mutex_;
  Epoch epoch_;
  std::optional<tfplug::ProgramCache> programs_;
};

class Platform final : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "CUDA_LIKE";
  // Not "GPU": TensorFlow would place ops on the device for which only its own
  // GPUs have kernels.
  static constexpr char kType[] = "CUDA_LIKE";

  // Tools that look for wrong accesses need CUDA_LIKE_BFC=0: each tensor has
  // memory of its own from the driver.
  tfplug::PlatformOptions Options() override;
  // Counts the devices in another process, so that children which are forked
  // before a device is created can use them.
  absl::Status Init() override;
  absl::StatusOr<int> DeviceCount() override { return count_; }

  // Loads the driver for this process, at the first call.
  absl::Status Load();
  // Loaded once there is a device.
  const Driver& driver() const { return driver_; }
  // Loads cuBLAS at the first call, in a fraction of a second.
  const BlasLibrary& blas();

 private:
  friend Device;  // adds itself to devices_

  int count_ = 0;
  Driver driver_;
  std::once_flag load_;
  absl::Status loaded_;
  std::once_flag load_blas_;
  BlasLibrary blas_;
  std::mutex mutex_;
  std::vector<Device*> devices_;  // those that are initialized
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_CUDA_LIKE_H_
