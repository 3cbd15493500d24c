// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_EVENT_H_
#define TFPLUG_DEVICE_EVENT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The status of an event, with the values of SE_EventStatus.
enum class EventStatus {
  kUnknown = 0,
  kError = 1,
  kPending = 2,
  kComplete = 3
};

// A point in a stream's work (SP_Event). Stream::RecordEvent records it;
// streams and the host wait for it. Constructed by create_event with `Device&`
// if there is such a constructor, otherwise without arguments; destroyed by
// destroy_event.
//
// An event may be recorded again. A wait that is already in progress refers to
// the earlier recording.
class Event {
 public:
  virtual ~Event() = default;

  // Is called once after construction. If it fails, so does create_event.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // get_event_status: returns whether the last recorded point has been reached.
  // After kUnknown, or an error status, which is logged, tfplug calls BlockHost
  // and reports kComplete if it succeeds, otherwise kError. TensorFlow aborts
  // on kError: return it only if the work before the event failed, not if
  // polling failed. Thread: polling; must not block.
  virtual absl::StatusOr<EventStatus> Poll() = 0;

  // block_host_for_event: blocks the calling thread until the recorded point
  // has been reached, and returns the error of the work before it, if any.
  // Thread: any; the caller blocks.
  virtual absl::Status BlockHost() = 0;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_EVENT_H_
