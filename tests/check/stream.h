// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_CHECK_STREAM_H_
#define TFPLUG_TESTS_CHECK_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "api.h"

// A queue of work with a thread of its own, and points in it.
class Point {
 public:
  void Reach() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }
  bool is_reached() {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_reached_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_reached_ = false;
};

namespace tfplug::capi {
struct SP_Stream_st {
  SP_Stream_st() : thread([this] { Work(); }) {}
  ~SP_Stream_st() {
    Add(nullptr);
    thread.join();
  }
  void Add(std::function<void()> task) {
    if (task != nullptr && Has("synchronous")) return task();
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back(std::move(task));
    changed.notify_all();
  }
  std::shared_ptr<Point> Record() {
    auto point = std::make_shared<Point>();
    Add([point] { point->Reach(); });
    return point;
  }
  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [this] { return !tasks.empty(); });
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      if (task == nullptr) return;
      task();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  std::thread thread;
};

struct SP_Event_st {
  std::mutex mutex;
  std::shared_ptr<Point> point;

  std::shared_ptr<Point> Get() {
    std::lock_guard<std::mutex> lock(mutex);
    return point;
  }
};

struct SP_Timer_st {
  uint64_t start = 0, stop = 0;
};
}  // namespace tfplug::capi

#endif  // TFPLUG_TESTS_CHECK_STREAM_H_
