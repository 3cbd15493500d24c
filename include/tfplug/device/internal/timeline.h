// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_TIMELINE_H_
#define TFPLUG_DEVICE_INTERNAL_TIMELINE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/event.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Tells memory how far a stream has come. Thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;

  // Returns the newest step, which may not have been submitted.
  uint64_t added() const { return added_.load(std::memory_order_acquire); }
  // Returns the value of a new step. Needs the machine's lock.
  uint64_t AddStep() {
    const uint64_t value = added_.load(std::memory_order_relaxed) + 1;
    added_.store(value, std::memory_order_release);
    return value;
  }

  // Returns whether none of the steps up to `value` uses memory, now or later.
  virtual bool IsOver(uint64_t value) = 0;
  // Waits for those that have been submitted, and so for the device only.
  virtual void BlockHostForDevice(uint64_t value) = 0;

 private:
  std::atomic<uint64_t> added_{0};
};

// The progress of a stream, whose steps have the values 1, 2, ...: batches of
// commands, at whose end the device sets the author's counter, and steps that
// run on the host. A step is submitted after all earlier ones; one on the host
// is then done. Thread-safe; takes a lock only if a thread waits or a step has failed.
template <class Counter>
class Timeline final : public Progress {
 public:
  Counter& counter() { return counter_; }

  void SetSubmitted(uint64_t value) { Advance(value, device_submitted_); }
  void SetDoneOnHost(uint64_t value) { Advance(value, host_done_); }

  // Records an error. Steps that have not been submitted never will be.
  void Fail(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = status;
    has_failed_ = true;
    changed_.notify_all();
  }
  absl::Status status() const {
    if (ABSL_PREDICT_TRUE(!has_failed_)) return absl::OkStatus();
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

  bool IsSubmitted(uint64_t value) const { return value <= submitted(); }
  absl::Status BlockUntilSubmitted(uint64_t value) {
    if (IsSubmitted(value)) return absl::OkStatus();
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.wait(lock, [&] { return IsSubmitted(value) || !status_.ok(); });
    --waiting_;
    return IsSubmitted(value) ? absl::OkStatus() : status_;
  }

  // Returns whether the step is known to be done, without asking the device.
  bool WasReached(uint64_t value) const {
    return value <= std::max(reached_.load(), host_done_.load());
  }
  // Returns whether the step is done, or the error because of which it never
  // will be.
  absl::StatusOr<bool> IsDone(uint64_t value) {
    if (WasReached(value)) return true;
    if (!IsSubmitted(value)) {
      TFPLUG_RETURN_IF_ERROR(status());
      return false;
    }
    return Reach(counter_.Get(), value);
  }
  // Learns how far the device is, and whether it has failed.
  void AskDevice() { Reach(counter_.Get(), 0).IgnoreError(); }
  // Waits until the step is done. After an error, waits for what the device
  // still does.
  absl::Status BlockHost(uint64_t value) {
    absl::Status failed = BlockUntilSubmitted(value);
    if (!failed.ok()) value = device_submitted_;
    if (WasReached(value)) return failed;
    const absl::Status waited = counter_.Wait(value);
    const absl::Status status =
        Reach(waited.ok() ? absl::StatusOr<uint64_t>(value) : waited, value)
            .status();
    return failed.ok() ? status : failed;
  }

  bool IsOver(uint64_t value) override {
    if (!IsSubmitted(value)) {
      if (!has_failed_) return false;
      value = device_submitted_;  // the others never run
    }
    if (WasReached(value)) return true;
    // A lost device uses no memory.
    return Reach(counter_.Get(), value).value_or(true);
  }
  void BlockHostForDevice(uint64_t value) override {
    value = std::min(value, device_submitted_.load());
    if (WasReached(value)) return;
    const absl::Status waited = counter_.Wait(value);
    Reach(waited.ok() ? absl::StatusOr<uint64_t>(value) : waited, value)
        .IgnoreError();
  }

 private:
  uint64_t submitted() const {
    return std::max(device_submitted_.load(), host_done_.load());
  }
  // A thread that begins to wait counts itself before it looks at `to`.
  void Advance(uint64_t value, std::atomic<uint64_t>& to) {
    to = value;
    if (ABSL_PREDICT_TRUE(waiting_ == 0)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }
  absl::StatusOr<bool> Reach(const absl::StatusOr<uint64_t>& counter,
                             uint64_t value) {
    if (!counter.ok()) {
      Fail(counter.status());
      return counter.status();
    }
    uint64_t reached = reached_;
    while (reached < *counter &&
           !reached_.compare_exchange_weak(reached, *counter)) {
    }
    return value <= *counter || value <= reached;
  }

  Counter counter_;
  std::atomic<uint64_t> device_submitted_{0}, host_done_{0}, reached_{0};
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> waiting_{0};
  absl::Status status_;
};

// Work that a stream of the author's class `Batch` has recorded.
template <class Buffer, class Batch, class Counter>
struct Recording {
  struct Wait {
    std::shared_ptr<Timeline<Counter>> timeline;
    uint64_t value;
  };

  Batch batch;
  uint64_t value = 0;
  std::vector<Wait> waits;
  int commands = 0;
  uint32_t times = 0;                 // slots in use
  std::unique_ptr<Buffer> arguments;  // null until a command needs them
  uint64_t arguments_used = 0;
  std::vector<std::shared_ptr<Recording>> executed;  // graphs' commands
};

// The commands of CommandEvent and CommandTimer: a step of a stream and, for a
// timer, the batch with the two time stamps.
template <class Recording, class Counter>
struct TimelineCommands {
  struct Point {
    std::shared_ptr<Timeline<Counter>> timeline;
    uint64_t value = 0;
    std::shared_ptr<Recording> recording;
    uint32_t slot = 0;
  };
  using Handle = Point*;

  static void Release(Point* point) { delete point; }
  static absl::StatusOr<EventStatus> Poll(Point* point) {
    const absl::StatusOr<bool> is_done = point->timeline->IsDone(point->value);
    if (!is_done.ok()) return EventStatus::kError;
    return *is_done ? EventStatus::kComplete : EventStatus::kPending;
  }
  static absl::Status BlockHost(Point* point) {
    return point->timeline->BlockHost(point->value);
  }
  static absl::StatusOr<WorkTimes> GetTimes(Point* point) {
    Batch& batch = point->recording->batch;
    TFPLUG_ASSIGN_OR_RETURN(const uint64_t begin, batch.ReadTime(point->slot));
    TFPLUG_ASSIGN_OR_RETURN(const uint64_t end,
                            batch.ReadTime(point->slot + 1));
    return WorkTimes{begin, end};
  }

 private:
  using Batch = decltype(Recording::batch);
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_TIMELINE_H_
