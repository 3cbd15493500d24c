// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FLAG_H_
#define TFPLUG_TESTS_FLAG_H_

#include <condition_variable>
#include <mutex>

// Is set once; other threads wait for it.
class Flag {
 public:
  void Set() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }
  bool is_set() {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

#endif  // TFPLUG_TESTS_FLAG_H_
