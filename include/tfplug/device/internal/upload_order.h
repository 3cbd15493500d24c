// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_
#define TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/status/status.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <pthread.h>
#endif

// Core hands memory on as soon as the kernel that reads it is enqueued. It has
// a copy from the host wait for the kernels where it moves a tensor, and not
// where it makes a constant: that could be written over what a kernel has yet
// to read (docs/measured/tensorflow_behaviour.md). So a copy that core has not
// ordered is.
//
// Core orders one by create_stream_dependency, on the thread and the stream of
// the copy and right before it; behind the copy, or where there are no bytes to
// copy, comes record_event. No lock of core's is around that.
namespace tfplug::internal {

// An address that no other living thread has. A thread_local variable would be
// a call from a library that is loaded later, as plug-ins are.
inline const void* ThisThread() {
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

// Which thread has the next word on a stream: core has ordered its copy. Only
// the thread itself enters its address, so that what it reads of its own is
// never stale; that another one's is lost costs no more than a wait.
class OrderedUpload {
 public:
  void Give() { thread_.store(ThisThread(), std::memory_order_relaxed); }
  void End() { thread_.store(nullptr, std::memory_order_relaxed); }
  // Whether it was this thread's, which it is once.
  bool Take() {
    if (thread_.load(std::memory_order_relaxed) != ThisThread()) return false;
    End();
    return true;
  }

 private:
  std::atomic<const void*> thread_{nullptr};
};

// The streams of a device that core holds. Any thread.
template <class StreamT>
class StreamList {
 public:
  void Add(StreamT* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.push_back(stream);
  }
  // Returns when nobody waits for `stream` any more.
  void Remove(StreamT* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(std::remove(streams_.begin(), streams_.end(), stream),
                   streams_.end());
  }
  // What is enqueued on `stream` from now on waits for all that the others hold
  // by now. Waits are for what came before, so there is no circle of them.
  absl::Status WaitForOthers(StreamT& stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (StreamT* other : streams_) {
      if (other == &stream) continue;
      absl::Status status = stream.StreamT::WaitForStream(*other);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::vector<StreamT*> streams_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_UPLOAD_ORDER_H_
