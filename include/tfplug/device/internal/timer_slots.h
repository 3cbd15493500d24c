// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_TIMER_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_TIMER_SLOTS_H_

#include <cstdint>

#include "tfplug/abi/sp_device.h"
#include "tfplug/abi/sp_timer_fns.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/value_or_log.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_StreamExecutor for timers.
template <class DeviceT>
struct TimerSlots {
  using H = Handles<DeviceT>;
  using StreamT = typename H::StreamT;
  using TimerT = typename H::TimerT;

  static void create_timer(const capi::SP_Device* device, capi::SP_Timer* timer,
                           capi::TF_Status* status) {
    internal::Guard(status, "create_timer", [&] {
      return internal::CreateHandle<TimerT>(timer, H::ToDevice(device));
    });
  }

  static void destroy_timer(const capi::SP_Device*, capi::SP_Timer timer) {
    internal::Destroy("destroy_timer", reinterpret_cast<TimerT*>(timer));
  }

  static void start_timer(const capi::SP_Device*, capi::SP_Stream stream,
                          capi::SP_Timer timer, capi::TF_Status* status) {
    internal::Guard(status, "start_timer", [&] {
      return H::ToStream(stream).StreamT::StartTimer(H::ToTimer(timer));
    });
  }

  static void stop_timer(const capi::SP_Device*, capi::SP_Stream stream,
                         capi::SP_Timer timer, capi::TF_Status* status) {
    internal::Guard(status, "stop_timer", [&] {
      return H::ToStream(stream).StreamT::StopTimer(H::ToTimer(timer));
    });
  }
};

// The trampolines of SP_TimerFns.
template <class DeviceT>
struct TimerFnsTable {
  using H = Handles<DeviceT>;
  using TimerT = typename H::TimerT;

  static uint64_t nanoseconds(capi::SP_Timer timer) {
    return ValueOrLog("nanoseconds", uint64_t{0},
                      [&] { return H::ToTimer(timer).TimerT::Nanoseconds(); });
  }

  static capi::SP_TimerFns Make() {
    capi::SP_TimerFns table = {};
    table.struct_size = capi::StructInfo<capi::SP_TimerFns>::kSize;
    table.nanoseconds = &nanoseconds;
    return table;
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_TIMER_SLOTS_H_
