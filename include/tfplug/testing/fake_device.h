// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_DEVICE_H_
#define TFPLUG_TESTING_FAKE_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/stream.h"
#include "tfplug/testing/fake_stream.h"
#include "tfplug/testing/internal/plugin_device.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

struct TensorBuffer;

// Allocates the tensors of a device (HostDevice). Without one, each tensor is an
// allocation of the plug-in's.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;
  // Returns null if the device is out of memory.
  virtual std::shared_ptr<TensorBuffer> Allocate(size_t size) = 0;
};

// TensorFlow's side of one device of a plug-in: TensorFlow's calls and structs,
// and the four streams that TensorFlow creates for each device. Host::Device
// returns it.
class FakeDevice {
 public:
  FakeDevice(const StructSizes& sizes, const capi::SP_DeviceFns& device_fns,
             const capi::SP_StreamExecutor& fns,
             const capi::SP_TimerFns& timer_fns,
             const WithCanary<capi::SP_Device>& device,
             std::function<void(capi::SP_Device*)> destroy,
             bool computes_on_last_stream = false)
      : device_(new PluginDevice{sizes, device_fns, fns, timer_fns, device, {}},
                [destroy = std::move(destroy)](PluginDevice* to_destroy) {
                  destroy(to_destroy->device.get());
                  delete to_destroy;
                }),
        compute_(computes_on_last_stream ? 3 : 0) {}
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  ~FakeDevice() {
    for (auto& stream : streams_) stream.reset();
  }

  // Returns another of TensorFlow's devices on the same one of the plug-in's: with
  // streams and tensors of its own. destroy_device is called after the last.
  std::unique_ptr<FakeDevice> CreateVirtual() const {
    return std::unique_ptr<FakeDevice>(new FakeDevice(device_, compute_));
  }
  // Returns whether both are on the same device of the plug-in's.
  bool SharesDevice(const FakeDevice& other) const {
    return device_ == other.device_;
  }

  // ---- SP_Device, SP_DeviceFns -------------------------------------------

  // Returns the C struct, for calling C functions directly.
  const capi::SP_Device* c_device() const { return device_->get(); }
  const capi::SP_StreamExecutor& fns() const { return device_->fns; }

  int ordinal() const { return device_->get()->ordinal; }
  std::string hardware_name() const {
    return OrEmpty(device_->get()->hardware_name);
  }
  std::string vendor() const { return OrEmpty(device_->get()->device_vendor); }
  std::string pci_bus_id() const { return OrEmpty(device_->get()->pci_bus_id); }
  // Returns an empty value if the C function is null.
  std::optional<int32_t> NumaNode() const {
    return CallIfSet(device_->device_fns.get_numa_node);
  }
  std::optional<int64_t> MemoryBandwidth() const {
    return CallIfSet(device_->device_fns.get_memory_bandwidth);
  }
  std::optional<double> Gflops() const {
    return CallIfSet(device_->device_fns.get_gflops);
  }

  // ---- Streams, events, timers -------------------------------------------

  // Creates the four streams, in TensorFlow's order; with options, as TensorFlow
  // does from 2.22 on if the plug-in has the function. The priority is that of a
  // virtual device.
  absl::Status CreateStreams(bool with_options = false,
                             std::optional<int> priority = std::nullopt) {
    std::optional<StreamOptions> options;
    if (with_options && fns().create_stream_with_options != nullptr) {
      options.emplace();
      options->has_priority = priority.has_value();
      options->priority = priority.value_or(0);
    }
    for (auto& to : streams_) {
      auto stream = CreateStream(options);
      if (!stream.ok()) return stream.status();
      to = *std::move(stream);
    }
    return absl::OkStatus();
  }
  // Returns the first stream or, in TensorFlow 2.17 and 2.18, the last one.
  FakeStream& compute() { return *streams_[compute_]; }
  FakeStream& host_to_device() { return *streams_[1]; }
  FakeStream& device_to_host() { return *streams_[2]; }
  FakeStream& device_to_device() { return *streams_[3]; }

  // Creates a stream. With `options`, calls create_stream_with_options;
  // UNIMPLEMENTED if that is null.
  absl::StatusOr<std::unique_ptr<FakeStream>> CreateStream(
      std::optional<StreamOptions> options = std::nullopt) {
    capi::SP_Stream handle = nullptr;
    absl::Status status;
    if (!options.has_value()) {
      status = CallWithStatus(fns().create_stream, c_device(), &handle);
    } else if (fns().create_stream_with_options == nullptr) {
      status = absl::UnimplementedError("create_stream_with_options is null");
    } else {
      WithCanary<capi::SP_StreamOptions> c(device_->sizes.stream_options);
      c->has_priority = options->has_priority;
      c->priority = options->priority;
      status = CallWithStatus(fns().create_stream_with_options, c_device(),
                              c.get(), &handle);
    }
    return Wrap<FakeStream>("create_stream", status, handle);
  }
  absl::StatusOr<std::unique_ptr<FakeEvent>> CreateEvent() {
    capi::SP_Event handle = nullptr;
    absl::Status status =
        CallWithStatus(fns().create_event, c_device(), &handle);
    return Wrap<FakeEvent>("create_event", status, handle);
  }
  absl::StatusOr<std::unique_ptr<FakeTimer>> CreateTimer() {
    capi::SP_Timer handle = nullptr;
    absl::Status status =
        CallWithStatus(fns().create_timer, c_device(), &handle);
    return Wrap<FakeTimer>("create_timer", status, handle);
  }

  // ---- Memory ------------------------------------------------------------

  // Returns null if the plug-in fails, usually for lack of memory; the C
  // function reports no reason.
  DeviceMemory Allocate(uint64_t size, int64_t memory_space = 0) {
    auto c = ToC(*device_, DeviceMemory());
    fns().allocate(c_device(), size, memory_space, c.get());
    Check(c.intact(), "allocate wrote beyond its SP_DeviceMemoryBase");
    return DeviceMemory(c->opaque, c->size, c->payload);
  }
  void Deallocate(DeviceMemory memory) {
    const auto c = ToC(*device_, memory);
    fns().deallocate(c_device(), c.get());
  }
  // Returns what allocates the tensors; null if each is an allocation of the
  // plug-in's.
  TensorMemory* tensor_memory() const { return tensor_memory_; }
  void set_tensor_memory(TensorMemory* memory) { tensor_memory_ = memory; }
  // Delays each host task. Null for none.
  void set_jitter(std::shared_ptr<Jitter> jitter) {
    device_->host_tasks.set_jitter(std::move(jitter));
  }
  void* AllocateHost(uint64_t size) {
    return fns().host_memory_allocate(c_device(), size);
  }
  void DeallocateHost(void* memory) {
    fns().host_memory_deallocate(c_device(), memory);
  }
  bool has_unified_memory() const {
    return fns().unified_memory_allocate != nullptr &&
           fns().unified_memory_deallocate != nullptr;
  }
  // Call these only if has_unified_memory().
  void* AllocateUnified(uint64_t size) {
    return fns().unified_memory_allocate(c_device(), size);
  }
  void DeallocateUnified(void* memory) {
    fns().unified_memory_deallocate(c_device(), memory);
  }
  // Returns an empty value if the C function returns false.
  std::optional<AllocatorStats> Stats();
  std::optional<MemoryUsage> Usage() {
    MemoryUsage usage;
    if (!fns().device_memory_usage(c_device(), &usage.free, &usage.total)) {
      return std::nullopt;
    }
    return usage;
  }

  // Reads the device's free memory, of which TensorFlow's allocator may have all but
  // what it leaves to the system. Returns false if the C function does.
  bool ReadMemoryLimit() {
    const auto usage = Usage();
    int64_t limit = usage.has_value() ? usage->free : 0;
    if (limit > MemoryOfSystem(limit)) limit -= MemoryOfSystem(limit);
    memory_limit_ = static_cast<uint64_t>(limit);
    return usage.has_value();
  }
  // Returns the most bytes that TensorFlow's allocator may have. ReadMemoryLimit
  // sets it; that of a virtual device is set here.
  uint64_t memory_limit() const { return memory_limit_; }
  void set_memory_limit(uint64_t bytes) { memory_limit_ = bytes; }

  // ---- Synchronous work --------------------------------------------------

  absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                uint64_t size) {
    const auto c_dst = ToC(*device_, dst);
    return CallWithStatus(fns().sync_memcpy_htod, c_device(), c_dst.get(), src,
                          size);
  }
  absl::Status CopyDeviceToHost(void* dst, DeviceMemory src, uint64_t size) {
    const auto c_src = ToC(*device_, src);
    return CallWithStatus(fns().sync_memcpy_dtoh, c_device(), dst, c_src.get(),
                          size);
  }
  absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                  uint64_t size) {
    const auto c_dst = ToC(*device_, dst), c_src = ToC(*device_, src);
    return CallWithStatus(fns().sync_memcpy_dtod, c_device(), c_dst.get(),
                          c_src.get(), size);
  }
  absl::Status SynchronizeAllActivity() {
    return CallWithStatus(fns().synchronize_all_activity, c_device());
  }

  // ------------------------------------------------------------------------

  // Returns the plug-in's first mistake that no call has reported: a write
  // beyond a struct, or a host task that was dropped or ran twice. Tasks that
  // are pending in a stream count as dropped: wait for the stream first.
  absl::Status Problems() const {
    if (!device_->device.intact()) {
      return absl::InternalError("the plug-in wrote beyond an SP_Device");
    }
    if (!problem_.ok()) return problem_;
    return device_->host_tasks.Check();
  }

 private:
  // Returns how much of a device's free memory TensorFlow leaves to the system.
  // Recorded for 1 and 8 GiB.
  static int64_t MemoryOfSystem(int64_t available) {
    constexpr int64_t kMebi = int64_t{1} << 20;
    if (available < int64_t{1} << 31) return 255 * kMebi;
    return std::max(300 * kMebi, static_cast<int64_t>(
                                     static_cast<double>(available) * 0.06));
  }
  // Wraps the object that a create_... function returned; OK without an object
  // is an error.
  template <class T, class Handle>
  absl::StatusOr<std::unique_ptr<T>> Wrap(const char* slot, absl::Status status,
                                          Handle handle) {
    if (!status.ok()) return status;
    if (handle == nullptr) {
      return absl::InternalError(std::string(slot) +
                                 " returned OK and left the handle unset");
    }
    return std::make_unique<T>(*device_, handle);
  }
  template <class R>
  std::optional<R> CallIfSet(R (*function)(const capi::SP_Device*)) const {
    if (function == nullptr) return std::nullopt;
    return function(c_device());
  }
  static std::string OrEmpty(const char* text) {
    return text == nullptr ? "" : text;
  }
  void Check(bool ok, const char* problem) {
    if (!ok && problem_.ok()) problem_ = absl::InternalError(problem);
  }

  FakeDevice(std::shared_ptr<PluginDevice> device, int compute)
      : device_(std::move(device)), compute_(compute) {}

  const std::shared_ptr<PluginDevice> device_;  // of all virtual devices
  absl::Status problem_;
  std::unique_ptr<FakeStream> streams_[4];
  const int compute_;
  TensorMemory* tensor_memory_ = nullptr;
  uint64_t memory_limit_ = 0;
};

inline std::optional<AllocatorStats> FakeDevice::Stats() {
  WithCanary<capi::SP_AllocatorStats> c(device_->sizes.allocator_stats);
  const bool has_stats = fns().get_allocator_stats(c_device(), c.get());
  Check(c.intact(), "get_allocator_stats wrote beyond its SP_AllocatorStats");
  if (!has_stats) return std::nullopt;
  Check(c->struct_size != 0, "SP_AllocatorStats::struct_size is 0");
  const capi::SP_AllocatorStats from = c.Read();
  AllocatorStats stats;
  stats.num_allocs = from.num_allocs;
  stats.bytes_in_use = from.bytes_in_use;
  stats.peak_bytes_in_use = from.peak_bytes_in_use;
  stats.largest_alloc_size = from.largest_alloc_size;
  if (from.has_bytes_limit) stats.bytes_limit = from.bytes_limit;
  stats.bytes_reserved = from.bytes_reserved;
  stats.peak_bytes_reserved = from.peak_bytes_reserved;
  if (from.has_bytes_reservable_limit) {
    stats.bytes_reservable_limit = from.bytes_reservable_limit;
  }
  stats.largest_free_block_bytes = from.largest_free_block_bytes;
  return stats;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_DEVICE_H_
