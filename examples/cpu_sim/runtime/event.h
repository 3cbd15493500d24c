// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_EVENT_H_
#define CPU_SIM_RUNTIME_EVENT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cpu_sim::rt {

// One moment in a stream's life, which comes once. Thread-safe.
class Moment {
 public:
  // Called once, by the stream's thread, with what the stream has become.
  void Come(absl::Status status);

  bool HasCome() const { return come_.load(std::memory_order_acquire); }

  // Blocks until the moment has come.
  void Await() const;

  // What Come() said, and when, in nanoseconds of the monotonic clock. Only
  // once it HasCome().
  const absl::Status& status() const { return status_; }
  uint64_t nanoseconds() const { return nanoseconds_; }

 private:
  absl::Status status_;
  uint64_t nanoseconds_ = 0;
  std::atomic<bool> come_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

// The last moment that was recorded in it with Stream::Record(). It may be
// recorded again at any time, in any stream: who began to wait before waits
// for the moment of before. It may be destroyed while its moment is still to
// come. One that was never recorded counts as complete. Thread-safe.
class Event {
 public:
  enum class State { kPending, kComplete, kError };

  static absl::StatusOr<std::unique_ptr<Event>> Create();
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Does not block. kError: the stream had failed by then.
  absl::StatusOr<State> Poll() const;

  // Blocks until the moment has come; the stream's status at that moment.
  absl::Status Synchronize() const;

 private:
  friend class Stream;
  friend class Timer;

  std::shared_ptr<Moment> moment() const;
  void set_moment(std::shared_ptr<Moment> moment);

  mutable std::mutex mutex_;
  std::shared_ptr<Moment> moment_;
};

// The time between two points of a stream, which Stream::Start() and
// Stream::Stop() set. It may be destroyed before they come. Thread-safe.
class Timer {
 public:
  static absl::StatusOr<std::unique_ptr<Timer>> Create();

  // Blocks until both points have come. FAILED_PRECONDITION when one was
  // never set, or the stop came first.
  absl::StatusOr<uint64_t> Nanoseconds() const;

 private:
  friend class Stream;

  Event start_, stop_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_EVENT_H_
