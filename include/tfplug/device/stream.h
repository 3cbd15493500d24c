// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_STREAM_H_
#define TFPLUG_DEVICE_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/event.h"
#include "tfplug/device/host_task.h"
#include "tfplug/device/internal/device_state.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The options with which TensorFlow creates a stream (SP_StreamOptions, since
// 2.22), for a Stream with a constructor from (Device&, StreamOptions). Older
// releases pass no options.
struct StreamOptions {
  bool has_priority = false;
  int priority = 0;  // in the device's own units
};

// A queue of work on the device (SP_Stream). Work on one stream runs in order;
// streams run concurrently. The template arguments are the author's stream
// class itself, its event class and, optionally, its timer class:
//
//   class Stream : public tfplug::Stream<Stream, Event> { ... };
//
// Constructed by create_stream with `Device&` if there is such a constructor,
// otherwise without arguments. Destroyed by destroy_stream, after TensorFlow
// has waited for its work. TensorFlow creates four for each device: compute,
// host to device, device to host, device to device.
//
// Threads: any, even for one stream: TensorFlow's threads enqueue work as ops
// become ready, without a lock around the calls. No hook except
// BlockHostUntilDone may block.
template <class Self, class EventT, class TimerT = HostTimer>
class Stream {
 public:
  using Event = EventT;
  using Timer = TimerT;

  virtual ~Stream() = default;

  // Is called once after construction. If it fails, so does create_stream.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // get_stream_status: returns the first error of the work that has run on this
  // stream. Asynchronous errors reach TensorFlow only through this hook,
  // BlockHostUntilDone, Event::BlockHost and Device::SynchronizeAllActivity.
  // Thread: any; must not block.
  virtual absl::Status GetStatus() = 0;

  // create_stream_dependency: makes work enqueued here from now on wait for all
  // work enqueued on `other` so far. Default: RecordEvent on the other stream,
  // with an event kept for this purpose, and WaitForEvent on this one.
  virtual absl::Status WaitForStream(Self& other) {
    Stream& base = other;
    return base.state_.LetWait(self(), other);
  }

  // record_event: records `event`, which is reached once all work enqueued so
  // far is done.
  virtual absl::Status RecordEvent(Event& event) = 0;

  // wait_for_event: makes work enqueued from now on wait for the last recording
  // of `event`. Thread: any; must not block.
  virtual absl::Status WaitForEvent(Event& event) = 0;

  // memcpy_htod, memcpy_dtoh, memcpy_dtod: enqueue a copy of `size` bytes.
  // TensorFlow keeps both sides alive until the copy is done; host memory need
  // not be page-locked. A copy to the device may read `src` as soon as it is
  // called: TensorFlow has written it by then. Before a copy to the device that TensorFlow has not
  // ordered, tfplug calls WaitForStream: see Device::kUploadsWaitForKernels.
  virtual absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                        uint64_t size) = 0;
  virtual absl::Status CopyDeviceToHost(void* dst, DeviceMemory src,
                                        uint64_t size) = 0;
  virtual absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                          uint64_t size) = 0;

  // mem_zero: enqueues zeroing of `size` bytes. Default: Memset with a zero
  // byte.
  virtual absl::Status MemZero(DeviceMemory dst, uint64_t size) {
    return self().Self::Memset(dst, BytePattern{0}, size);
  }
  // memset: enqueues filling `size` bytes with the pattern. C slot since 2.7.
  virtual absl::Status Memset(DeviceMemory dst, BytePattern pattern,
                              uint64_t size) = 0;
  // memset32: enqueues filling `size` bytes, a multiple of 4, with the pattern.
  // Default: Memset if the four bytes are equal; otherwise Memset of each byte of
  // the first word, and copies that double what is filled.
  virtual absl::Status Memset32(DeviceMemory dst, WordPattern pattern,
                                uint64_t size) {
    const uint8_t first = pattern.value & 0xff;
    if (size == 0 || pattern.value == first * 0x01010101u) {
      return self().Self::Memset(dst, BytePattern{first}, size);
    }
    if (size % 4 != 0) {
      return absl::InvalidArgumentError(
          "memset32 needs a size that is a multiple of 4");
    }
    uint8_t bytes[4];
    std::memcpy(bytes, &pattern.value, sizeof(bytes));
    char* const begin = static_cast<char*>(dst.opaque());
    for (uint64_t i = 0; i < sizeof(bytes); ++i) {
      TFPLUG_RETURN_IF_ERROR(self().Self::Memset(
          DeviceMemory(begin + i, 1, dst.payload()), BytePattern{bytes[i]}, 1));
    }
    for (uint64_t filled = sizeof(bytes); filled < size; filled *= 2) {
      const uint64_t n = std::min(filled, size - filled);
      TFPLUG_RETURN_IF_ERROR(self().Self::CopyDeviceToDevice(
          DeviceMemory(begin + filled, n, dst.payload()),
          DeviceMemory(begin, n, dst.payload()), n));
    }
    return absl::OkStatus();
  }

  // host_callback: enqueues `task`. If this returns OK, the stream must run the
  // task exactly once (see HostTask); if it returns an error, the task must not
  // run. Thread: any; the task itself runs on a thread of the plug-in, or on
  // this one if the stream has no other work.
  virtual absl::Status RunOnHost(HostTask task) = 0;

  // block_host_until_done: blocks the calling thread until all work enqueued so
  // far is done, and returns the error of that work, if any. Default: null;
  // TensorFlow records an event and waits for it. Thread: any; the caller
  // blocks; also before each destroy_stream.
  virtual absl::Status BlockHostUntilDone() {
    return absl::UnimplementedError("override Stream::BlockHostUntilDone");
  }

  // start_timer, stop_timer: enqueue the start and the end of the timer's
  // measurement. Default: a host task that stores a time stamp in HostTimer; a
  // timer of another class needs the hook. Thread: any; never called
  // after 2.13.
  virtual absl::Status StartTimer(Timer& timer) {
    if constexpr (std::is_base_of_v<HostTimer, Timer>) {
      return self().Self::RunOnHost(timer.MakeStartTask());
    }
    return absl::UnimplementedError("override Stream::StartTimer");
  }
  virtual absl::Status StopTimer(Timer& timer) {
    if constexpr (std::is_base_of_v<HostTimer, Timer>) {
      return self().Self::RunOnHost(timer.MakeStopTask());
    }
    return absl::UnimplementedError("override Stream::StopTimer");
  }

 private:
  friend struct internal::Access;

  Self& self() { return static_cast<Self&>(*this); }

  device_internal::StreamState<Event> state_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_STREAM_H_
