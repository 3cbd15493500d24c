// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_DEVICE_TIMES_H_
#define TFPLUG_DEVICE_INTERNAL_DEVICE_TIMES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/profiler/internal/device_clock.h"
#include "tfplug/profiler/internal/recorder.h"
#include "tfplug/profiler/internal/work_timers.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The author's timer around one piece of work, for profiles.
template <class DeviceT>
class AuthorTimer final : public profiler_internal::WorkTimer {
 public:
  using H = Handles<DeviceT>;
  using StreamT = typename H::StreamT;
  using TimerT = typename H::TimerT;

  // Starts `idle`, an AuthorTimer of the same device, or a new timer if it is
  // null. Returns null if the timer cannot be created or started.
  [[gnu::cold]] static std::unique_ptr<profiler_internal::WorkTimer> Start(
      capi::SP_Stream stream,
      std::unique_ptr<profiler_internal::WorkTimer> idle) {
    TFPLUG_INTERNAL_TRY {
      StreamT& on = H::ToStream(stream);
      typename H::StreamBase& base = on;
      if (idle == nullptr) {
        auto timer = internal::Create<TimerT>(
            *static_cast<DeviceT*>(internal::Access::state(base).device));
        if (!timer.ok()) return nullptr;
        idle.reset(new AuthorTimer(*std::move(timer)));
      }
      TimerT& timer = *static_cast<AuthorTimer&>(*idle).timer_;
      if (!on.StreamT::StartTimer(timer).ok()) return nullptr;
      return idle;
    }
    TFPLUG_INTERNAL_CATCH_ALL { return nullptr; }
    return nullptr;
  }

  [[gnu::cold]] bool Stop(capi::SP_Stream stream) override {
    TFPLUG_INTERNAL_TRY {
      return H::ToStream(stream).StreamT::StopTimer(*timer_).ok();
    }
    TFPLUG_INTERNAL_CATCH_ALL { return false; }
    return false;
  }

  [[gnu::cold]] State Read(uint64_t* begin_ns, uint64_t* end_ns) override {
    TFPLUG_INTERNAL_TRY {
      const absl::StatusOr<WorkTimes> times = timer_->TimerT::GetTimes();
      if (times.ok()) {
        *begin_ns = times->begin_ns;
        *end_ns = times->end_ns;
        return State::kDone;
      }
      if (absl::IsUnavailable(times.status())) return State::kPending;
      if (absl::IsNotFound(times.status())) return State::kNoWork;
    }
    TFPLUG_INTERNAL_CATCH_ALL {}
    return State::kFailed;
  }

 private:
  explicit AuthorTimer(internal::Owned<TimerT> timer)
      : timer_(std::move(timer)) {}

  const internal::Owned<TimerT> timer_;
};

// The devices with times of their own, whose clocks a profile reads.
template <class DeviceT>
class TimedDevices {
 public:
  static void Add(int64_t ordinal, DeviceT* device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ordinals_[device] = ordinal;
  }
  static void Remove(DeviceT* device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ordinals_.erase(device);
  }

  // Reads the devices' clocks: of several readings of one, the fastest is the
  // most precise.
  [[gnu::cold]] static void ReadClocks(
      profiler_internal::DeviceClocks& clocks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [device, ordinal] : ordinals_) {
      profiler_internal::DeviceClock::Reading best = {};
      for (int i = 0; i < kReadings; ++i) {
        profiler_internal::DeviceClock::Reading reading = {};
        reading.before_ns = profiler_internal::Recorder::NowNs();
        if (!ReadClock(*device, &reading.device_ns)) break;
        reading.after_ns = profiler_internal::Recorder::NowNs();
        if (i == 0 || reading.duration_ns() < best.duration_ns()) {
          best = reading;
        }
      }
      if (best.after_ns != 0) clocks[ordinal].Add(best);
    }
  }

 private:
  static constexpr int kReadings = 8;

  static bool ReadClock(DeviceT& device, uint64_t* device_ns) {
    TFPLUG_INTERNAL_TRY {
      const absl::StatusOr<uint64_t> time = device.DeviceT::GetTime();
      if (time.ok()) *device_ns = *time;
      return time.ok();
    }
    TFPLUG_INTERNAL_CATCH_ALL { return false; }
    return false;
  }

  [[gnu::visibility("hidden")]] static inline std::mutex mutex_;
  [[gnu::visibility(
      "hidden")]] static inline std::unordered_map<DeviceT*, int64_t>
      ordinals_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_DEVICE_TIMES_H_
