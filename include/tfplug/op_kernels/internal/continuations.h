// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_CONTINUATIONS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_CONTINUATIONS_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/guard.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Threads that go on with kernels, because a task of a stream must not enqueue
// work: as many as run functions at a time, but at most one a processor. They
// live as long as the process.
class Continuations {
 public:
  // Runs `function` soon, in any order with others. Fails if there is not enough
  // memory, or no thread.
  static absl::Status Add(std::function<void()> function) noexcept {
    return internal::Guarded([&] {
      static auto* const instance = new Continuations;
      return instance->Push(std::move(function));
    });
  }

 private:
  absl::Status Push(std::function<void()> function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() >= num_idle_ && num_threads_ < most_threads_) {
      const absl::Status started = internal::Guarded([this] {
        std::thread([this] { Work(); }).detach();
        ++num_threads_;
        return absl::OkStatus();
      });
      if (num_threads_ == 0) return started;
    }
    queue_.push_back(std::move(function));
    changed_.notify_one();
    return absl::OkStatus();
  }

  [[noreturn]] void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++num_idle_;
      changed_.wait(lock, [this] { return !queue_.empty(); });
      --num_idle_;
      const std::function<void()> function = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      internal::GuardOrLog("a continuation of a kernel", [&] {
        function();
        return absl::OkStatus();
      });
    }
  }

  const size_t most_threads_ =
      std::max<size_t>(2, std::thread::hardware_concurrency());
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  size_t num_threads_ = 0, num_idle_ = 0;
};

// Keeps what `pointer` owns until the process ends: after an error, work that a
// stream has accepted may still use that memory.
template <class T>
void NeverFree(const std::shared_ptr<T>& pointer) {
  static_cast<void>(new std::shared_ptr<T>(pointer));
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_CONTINUATIONS_H_
