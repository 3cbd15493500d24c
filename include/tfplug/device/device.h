// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_DEVICE_H_
#define TFPLUG_DEVICE_DEVICE_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/event.h"
#include "tfplug/device/internal/device_state.h"
#include "tfplug/device/stream.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace device_internal {

// The event and timer classes of a stream. TFPLUG_REGISTER_DEVICE refuses a
// class that has none, or hides them, with a sentence.
template <class StreamT, class = void>
struct ClassesOf {
  using Event = tfplug::Event;
  using Timer = HostTimer;
};
template <class StreamT>
struct ClassesOf<
    StreamT, std::void_t<typename StreamT::Event, typename StreamT::Timer>> {
  using Event = typename StreamT::Event;
  using Timer = typename StreamT::Timer;
};

}  // namespace device_internal

// One device (SP_Device): /device:<Platform::kType>:<ordinal>. The template
// arguments are the author's stream class, which has the event and timer
// classes as its arguments, and the author's allocator class:
//
//   class Device : public tfplug::Device<Stream, Memory> {
//    public:
//     explicit Device(int ordinal);
//
// Constructed by create_device with `(Platform&, int)`, the author's platform
// and the ordinal (from 0), if there is such a constructor; otherwise with the
// ordinal alone, or without arguments. Destroyed by destroy_device.
//
// Threads: first use, except where a hook's comment names another.
template <class StreamT, class AllocatorT>
class Device {
 public:
  using Stream = StreamT;
  using Event = typename device_internal::ClassesOf<StreamT>::Event;
  using Timer = typename device_internal::ClassesOf<StreamT>::Timer;
  using Allocator = AllocatorT;

  // TensorFlow copies the constants of functions to memory that enqueued
  // kernels may still have to read, without making the copy wait for them. If
  // this is true, the stream of such a copy first waits for all work on the
  // device's other streams (WaitForStream). A copy that TensorFlow has ordered
  // with create_stream_dependency starts without these waits. A device may
  // declare
  //
  //   static constexpr bool kUploadsWaitForKernels = false;
  //
  // to avoid those waits if no copy can overtake a kernel: if its streams run
  // their work immediately or share one queue, or if its allocator reuses
  // memory only after the device has finished with it.
  static constexpr bool kUploadsWaitForKernels = true;

  virtual ~Device() = default;

  // Is called once after construction. If it fails, so do create_device and the
  // operation for which TensorFlow needed the device.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_Device ---------------------------------------------------------

  // hardware_name, device_vendor, pci_bus_id: return human-readable
  // descriptions, read once after Init; the bus id has the form "0000:00:02.1".
  // Default: null, as for an empty string.
  virtual std::string HardwareName() { return ""; }
  virtual std::string Vendor() { return ""; }
  virtual std::string PciBusId() { return ""; }

  // ---- SP_DeviceFns ------------------------------------------------------

  // get_numa_node: returns the NUMA node of the device, or -1 if it is unknown,
  // which TensorFlow logs for each device. Default: 0.
  virtual int32_t NumaNode() { return 0; }
  // get_memory_bandwidth: returns the bandwidth of the device's memory in bytes
  // per second. Default: null.
  virtual int64_t MemoryBandwidth() { return -1; }
  // get_gflops: returns the estimated speed in 1e9 floating-point operations
  // per second. Default: null. Thread: none; no release calls it.
  virtual double Gflops() { return -1; }

  // ---- SP_StreamExecutor -------------------------------------------------

  // synchronize_all_activity: blocks the calling thread until all streams of
  // the device have finished their work, and returns the error of that work, if
  // any. Default: a stream that is kept for this purpose waits for all others,
  // and the thread for it. Thread: any; the caller blocks.
  virtual absl::Status SynchronizeAllActivity() {
    absl::Status status;
    const absl::Status waited = state_.EnqueueAndWait([&](Stream& stream) {
      // The error of one stream does not end the wait for the others.
      status = state_.streams.WaitForOthers(stream);
      return absl::OkStatus();
    });
    status.Update(waited);
    return status;
  }

  // sync_memcpy_htod, sync_memcpy_dtoh, sync_memcpy_dtod: copy `size` bytes and
  // return when the copy is complete. Default: the stream's copy, on a stream
  // that is kept for this purpose, and a wait. Thread: any; the caller blocks.
  virtual absl::Status CopyHostToDeviceSync(DeviceMemory dst, const void* src,
                                            uint64_t size) {
    return state_.EnqueueAndWait([&](Stream& stream) {
      return stream.StreamT::CopyHostToDevice(dst, src, size);
    });
  }
  virtual absl::Status CopyDeviceToHostSync(void* dst, DeviceMemory src,
                                            uint64_t size) {
    return state_.EnqueueAndWait([&](Stream& stream) {
      return stream.StreamT::CopyDeviceToHost(dst, src, size);
    });
  }
  virtual absl::Status CopyDeviceToDeviceSync(DeviceMemory dst,
                                              DeviceMemory src, uint64_t size) {
    return state_.EnqueueAndWait([&](Stream& stream) {
      return stream.StreamT::CopyDeviceToDevice(dst, src, size);
    });
  }

  // ---- Profiles ----------------------------------------------------------

  // Returns the time now, in nanoseconds on the clock of Timer::GetTimes. The
  // clock may begin anywhere and drift: tfplug compares it with the host's at
  // the start and at the end of a profile. Thread: the one that starts and
  // stops the profile; blocks as briefly as possible.
  virtual absl::StatusOr<uint64_t> GetTime() {
    return absl::UnimplementedError("override Device::GetTime");
  }

  // ------------------------------------------------------------------------

  // Returns the device's allocator, which is constructed after Init has
  // returned.
  Allocator& allocator() { return *state_.allocator; }

 private:
  friend struct internal::Access;

  device_internal::DeviceState<Stream, Event, Allocator> state_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_DEVICE_H_
