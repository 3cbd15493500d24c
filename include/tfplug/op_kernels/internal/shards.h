// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_SHARDS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_SHARDS_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/op_kernels/internal/continuations.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The numbers 0 to count - 1, of which several threads take ranges.
class Shards {
 public:
  using Function = std::function<absl::Status(int64_t begin, int64_t end)>;

  Shards(int64_t count, int64_t size, Function function)
      : count_(count), size_(size), function_(std::move(function)) {}

  // Takes ranges until none is left or one has failed.
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++working_;
    while (next_ < count_) {
      const int64_t begin = next_;
      next_ = std::min(count_, begin + size_);
      const int64_t end = next_;
      lock.unlock();
      const absl::Status status =
          internal::Guarded([&] { return function_(begin, end); });
      lock.lock();
      if (status.ok()) continue;
      status_.Update(status);
      next_ = count_;
    }
    if (--working_ == 0) ended_.notify_all();
  }
  // Waits for the threads that took ranges: not for one that did not begin, and
  // that will find none.
  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return working_ == 0; });
    return status_;
  }

 private:
  const int64_t count_, size_;
  const Function function_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int64_t next_ = 0;
  int working_ = 0;
  absl::Status status_;
};

// Calls function(begin, end) for ranges of 0 to count - 1, on this thread and
// at most `most_threads` - 1 others, which it waits for. Returns the first error.
inline absl::Status ForEachShard(int64_t count, int64_t most_threads,
                                 const Shards::Function& function) {
  const int64_t threads = std::min<int64_t>(
      {count, most_threads, std::thread::hardware_concurrency()});
  if (threads <= 1) return count > 0 ? function(0, count) : absl::OkStatus();
  const auto shards = std::make_shared<Shards>(
      count, std::max<int64_t>(1, count / (4 * threads)), function);
  for (int64_t i = 1; i < threads; ++i) {
    if (!Continuations::Add([shards] { shards->Work(); }).ok()) break;
  }
  shards->Work();
  return shards->Wait();
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_SHARDS_H_
