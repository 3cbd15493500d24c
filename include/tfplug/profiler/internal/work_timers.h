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
#include <vector>

#include "tfplug/abi/types.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

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
// read by the threads that enqueue more work, and used again. Thread-safe.
class WorkTimers {
 public:
  // A time that a device measured. Work without a result was not measured.
  struct Result {
    uint32_t stream;
    uint64_t correlation;
    uint64_t begin_ns, end_ns;  // 0 if nothing was enqueued
  };

  // Returns a timer of earlier work on the stream, or null.
  std::unique_ptr<WorkTimer> TakeIdle(uint32_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::unique_ptr<WorkTimer>>& idle = streams_[stream].idle;
    if (idle.empty()) return nullptr;
    std::unique_ptr<WorkTimer> timer = std::move(idle.back());
    idle.pop_back();
    return timer;
  }

  // Adds a timer that was stopped. Once in a while, calls use(Result) for the
  // stream's earlier work that is done. Returns false, and destroys the timer,
  // if too much work is pending.
  template <class Use>
  bool Add(uint32_t stream, uint64_t correlation,
           std::unique_ptr<WorkTimer> timer, Use use) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Stream& on = streams_[stream];
    if (on.pending.size() % kBatch == 0) Read(stream, on, 2 * kBatch, use);
    if (on.pending.size() >= kMaxPending) return false;
    on.pending.push_back({correlation, std::move(timer)});
    return true;
  }

  // Calls use(Result) for all work that is done. Returns false if some is not.
  template <class Use>
  bool ReadAll(Use use) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool is_done = true;
    for (auto& [id, stream] : streams_) {
      Read(id, stream, kMaxPending, use);
      is_done = is_done && stream.pending.empty();
    }
    return is_done;
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.clear();
  }

 private:
  static constexpr size_t kMaxPending = 1 << 14;  // a multiple of kBatch
  // A read of a timer that is pending costs as much as some that are done.
  static constexpr size_t kBatch = 64;

  struct Timed {
    uint64_t correlation;
    std::unique_ptr<WorkTimer> timer;
  };
  struct Stream {
    std::deque<Timed> pending;
    std::vector<std::unique_ptr<WorkTimer>> idle;
  };

  template <class Use>
  static void Read(uint32_t id, Stream& stream, size_t limit, Use use) {
    std::deque<Timed>& pending = stream.pending;
    for (size_t i = 0; i < limit && !pending.empty(); ++i) {
      Timed& first = pending.front();
      Result result = {id, first.correlation, 0, 0};
      const auto state = first.timer->Read(&result.begin_ns, &result.end_ns);
      if (state == WorkTimer::State::kPending) return;
      if (state == WorkTimer::State::kNoWork) {
        result.begin_ns = result.end_ns = 0;
      }
      if (state != WorkTimer::State::kFailed) {
        use(result);
        stream.idle.push_back(std::move(first.timer));
      }
      pending.pop_front();
    }
  }

  std::mutex mutex_;
  std::unordered_map<uint32_t, Stream> streams_;
};

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_WORK_TIMERS_H_
