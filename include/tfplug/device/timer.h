// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_TIMER_H_
#define TFPLUG_DEVICE_TIMER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/device/host_task.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The times at which a device has begun and ended some work, in nanoseconds on
// its own clock (Device::GetTime).
struct WorkTimes {
  uint64_t begin_ns = 0, end_ns = 0;
};

// Measures the time between two points of a stream (SP_Timer), which
// Stream::StartTimer and Stream::StopTimer set. Constructed by create_timer
// with `Device&` if there is such a constructor, otherwise without arguments;
// destroyed by destroy_timer.
class Timer {
 public:
  virtual ~Timer() = default;

  // Is called once after construction. If it fails, so does create_timer.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_TimerFns -------------------------------------------------------

  // nanoseconds: returns the time between start and stop; a failure is logged,
  // and TensorFlow receives 0. Thread: any; never called after 2.13.
  virtual absl::StatusOr<uint64_t> Nanoseconds() = 0;

  // ---- Profiles ----------------------------------------------------------

  // Returns when the device did the work that the calling thread enqueued
  // between StartTimer and StopTimer. Errors: UNAVAILABLE while the work is not
  // done, NOT_FOUND if there was none. With this hook and Device::GetTime,
  // profiles have the device's own times; otherwise host tasks take them. A
  // profile starts a timer again after it has read the times.
  // Thread: any; must not block.
  virtual absl::StatusOr<WorkTimes> GetTimes() {
    return absl::UnimplementedError("override Timer::GetTimes");
  }
};

// The timer of a device without a timer class: the difference of two time
// stamps of the host's clock. Host tasks take them when the stream runs the
// tasks.
class HostTimer : public Timer {
 public:
  absl::StatusOr<uint64_t> Nanoseconds() override {
    const int64_t start = stamps_->start, stop = stamps_->stop;
    if (start == 0 || stop < start) {
      return absl::FailedPreconditionError(
          "the timer was not started and stopped");
    }
    return static_cast<uint64_t>(stop - start);
  }

  // Return the tasks that take the time stamps, to be enqueued on the stream.
  // They may outlive the timer.
  HostTask MakeStartTask() { return MakeStampTask<&Stamps::start>(); }
  HostTask MakeStopTask() { return MakeStampTask<&Stamps::stop>(); }

 private:
  struct Stamps {
    std::atomic<int64_t> start{0}, stop{0};
  };

  template <std::atomic<int64_t> Stamps::*stamp>
  HostTask MakeStampTask() {
    return HostTask(
        [](void* argument, capi::TF_Status*) {
          std::unique_ptr<std::shared_ptr<Stamps>> stamps(
              static_cast<std::shared_ptr<Stamps>*>(argument));
          (**stamps).*stamp =
              std::chrono::steady_clock::now().time_since_epoch().count();
        },
        new std::shared_ptr<Stamps>(stamps_));
  }

  std::shared_ptr<Stamps> stamps_ = std::make_shared<Stamps>();
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_TIMER_H_
