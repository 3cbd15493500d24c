// SPDX-License-Identifier: Apache-2.0
#include "kernels/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <unsupported/Eigen/CXX11/ThreadPool>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/parallel.h"

namespace cpu_sim {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kPolls = 2000;  // before the caller sleeps

int CountProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The work of one Run. A thread that starts late finds no block left, perhaps
// after Run has returned.
class Work {
 public:
  Work(int64_t blocks, void (*run)(void*, int64_t, int64_t), void* context)
      : blocks_(blocks), run_(run), context_(context) {}

  // Runs blocks until there are no more.
  void Help() {
    const int64_t slot = next_slot_.fetch_add(1, std::memory_order_relaxed);
    int64_t block;
    while ((block = next_.fetch_add(1, std::memory_order_relaxed)) < blocks_) {
      RunOne(block, slot);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks_) {
        std::lock_guard<std::mutex> lock(mutex_);
        all_done_.notify_one();
      }
    }
  }

  void Await() {
    for (int i = 0; i < kPolls && !IsDone(); ++i) {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return IsDone(); });
#ifdef __cpp_exceptions
    // The last owner is this thread, not one that ends later.
    if (exception_) {
      std::rethrow_exception(std::exchange(exception_, nullptr));
    }
#endif
  }

 private:
  bool IsDone() const {
    return done_.load(std::memory_order_acquire) == blocks_;
  }

  void RunOne(int64_t block, int64_t slot) {
#ifdef __cpp_exceptions
    try {
      run_(context_, block, slot);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!exception_) exception_ = std::current_exception();
    }
#else
    run_(context_, block, slot);
#endif
  }

  const int64_t blocks_;
  void (*const run_)(void*, int64_t, int64_t);
  void* const context_;
  std::atomic<int64_t> next_slot_{0}, next_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
#ifdef __cpp_exceptions
  std::exception_ptr exception_;
#endif
};

}  // namespace

// Idle threads sleep: TensorFlow's own threads need the processors.
struct Threads::Pool {
  explicit Pool(int count) : threads(count, /*allow_spinning=*/false) {}
  Eigen::ThreadPool threads;
};

Threads::Threads(int count)
    : count_(count), pool_(count > 1 ? new Pool(count - 1) : nullptr) {}

Threads::~Threads() = default;

Threads& Threads::Get() {
  static auto& threads = *new Threads(CountFromEnvironment().value_or(1));
  return threads;
}

absl::StatusOr<int> Threads::CountFromEnvironment() {
  const char* const text = getenv("CPU_SIM_THREADS");
  if (text == nullptr) return std::min(CountProcessors(), kMaxThreads);
  int count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 1 || count > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("CPU_SIM_THREADS=", text,
                     " is invalid; expected a number from 1 to ", kMaxThreads));
  }
  return count;
}

void Threads::Run(int64_t blocks, void (*run)(void*, int64_t, int64_t),
                  void* context) {
  if (pool_ == nullptr || blocks < 2) {
    for (int64_t block = 0; block < blocks; ++block) run(context, block, 0);
    return;
  }
  const auto work = std::make_shared<Work>(blocks, run, context);
  for (int64_t i = 1; i < std::min(count_, blocks); ++i) {
    pool_->threads.Schedule([work] { work->Help(); });
  }
  work->Help();
  work->Await();
}

int64_t NumThreads() { return Threads::Get().count(); }

void RunBlocks(int64_t blocks, void (*run)(void*, int64_t, int64_t),
               void* context) {
  Threads::Get().Run(blocks, run, context);
}

int64_t PieceOf(int64_t cost_of_element) {
  return std::max<int64_t>(1,
                           kPieceCost / std::max<int64_t>(cost_of_element, 1));
}

}  // namespace cpu_sim
