// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_DEVICE_STATE_H_
#define TFPLUG_DEVICE_INTERNAL_DEVICE_STATE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "absl/status/status.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/device/internal/upload_order.h"

#pragma GCC visibility push(hidden)

// The state that tfplug keeps in an author's objects. It is the only private
// data member of each base class, and is accessed through
// internal::Access::state.
namespace tfplug::device_internal {

// Returns the trace_id of the next stream of a device.
inline uint32_t NextTraceId(int ordinal) {
  static std::atomic<uint32_t> streams[64];
  const auto device = static_cast<uint32_t>(ordinal);
  return (device + 1) << 16 | (streams[device % 64].fetch_add(1) + 1);
}

// State of a tfplug::Stream.
template <class EventT>
struct StreamState {
  OrderedUpload ordered_upload;

  // Identifies a stream of TensorFlow's in profiles: the device's ordinal plus
  // one in the upper half, the stream's number on it, from 1, in the lower.
  uint32_t trace_id = 0;
  void* device = nullptr;  // the author's Device, for profiles

  // For the default of WaitForStream; null if the author overrides it.
  std::mutex fence_mutex;
  internal::Owned<EventT> fence;

  // Implements the default of WaitForStream: `waiting` waits for `other`, to
  // which this state belongs. Thread-safe.
  template <class StreamT>
  absl::Status LetWait(StreamT& waiting, StreamT& other) {
    {
      std::lock_guard<std::mutex> lock(fence_mutex);
      if (auto s = other.StreamT::RecordEvent(*fence); !s.ok()) return s;
      if (auto s = waiting.StreamT::WaitForEvent(*fence); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
};

// State of a tfplug::Device.
template <class StreamT, class EventT, class AllocatorT>
struct DeviceState {
  StreamList<StreamT> streams;
  internal::Owned<AllocatorT> allocator;

  // For the defaults of SynchronizeAllActivity and of the synchronous copies;
  // null if the author overrides all four.
  std::mutex synchronous_mutex;
  internal::Owned<StreamT> synchronous_stream;
  internal::Owned<EventT> synchronous_event;

  // Calls `enqueue` with the synchronous stream, waits for the work that it
  // enqueued and returns the first error. Blocks; concurrent calls run one
  // after the other.
  template <class Enqueue>
  absl::Status EnqueueAndWait(Enqueue enqueue) {
    std::lock_guard<std::mutex> lock(synchronous_mutex);
    StreamT& stream = *synchronous_stream;
    EventT& event = *synchronous_event;
    absl::Status status = enqueue(stream);
    if (status.ok()) status = stream.StreamT::RecordEvent(event);
    if (status.ok()) status = event.EventT::BlockHost();
    return status;
  }

  // Destroys the parts, each before the parts that it may use. Must be called
  // before the author's Device is destroyed, because all of them may use it.
  void Clear() {
    synchronous_event.reset();
    synchronous_stream.reset();
    allocator.reset();
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_DEVICE_STATE_H_
