// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>

#include <memory>
#include <utility>

#include "cuda_like.h"

namespace cuda_like {

absl::Status Timer::Init() {
  epoch_ = device_.epoch();
  if (epoch_.event == nullptr) {  // The profile began before the device.
    TFPLUG_RETURN_IF_ERROR(device_.GetTime().status());
    epoch_ = device_.epoch();
  }
  TFPLUG_RETURN_IF_ERROR(begin_.Init());
  return end_.Init();
}

absl::StatusOr<uint64_t> Timer::Nanoseconds() {
  TFPLUG_RETURN_IF_ERROR(end_.BlockHost());
  return device_.GetElapsed(begin_, end_);
}

absl::StatusOr<tfplug::WorkTimes> Timer::GetTimes() {
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::EventStatus status, end_.Poll());
  if (status == tfplug::EventStatus::kPending) {
    return absl::UnavailableError("not done");
  }
  TFPLUG_ASSIGN_OR_RETURN(const uint64_t begin,
                          device_.GetElapsed(*epoch_.event, begin_));
  // Not relative to the epoch: a float has more digits for a short time.
  TFPLUG_ASSIGN_OR_RETURN(const uint64_t duration,
                          device_.GetElapsed(begin_, end_));
  return tfplug::WorkTimes{epoch_.ns + begin, epoch_.ns + begin + duration};
}

absl::Status Stream::StartTimer(Timer& timer) {
  return RecordEvent(timer.begin());
}

absl::Status Stream::StopTimer(Timer& timer) {
  return RecordEvent(timer.end());
}

absl::StatusOr<uint64_t> Device::GetElapsed(const Event& begin,
                                            const Event& end) const {
  float milliseconds = 0;
  TFPLUG_RETURN_IF_ERROR(Call(driver_.cuEventElapsedTime, &milliseconds,
                              begin.handle(), end.handle()));
  return static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
}

Epoch Device::epoch() {
  const std::lock_guard<std::mutex> lock(epoch_mutex_);
  return epoch_;
}

absl::StatusOr<uint64_t> Device::GetTime() {
  Epoch now;
  now.event = std::make_shared<Event>(*this, CU_EVENT_DEFAULT);
  TFPLUG_RETURN_IF_ERROR(now.event->Init());
  TFPLUG_RETURN_IF_ERROR(
      Call(driver_.cuEventRecord, now.event->handle(), clock_));
  TFPLUG_RETURN_IF_ERROR(now.event->BlockHost());
  const std::lock_guard<std::mutex> lock(epoch_mutex_);
  if (epoch_.event != nullptr) {
    TFPLUG_ASSIGN_OR_RETURN(now.ns, GetElapsed(*epoch_.event, *now.event));
    now.ns += epoch_.ns;
  }
  epoch_ = now;
  return now.ns;
}

}  // namespace cuda_like
