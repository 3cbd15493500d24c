// SPDX-License-Identifier: Apache-2.0
#include "timer.h"

namespace opencl {

absl::StatusOr<uint64_t> GetTimeOf(cl_event event, cl_profiling_info what) {
  cl_ulong time = 0;
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetEventProfilingInfo, event, what,
                                     sizeof(time), &time, nullptr));
  return time;
}

thread_local Timer* Timer::running_ = nullptr;

void Timer::Events::Release() {
  if (first != nullptr) cl.clReleaseEvent(first);
  if (last != nullptr) cl.clReleaseEvent(last);
  first = last = nullptr;
}

cl_event* Timer::NextEvent() {
  if (running_ == nullptr) return nullptr;
  Events& events = running_->events_;
  if (events.first == nullptr) return &events.first;
  if (events.last != nullptr) cl.clReleaseEvent(events.last);
  events.last = nullptr;
  return &events.last;
}

absl::StatusOr<tfplug::WorkTimes> Timer::GetTimes() {
  const cl_event last = events_.last != nullptr ? events_.last : events_.first;
  if (last == nullptr) return absl::NotFoundError("nothing was enqueued");
  cl_int status = 0;
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetEventInfo, last,
                                     CL_EVENT_COMMAND_EXECUTION_STATUS,
                                     sizeof(status), &status, nullptr));
  if (status > CL_COMPLETE) return absl::UnavailableError("not done");
  tfplug::WorkTimes times;
  TFPLUG_ASSIGN_OR_RETURN(times.begin_ns,
                          GetTimeOf(events_.first, CL_PROFILING_COMMAND_START));
  TFPLUG_ASSIGN_OR_RETURN(times.end_ns,
                          GetTimeOf(last, CL_PROFILING_COMMAND_END));
  return times;
}

absl::StatusOr<uint64_t> Timer::Nanoseconds() {
  const cl_event last = events_.last != nullptr ? events_.last : events_.first;
  if (last == nullptr) return 0;
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clWaitForEvents, 1, &last));
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::WorkTimes times, GetTimes());
  return times.end_ns - times.begin_ns;
}

}  // namespace opencl
