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

// Returns the monotonic clock's time.
uint64_t NowNanoseconds();

// A point in a stream, which is reached once. Thread-safe.
class Moment {
 public:
  // Marks the moment as reached. Called once, by the stream's thread, with the
  // stream's status.
  void Reach(absl::Status status);

  bool IsReached() const { return is_reached_.load(std::memory_order_acquire); }

  // Blocks until the moment is reached.
  void Await() const;

  // Return the argument of Reach(), and the time of that call in nanoseconds of
  // the monotonic clock. Valid only if IsReached().
  const absl::Status& status() const { return status_; }
  uint64_t nanoseconds() const { return nanoseconds_; }

 private:
  absl::Status status_;
  uint64_t nanoseconds_ = 0;
  std::atomic<bool> is_reached_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

// Holds the moment of the last Stream::Record(). It can be recorded again at
// any time, in any stream; a wait already in progress refers to the earlier
// recording. It can be destroyed while its moment is pending. An event that was
// never recorded is complete. Thread-safe.
class Event {
 public:
  enum class State { kPending, kComplete, kError };

  static absl::StatusOr<std::unique_ptr<Event>> Create();
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns the state without blocking; kError if the stream had failed before
  // the event.
  absl::StatusOr<State> Poll() const;

  // Blocks until the moment is reached, and returns the stream's status at that
  // point.
  absl::Status Synchronize() const;

  // Returns when the event was reached, in nanoseconds of the monotonic clock.
  // Errors: UNAVAILABLE if it is pending, FAILED_PRECONDITION if it was never
  // recorded.
  absl::StatusOr<uint64_t> Nanoseconds() const;

 private:
  friend class Stream;

  std::shared_ptr<Moment> moment() const;
  void set_moment(std::shared_ptr<Moment> moment);

  mutable std::mutex mutex_;
  std::shared_ptr<Moment> moment_;
};

// Measures the time between two points of a stream, set with Stream::Start()
// and Stream::Stop(). It can be destroyed before they are reached. A profile
// times each launch, so a point costs no more than a store. Thread-safe.
class Timer {
 public:
  static absl::StatusOr<std::unique_ptr<Timer>> Create();

  // The times at which the points were reached, in nanoseconds of the monotonic
  // clock; 0 if they are pending.
  struct Points {
    std::atomic<uint64_t> start{0}, stop{0};
  };

  // Returns the points. Errors: UNAVAILABLE if one is pending,
  // FAILED_PRECONDITION if it was never set.
  absl::StatusOr<std::shared_ptr<const Points>> Get() const;

  // Blocks until both points are reached, by polling. Returns
  // FAILED_PRECONDITION if one was never set or the stop came first.
  absl::StatusOr<uint64_t> Nanoseconds() const;

 private:
  friend class Stream;

  // Returns where the stream stores when it reaches the start or the stop.
  std::shared_ptr<Points> SetStart();
  std::shared_ptr<Points> SetStop();

  mutable std::mutex mutex_;
  std::shared_ptr<Points> points_;  // null before the start
  bool is_stop_set_ = false;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_EVENT_H_
