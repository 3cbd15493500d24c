// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_TIMER_H_
#define OPENCL_TIMER_H_

#include <tfplug/plugin.h>

#include "driver.h"

namespace opencl {

// Returns when a command that is done was queued, began or ended.
absl::StatusOr<uint64_t> GetTimeOf(cl_event event, cl_profiling_info what);

// Keeps the events of the commands that the calling thread enqueues between
// Start and Stop; the driver measures when they run.
class Timer final : public tfplug::Timer {
 public:
  ~Timer() override { Stop(); }
  absl::StatusOr<uint64_t> Nanoseconds() override;
  absl::StatusOr<tfplug::WorkTimes> GetTimes() override;

  void Start() {
    events_.Release();
    running_ = this;
  }
  void Stop() {
    if (running_ == this) running_ = nullptr;
  }

  // Returns where to store the event of the calling thread's next command; null
  // if no timer runs.
  static cl_event* NextEvent();

 private:
  // The first and the last event; those between are released.
  struct Events {
    ~Events() { Release(); }
    void Release();
    cl_event first = nullptr, last = nullptr;
  };

  static thread_local Timer* running_;

  Events events_;
};

}  // namespace opencl

#endif  // OPENCL_TIMER_H_
