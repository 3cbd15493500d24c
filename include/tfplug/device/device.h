// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_DEVICE_H_
#define TFPLUG_DEVICE_DEVICE_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/internal/upload_order.h"
#include "tfplug/device/stream.h"

namespace tfplug {

namespace internal {
template <class DeviceT>
struct PlatformFnsTable;
template <class DeviceT>
struct StreamExecutorTable;
}  // namespace internal

// One device (SP_Device): /device:<Platform::kType>:<ordinal>. The author's
// class names its stream, which names event and timer, and its allocator:
//
//   class Device : public tfplug::Device<Stream, Memory> {
//    public:
//     explicit Device(int ordinal);
//
// Made by create_device with `(Platform&, int)`, the author's platform and the
// ordinal from 0 on, if there is such a constructor; else with the ordinal
// alone, or with nothing; destroyed by destroy_device.
template <class StreamT, class AllocatorT>
class Device {
 public:
  using Stream = StreamT;
  using Event = typename StreamT::Event;
  using Timer = typename StreamT::Timer;
  using Allocator = AllocatorT;

  // Core copies a function's constants to memory that kernels on other streams
  // may have yet to read, and does not have the copy wait. With true, such a
  // copy's stream first waits for all that the device's other streams hold
  // (WaitForStream); a copy for which core itself has called
  // create_stream_dependency goes ahead at once. A device may say
  //
  //   static constexpr bool kUploadsWaitForKernels = false;
  //
  // and saves those waits, where no copy can overtake a kernel: its streams do
  // their work at once or share one queue, or its allocator gives memory out
  // again only when the device is done with it.
  static constexpr bool kUploadsWaitForKernels = true;

  virtual ~Device() = default;

  // Called once after construction; a failure fails create_device, and with it
  // whatever TensorFlow was asked to do first with this device.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_Device ---------------------------------------------------------

  // hardware_name, device_vendor, pci_bus_id, asked once, after Init. Empty:
  // the field stays null. Shown to people; the bus id reads "0000:00:02.1".
  virtual std::string HardwareName() { return ""; }
  virtual std::string Vendor() { return ""; }
  virtual std::string PciBusId() { return ""; }

  // ---- SP_DeviceFns ------------------------------------------------------

  // get_numa_node; -1 is unknown. Default 0, which core assumes too: up to 2.21
  // it makes its devices without asking, and logs a line that it did.
  virtual int32_t NumaNode() { return 0; }
  // get_memory_bandwidth, bytes a second; get_gflops. Null when not overridden.
  virtual int64_t MemoryBandwidth() { return -1; }
  virtual double Gflops() { return -1; }

  // ---- SP_StreamExecutor -------------------------------------------------

  // synchronize_all_activity: block the calling thread until all streams of
  // the device have done their work, and return its error.
  virtual absl::Status SynchronizeAllActivity() = 0;

  // sync_memcpy_htod, sync_memcpy_dtoh, sync_memcpy_dtod: copy `size` bytes and
  // return when that is done. Any thread. Default: the stream's copy, on a
  // stream that the framework keeps for this, and a wait for it.
  virtual absl::Status CopyHostToDeviceSync(DeviceMemory dst, const void* src,
                                            uint64_t size) {
    return Synchronously([&](Stream& stream) {
      return stream.StreamT::CopyHostToDevice(dst, src, size);
    });
  }
  virtual absl::Status CopyDeviceToHostSync(void* dst, DeviceMemory src,
                                            uint64_t size) {
    return Synchronously([&](Stream& stream) {
      return stream.StreamT::CopyDeviceToHost(dst, src, size);
    });
  }
  virtual absl::Status CopyDeviceToDeviceSync(DeviceMemory dst,
                                              DeviceMemory src, uint64_t size) {
    return Synchronously([&](Stream& stream) {
      return stream.StreamT::CopyDeviceToDevice(dst, src, size);
    });
  }

  // ------------------------------------------------------------------------

  // The device's allocator. Not yet there in the constructor and in Init.
  Allocator& allocator() { return *allocator_; }

 private:
  template <class>
  friend struct internal::PlatformFnsTable;
  template <class>
  friend struct internal::StreamExecutorTable;

  // Calls are qualified by such names: `Event::` could name tfplug::Event.
  using EventT = Event;

  template <class Enqueue>
  absl::Status Synchronously(Enqueue enqueue) {
    std::lock_guard<std::mutex> lock(synchronous_mutex_);
    absl::Status status = enqueue(*synchronous_stream_);
    if (status.ok()) {
      status = synchronous_stream_->StreamT::RecordEvent(*synchronous_event_);
    }
    if (status.ok()) status = synchronous_event_->EventT::BlockHost();
    return status;
  }

  // The first two are for the synchronous copies' defaults; null where all of
  // those are overridden. All three go before the author's class does.
  std::mutex synchronous_mutex_;
  internal::Owned<Stream> synchronous_stream_;
  internal::Owned<Event> synchronous_event_;
  internal::Owned<Allocator> allocator_;

  internal::StreamList<Stream> streams_;
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_DEVICE_H_
