// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_EVENT_H_
#define TFPLUG_DEVICE_EVENT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tfplug {

// SE_EventStatus, value for value.
enum class EventStatus {
  kUnknown = 0,
  kError = 1,
  kPending = 2,
  kComplete = 3
};

// A point in a stream's work (SP_Event): recorded by Stream::RecordEvent,
// waited for by streams and by the host. Made by create_event with `Device&` if
// there is such a constructor, else with nothing; destroyed by destroy_event.
//
// An event may be recorded again. Who began to wait before that waits for the
// point recorded then.
class Event {
 public:
  virtual ~Event() = default;

  // Called once after construction; a failure fails create_event.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_StreamExecutor -------------------------------------------------

  // get_event_status. Must not block; called by core's polling thread. After a
  // failure, which is logged, and after kUnknown, BlockHost decides; kError
  // reaches core as it is. Core ends the process on an event in error: return
  // it for work that has failed, not for a poll that has.
  virtual absl::StatusOr<EventStatus> Poll() = 0;

  // block_host_for_event. Blocks the calling thread until the recorded point is
  // reached; returns the error of the work before it, if there was one.
  virtual absl::Status BlockHost() = 0;
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_EVENT_H_
