// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_STREAM_H_
#define TFPLUG_DEVICE_STREAM_H_

#include <cstdint>
#include <mutex>
#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/device/event.h"
#include "tfplug/device/host_task.h"
#include "tfplug/device/internal/upload_order.h"
#include "tfplug/device/timer.h"

namespace tfplug {

// What core asks of a new stream, in releases that say so (SP_StreamOptions,
// from 2.22 on). A Stream with a constructor (Device&, StreamOptions) gets it.
struct StreamOptions {
  bool has_priority = false;
  int priority = 0;
};

namespace internal {
template <class DeviceT>
struct StreamExecutorTable;
}

// A queue of work on the device (SP_Stream). Work of one stream runs in order;
// streams run beside each other. The author's class names itself, its event
// and, if it has one, its timer:
//
//   class Stream : public tfplug::Stream<Stream, Event> { ... };
//
// Made by create_stream with `Device&` if there is such a constructor, else
// with nothing; destroyed by destroy_stream, by which time core has waited for
// its work. Core makes four a device: compute, host to device, device to host,
// device to device.
//
// Threads: any, several at once, also on one stream: TensorFlow's threads
// enqueue as ops become ready, and no lock of core's is between them. No hook
// but BlockHostUntilDone may block.
template <class Self, class EventT, class TimerT = HostTimer>
class Stream {
 public:
  using Event = EventT;
  using Timer = TimerT;

  virtual ~Stream() = default;

  // Called once after construction; a failure fails create_stream.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // get_stream_status: without blocking, the first error of work on this
  // stream that has run. Asynchronous errors reach TensorFlow only here and by
  // BlockHostUntilDone.
  virtual absl::Status GetStatus() = 0;

  // create_stream_dependency: work enqueued here from now on waits for all
  // that is enqueued on `other` by now. Default: RecordEvent on `other`, of an
  // event that it keeps for this, and WaitForEvent here.
  virtual absl::Status WaitForStream(Self& other) {
    Stream& base = other;
    {
      std::lock_guard<std::mutex> lock(base.fence_mutex_);
      Event& fence = *base.fence_;
      if (auto s = other.Self::RecordEvent(fence); !s.ok()) return s;
      if (auto s = self().Self::WaitForEvent(fence); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // record_event: `event` is reached once all work enqueued by now is done.
  virtual absl::Status RecordEvent(Event& event) = 0;

  // wait_for_event: work enqueued from now on waits for the point at which
  // `event` was recorded last. Must not block the host.
  virtual absl::Status WaitForEvent(Event& event) = 0;

  // memcpy_htod, memcpy_dtoh, memcpy_dtod: enqueue a copy of `size` bytes.
  // Core keeps both sides alive until the stream has come past it; the host
  // side need not be page-locked. Before a copy to the device that core has not
  // ordered comes WaitForStream: see Device::kUploadsWaitForKernels.
  virtual absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                        uint64_t size) = 0;
  virtual absl::Status CopyDeviceToHost(void* dst, DeviceMemory src,
                                        uint64_t size) = 0;
  virtual absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                          uint64_t size) = 0;

  // mem_zero: enqueue zeroing of `size` bytes. Default: Memset.
  virtual absl::Status MemZero(DeviceMemory dst, uint64_t size) {
    return self().Self::Memset(dst, BytePattern{0}, size);
  }
  // memset: enqueue filling `size` bytes with the pattern. Slots since 2.7.
  virtual absl::Status Memset(DeviceMemory dst, BytePattern pattern,
                              uint64_t size) = 0;
  // memset32: the same with four bytes at a time; `size` is a multiple of 4.
  // Default: Memset if the four are equal, else UNIMPLEMENTED.
  virtual absl::Status Memset32(DeviceMemory dst, WordPattern pattern,
                                uint64_t size) {
    const uint8_t byte = pattern.value & 0xff;
    if (pattern.value != byte * 0x01010101u) {
      return absl::UnimplementedError("override Memset32 for such patterns");
    }
    return self().Self::Memset(dst, BytePattern{byte}, size);
  }

  // host_callback: enqueue `task`. See HostTask for what accepting it means; on
  // a failure do not run it.
  virtual absl::Status RunOnHost(HostTask task) = 0;

  // block_host_until_done: block the calling thread until all work enqueued by
  // now is done, and return its error. Optional: where it is not overridden the
  // slot is null, and core records an event and waits for it.
  virtual absl::Status BlockHostUntilDone() {
    return absl::UnimplementedError("BlockHostUntilDone");
  }

  // start_timer, stop_timer. Default, for HostTimer: a stamp by a host task. A
  // timer of the author's own needs both.
  virtual absl::Status StartTimer(Timer& timer) {
    if constexpr (std::is_base_of_v<HostTimer, Timer>) {
      return self().Self::RunOnHost(timer.StartTask());
    }
    return absl::UnimplementedError("StartTimer");
  }
  virtual absl::Status StopTimer(Timer& timer) {
    if constexpr (std::is_base_of_v<HostTimer, Timer>) {
      return self().Self::RunOnHost(timer.StopTask());
    }
    return absl::UnimplementedError("StopTimer");
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  template <class>
  friend struct internal::StreamExecutorTable;

  // For WaitForStream's default; null where that is overridden.
  std::mutex fence_mutex_;
  internal::Owned<Event> fence_;

  internal::OrderedUpload upload_turn_;
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_STREAM_H_
