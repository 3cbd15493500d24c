// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_EVENT_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_EVENT_SLOTS_H_

#include "absl/base/optimization.h"
#include "tfplug/abi/enums.h"
#include "tfplug/abi/sp_device.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/upload_order.h"
#include "tfplug/device/internal/value_or_log.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_StreamExecutor for events.
template <class DeviceT>
struct EventSlots {
  using H = Handles<DeviceT>;
  using EventT = typename H::EventT;
  using StreamT = typename H::StreamT;

  static void create_event(const capi::SP_Device* device, capi::SP_Event* event,
                           capi::TF_Status* status) {
    internal::Guard(status, "create_event", [&] {
      return internal::CreateHandle<EventT>(event, H::ToDevice(device));
    });
  }

  static void destroy_event(const capi::SP_Device*, capi::SP_Event event) {
    internal::Destroy("destroy_event", reinterpret_cast<EventT*>(event));
  }

  // TensorFlow aborts on any result other than pending and complete. A failed
  // poll does not mean that the work failed, so the result of waiting for the
  // event is returned instead.
  static capi::SE_EventStatus get_event_status(const capi::SP_Device*,
                                               capi::SP_Event event) {
    const internal::StackSlot<EventT*> self = &H::ToEvent(event);
    EventStatus result =
        ValueOrLog("get_event_status", EventStatus::kUnknown,
                   [&] { return H::ToEvent(event).EventT::Poll(); });
    if (ABSL_PREDICT_FALSE(result < EventStatus::kPending)) {
      result = WaitAfterPoll(*self, result);
    }
    return static_cast<capi::SE_EventStatus>(result);
  }

  // TensorFlow 2.21 ignores this status and polls the event anyway, and the
  // event must not be complete before the work is. After a failure, this
  // function therefore waits for all work of the device.
  static void record_event(const capi::SP_Device* device,
                           capi::SP_Stream stream, capi::SP_Event event,
                           capi::TF_Status* status) {
    const internal::StackSlot<const capi::SP_Device*> kept = device;
    internal::Guard(
        status, "record_event",
        [&] {
          return UploadOrder<DeviceT>::RecordEvent(H::ToStream(stream),
                                                   H::ToEvent(event));
        },
        [&] { WaitForAllWork(kept); });
  }

  static void wait_for_event(const capi::SP_Device*, capi::SP_Stream stream,
                             capi::SP_Event event, capi::TF_Status* status) {
    internal::Guard(status, "wait_for_event", [&] {
      return H::ToStream(stream).StreamT::WaitForEvent(H::ToEvent(event));
    });
  }

  static void block_host_for_event(const capi::SP_Device*, capi::SP_Event event,
                                   capi::TF_Status* status) {
    internal::Guard(status, "block_host_for_event",
                    [&] { return H::ToEvent(event).EventT::BlockHost(); });
  }

 private:
  [[gnu::cold, gnu::noinline]] static EventStatus WaitAfterPoll(
      EventT& event, EventStatus polled) {
    const bool is_done = internal::GuardOrLog(
        "get_event_status", [&] { return event.EventT::BlockHost(); });
    if (polled == EventStatus::kError || !is_done) return EventStatus::kError;
    return EventStatus::kComplete;
  }

  [[gnu::cold, gnu::noinline]] static void WaitForAllWork(
      const capi::SP_Device* device) {
    internal::GuardOrLog("synchronize_all_activity", [&] {
      return H::ToDevice(device).DeviceT::SynchronizeAllActivity();
    });
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_EVENT_SLOTS_H_
