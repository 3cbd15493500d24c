// SPDX-License-Identifier: Apache-2.0
#include "event.h"

#include <chrono>
#include <thread>
#include <utility>

#include "fault.h"

namespace cpu_sim::rt {

uint64_t NowNanoseconds() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void Moment::Reach(absl::Status status) {
  status_ = std::move(status);
  nanoseconds_ = NowNanoseconds();
  // Notifies under the lock, because a waiter may free the moment as soon as it
  // is reached.
  std::lock_guard<std::mutex> lock(mutex_);
  is_reached_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Moment::Await() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return IsReached(); });
}

absl::StatusOr<std::unique_ptr<Event>> Event::Create() {
  absl::Status fault = CheckFault("create_event");
  if (!fault.ok()) return fault;
  return std::make_unique<Event>();
}

absl::StatusOr<Event::State> Event::Poll() const {
  absl::Status fault = CheckFault("get_event_status");
  if (!fault.ok()) return fault;
  const std::shared_ptr<Moment> moment = this->moment();
  if (moment == nullptr) return State::kComplete;
  if (!moment->IsReached()) return State::kPending;
  return moment->status().ok() ? State::kComplete : State::kError;
}

absl::Status Event::Synchronize() const {
  absl::Status fault = CheckFault("block_host_for_event");
  if (!fault.ok()) return fault;
  const std::shared_ptr<Moment> moment = this->moment();
  if (moment == nullptr) return absl::OkStatus();
  moment->Await();
  return moment->status();
}

std::shared_ptr<Moment> Event::moment() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return moment_;
}

void Event::set_moment(std::shared_ptr<Moment> moment) {
  std::lock_guard<std::mutex> lock(mutex_);
  moment_.swap(moment);  // destroys the old one after unlocking
}

absl::StatusOr<uint64_t> Event::Nanoseconds() const {
  const std::shared_ptr<Moment> moment = this->moment();
  if (moment == nullptr) {
    return absl::FailedPreconditionError("the event was never recorded");
  }
  if (!moment->IsReached()) return absl::UnavailableError("pending");
  return moment->nanoseconds();
}

absl::StatusOr<std::unique_ptr<Timer>> Timer::Create() {
  absl::Status fault = CheckFault("create_timer");
  if (!fault.ok()) return fault;
  return std::make_unique<Timer>();
}

std::shared_ptr<Timer::Points> Timer::SetStart() {
  auto points = std::make_shared<Points>();
  std::lock_guard<std::mutex> lock(mutex_);
  points_ = points;
  is_stop_set_ = false;
  return points;
}

std::shared_ptr<Timer::Points> Timer::SetStop() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (points_ == nullptr) points_ = std::make_shared<Points>();
  is_stop_set_ = true;
  return points_;
}

absl::StatusOr<std::shared_ptr<const Timer::Points>> Timer::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (points_ == nullptr || !is_stop_set_) {
    return absl::FailedPreconditionError(
        "the timer was not both started and stopped");
  }
  if (points_->stop == 0) return absl::UnavailableError("pending");
  return points_;
}

absl::StatusOr<uint64_t> Timer::Nanoseconds() const {
  absl::Status fault = CheckFault("nanoseconds");
  if (!fault.ok()) return fault;
  auto points = Get();
  while (absl::IsUnavailable(points.status())) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    points = Get();
  }
  if (!points.ok()) return points.status();
  const uint64_t start = (*points)->start, stop = (*points)->stop;
  if (start == 0) {
    return absl::FailedPreconditionError(
        "the timer was stopped before it was started");
  }
  return stop - start;
}

}  // namespace cpu_sim::rt
