// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_WORK_TIMERS_H_
#define TFPLUG_PROFILER_INTERNAL_WORK_TIMERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tfplug/abi/types.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Measures one piece of work with the device's clock: the author's timer.
class WorkTimer {
 public:
  enum class State { kPending, kDone, kNoWork, kFailed };

  virtual ~WorkTimer() = default;

  // Ends the measured work; returns false if that failed.
  virtual bool Stop(capi::SP_Stream stream) = 0;
  // Reads the times of the device's clock if the work is done.
  virtual State Read(uint64_t* begin_ns, uint64_t* end_ns) = 0;
};

// The timers of work that is not known to be done, stream by stream. They are
// read by the threads that enqueue more work. Thread-safe.
class WorkTimers {
 public:
  // What a device measured. Work without a result was not measured.
  struct Result {
    uint32_t stream;
    uint64_t correlation;
    uint64_t begin_ns, end_ns;  // 0 if nothing was enqueued
  };

  // Adds a timer that was stopped, and calls use(Result) for some of the
  // stream's earlier work if it is done. Returns false, and destroys the timer,
  // if too much work is pending.
  template <class Use>
  bool Add(uint32_t stream, uint64_t correlation,
           std::unique_ptr<WorkTimer> timer, Use use) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::deque<Timed>& pending = streams_[stream];
    Read(stream, pending, /*limit=*/4, use);
    if (pending.size() >= kMaxPending) return false;
    pending.push_back({correlation, std::move(timer)});
    return true;
  }

  // Calls use(Result) for all work that is done. Returns false if some is not.
  template <class Use>
  bool ReadAll(Use use) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool is_done = true;
    for (auto& [stream, pending] : streams_) {
      Read(stream, pending, kMaxPending, use);
      is_done = is_done && pending.empty();
    }
    return is_done;
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.clear();
  }

 private:
  static constexpr size_t kMaxPending = 1 << 14;

  struct Timed {
    uint64_t correlation;
    std::unique_ptr<WorkTimer> timer;
  };

  template <class Use>
  static void Read(uint32_t stream, std::deque<Timed>& pending, size_t limit,
                   Use use) {
    for (size_t i = 0; i < limit && !pending.empty(); ++i) {
      const Timed& first = pending.front();
      Result result = {stream, first.correlation, 0, 0};
      const auto state = first.timer->Read(&result.begin_ns, &result.end_ns);
      if (state == WorkTimer::State::kPending) return;
      if (state == WorkTimer::State::kNoWork) {
        result.begin_ns = result.end_ns = 0;
      }
      if (state != WorkTimer::State::kFailed) use(result);
      pending.pop_front();
    }
  }

  std::mutex mutex_;
  std::unordered_map<uint32_t, std::deque<Timed>> streams_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_WORK_TIMERS_H_
