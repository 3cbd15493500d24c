// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_GATE_H_
#define TFPLUG_CHECK_GATE_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "tfplug/testing.h"

namespace tfplug::check {

// Holds a stream up: a task of host_callback that ends when the gate opens. A
// device that runs tasks on the calling thread cannot be held up.
class Gate {
 public:
  explicit Gate(testing::FakeStream& stream) {
    const auto caller = std::this_thread::get_id();
    status_ = stream.RunOnHost([state = state_, caller] {
      std::unique_lock<std::mutex> lock(state->mutex);
      state->is_entered = true;
      state->changed.notify_all();
      if (std::this_thread::get_id() == caller) {
        state->is_synchronous = true;
      } else {
        state->changed.wait_for(lock, kLongest, [&] { return state->is_open; });
      }
      return absl::OkStatus();
    });
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { Open(); }

  // Waits until the task runs, and returns whether it holds the stream up.
  bool Holds() {
    if (!status_.ok()) return false;
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait_for(lock, kLongest,
                             [&] { return state_->is_entered; });
    return state_->is_entered && !state_->is_synchronous;
  }
  void Open() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_open = true;
    state_->changed.notify_all();
  }
  // Opens after a while, on a thread of its own.
  std::thread OpenLater() {
    return std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
      Open();
    });
  }
  bool is_open() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->is_open;
  }

 private:
  static constexpr std::chrono::seconds kLongest{5};

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_entered = false, is_open = false, is_synchronous = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  absl::Status status_;
};

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_GATE_H_
