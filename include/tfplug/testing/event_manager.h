// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_EVENT_MANAGER_H_
#define TFPLUG_TESTING_EVENT_MANAGER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/jitter.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's way to learn that work on a stream is done: it records an event
// after the work and polls it from a thread of its own, where the events of all
// streams of a device are polled in turn. Events that are done are recorded
// again. Thread-safe.
class EventManager {
 public:
  // `jitter` delays the first poll of each event and the call of each function.
  explicit EventManager(FakeDevice& device, Jitter* jitter = nullptr)
      : device_(device), jitter_(jitter) {}
  EventManager(const EventManager&) = delete;
  EventManager& operator=(const EventManager&) = delete;
  // Waits until the functions have run.
  ~EventManager() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Calls `function` on the polling thread once the work enqueued on the stream
  // so far is done. A failure to record the event is ignored, as in TensorFlow.
  // Returns the failure of create_event, on which TensorFlow aborts.
  absl::Status ThenExecute(FakeStream& stream, std::function<void()> function) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Poll(); });
    if (free_.empty()) {
      auto event = device_.CreateEvent();
      if (!event.ok()) return event.status();
      free_.push_back(*std::move(event));
    }
    stream.RecordEvent(*free_.back()).IgnoreError();
    pending_.push_back(
        {std::move(free_.back()), std::move(function), Clock::now() + Delay()});
    free_.pop_back();
    changed_.notify_all();
    return absl::OkStatus();
  }
  // Waits until the functions passed so far have run.
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return pending_.empty() && running_ == 0; });
  }

  // Returns an error if an event had a status on which TensorFlow aborts. Such
  // an event counts as done.
  absl::Status status() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    std::unique_ptr<FakeEvent> event;
    std::function<void()> function;
    Clock::time_point first_poll;
  };
  Clock::duration Delay() const {
    return jitter_ == nullptr ? Clock::duration() : jitter_->Delay();
  }

  void Poll() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !pending_.empty() || is_ending_; });
      if (pending_.empty()) return;
      std::vector<std::function<void()>> done;
      for (auto each = pending_.begin(); each != pending_.end();) {
        const EventStatus polled = Clock::now() < each->first_poll
                                       ? EventStatus::kPending
                                       : each->event->Poll();
        if (polled == EventStatus::kPending) {
          ++each;
          continue;
        }
        if (polled != EventStatus::kComplete) {
          status_.Update(absl::AbortedError(
              "get_event_status returned neither pending nor complete: "
              "TensorFlow would abort with \"Unexpected Event status\""));
        }
        done.push_back(std::move(each->function));
        free_.push_back(std::move(each->event));
        each = pending_.erase(each);
      }
      running_ = done.size();
      lock.unlock();
      for (const auto& function : done) {
        if (jitter_ != nullptr) jitter_->Pause();
        function();
      }
      if (done.empty()) std::this_thread::sleep_for(kInterval);
      done.clear();
      lock.lock();
      running_ = 0;
      changed_.notify_all();
    }
  }

  static constexpr std::chrono::microseconds kInterval{10};

  FakeDevice& device_;
  Jitter* const jitter_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Pending> pending_;
  std::vector<std::unique_ptr<FakeEvent>> free_;
  size_t running_ = 0;
  bool is_ending_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_EVENT_MANAGER_H_
