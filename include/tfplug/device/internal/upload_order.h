// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_
#define TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <pthread.h>
#endif

#pragma GCC visibility push(hidden)

// TensorFlow reuses memory as soon as the kernel that reads it is enqueued.
// When it moves a tensor to the device, it makes the copy wait for the kernels,
// but not when it creates a constant: that copy could overwrite memory that an
// enqueued kernel still has to read (docs/measured/tensorflow_behavior.md).
// tfplug therefore orders each copy that TensorFlow has not ordered.
//
// TensorFlow orders a copy by calling create_stream_dependency immediately
// before it, on the same thread and for the same stream. After the copy, or in
// place of a copy of no bytes, it calls record_event. It holds no lock around
// these calls.
namespace tfplug {

template <class StreamT, class AllocatorT>
class Device;
template <class Self, class EventT, class TimerT>
class Stream;

namespace device_internal {

// Returns an address that no other running thread has. A thread_local variable
// would cost a function call in a library that is loaded at run time, as
// plug-ins are.
inline const void* CurrentThread() {
#if defined(__x86_64__) && !defined(__ILP32__)
  const void* thread;
  asm("movq %%fs:0, %0" : "=r"(thread));
  return thread;
#elif defined(__aarch64__)
  return __builtin_thread_pointer();
#else
  return reinterpret_cast<const void*>(pthread_self());
#endif
}

// Marks the thread whose next copy on a stream TensorFlow has ordered.
// Relaxed atomics suffice: only a thread itself stores its address, so it never
// reads a stale one; if another thread overwrites the mark, the only cost is a
// needless wait.
class OrderedUpload {
 public:
  void MarkOrdered() {
    thread_.store(CurrentThread(), std::memory_order_relaxed);
  }
  void Clear() { thread_.store(nullptr, std::memory_order_relaxed); }
  // Returns whether this thread's copy is ordered, and clears the mark if so.
  bool ConsumeOrdered() {
    if (thread_.load(std::memory_order_relaxed) != CurrentThread()) {
      return false;
    }
    Clear();
    return true;
  }

 private:
  std::atomic<const void*> thread_{nullptr};
};

// The streams that TensorFlow has created on a device; owns none. Thread-safe.
template <class StreamT>
class StreamList {
 public:
  void Add(StreamT* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.push_back(stream);
  }
  // Removes `stream` once no other thread is making a stream wait for it.
  void Remove(StreamT* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(std::remove(streams_.begin(), streams_.end(), stream),
                   streams_.end());
  }
  // Makes work enqueued on `stream` from now on wait for all work enqueued so
  // far on the other streams. Since the waits refer only to earlier work, they
  // cannot form a cycle. Waits for all of them even if a wait fails, and returns
  // the first error.
  absl::Status WaitForOthers(StreamT& stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::Status status;
    for (StreamT* other : streams_) {
      if (other != &stream)
        status.Update(stream.StreamT::WaitForStream(*other));
    }
    return status;
  }

 private:
  std::mutex mutex_;
  std::vector<StreamT*> streams_;
};

// Wraps the hooks that take part in the ordering. If
// Device::kUploadsWaitForKernels is false, each function only calls its hook.
template <class DeviceT>
struct UploadOrder {
  static constexpr bool kIsOn = DeviceT::kUploadsWaitForKernels;
  using StreamT = typename DeviceT::Stream;
  using EventT = typename DeviceT::Event;

  static void Add(DeviceT& device, StreamT* stream) {
    Streams(device).Add(stream);
  }
  static void Remove(DeviceT& device, StreamT* stream) {
    Streams(device).Remove(stream);
  }

  static absl::Status WaitForStream(StreamT& dependent, StreamT& other) {
    absl::Status status = dependent.StreamT::WaitForStream(other);
    if constexpr (kIsOn) {
      if (ABSL_PREDICT_TRUE(status.ok())) Upload(dependent).MarkOrdered();
    }
    return status;
  }

  static absl::Status RecordEvent(StreamT& stream, EventT& event) {
    if constexpr (kIsOn) Upload(stream).Clear();
    return stream.StreamT::RecordEvent(event);
  }

  // Returns whether the next copy to the device on `stream` has to wait for the
  // other streams. Returns false once after each WaitForStream on this thread.
  static bool MustWait([[maybe_unused]] StreamT& stream) {
    if constexpr (kIsOn) return !Upload(stream).ConsumeOrdered();
    return false;
  }
  static absl::Status Wait(DeviceT& device, StreamT& stream) {
    return Streams(device).WaitForOthers(stream);
  }

 private:
  template <class StreamU, class AllocatorT>
  static auto& Streams(tfplug::Device<StreamU, AllocatorT>& device) {
    return internal::Access::state(device).streams;
  }
  template <class Self, class EventU, class TimerT>
  static OrderedUpload& Upload(tfplug::Stream<Self, EventU, TimerT>& stream) {
    return internal::Access::state(stream).ordered_upload;
  }
};

}  // namespace device_internal
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_
