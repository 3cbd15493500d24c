// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_STREAM_H_
#define CPU_SIM_RUNTIME_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device.h"
#include "event.h"

namespace cpu_sim::rt {

// A queue of work with a device thread that runs it in order. Enqueueing is
// thread-safe, and never waits for work in the queue.
//
// If the stream is idle, the thread that enqueues a small copy or fill, or a
// kernel after many short ones, runs it at once: that costs less than waking the
// device's thread. Other host tasks than short ones always run on the device's
// thread.
//
// Memory that a copy or kernel uses, host memory included, must stay alive
// until the work has run; enqueueing copies nothing.
//
// Errors that enqueueing detects (such as a range outside the device's memory)
// are returned immediately, and nothing is enqueued. If work fails on the
// device, the stream keeps the first error: it skips later copies, fills and
// kernels, fails later events, and still runs each host task once.
// Synchronize() and Device::Synchronize() return the error and clear it. A
// stream that waits for a failed event inherits the error.
//
// The destructor runs all queued work, then joins the thread. A task must not
// destroy its own stream.
class Stream {
 public:
  static absl::StatusOr<std::unique_ptr<Stream>> Create(Device& device);
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }

  absl::Status CopyToDevice(void* device_dst, const void* host_src,
                            size_t bytes);
  absl::Status CopyToHost(void* host_dst, const void* device_src, size_t bytes);
  // Both ranges may belong to any device of the machine.
  absl::Status CopyOnDevice(void* device_dst, const void* device_src,
                            size_t bytes);

  absl::Status Zero(void* device_dst, size_t bytes);
  absl::Status Fill(void* device_dst, uint8_t pattern, size_t bytes);
  // Returns INVALID_ARGUMENT unless address and size are multiples of 4.
  absl::Status Fill32(void* device_dst, uint32_t pattern, size_t bytes);

  // Runs a kernel, void() or absl::Status(), on the device. It needs private
  // addresses, which Device::ToPrivate() returns.
  template <typename Kernel>
  absl::Status Launch(Kernel kernel) {
    return LaunchKernel(Returning(std::move(kernel)));
  }

  // Runs void() or absl::Status() once, in order, even if the stream has
  // failed. The task may access host memory only. If the stream is idle, one
  // that is short runs at once.
  template <typename HostTask>
  absl::Status RunOnHost(HostTask task, bool is_short = false) {
    return RunHostTask(Returning(std::move(task)), is_short);
  }

  absl::Status Record(Event& event);
  // Waits, without blocking the host, for the current recording of `event`.
  absl::Status WaitFor(const Event& event);
  // Waits for all work that is in the other stream now.
  absl::Status WaitFor(Stream& other);

  absl::Status Start(Timer& timer);
  absl::Status Stop(Timer& timer);

  // Blocks until all work that is in the stream now has run. Returns
  // FAILED_PRECONDITION in the stream's own thread, where it would deadlock.
  absl::Status Synchronize();

  // Returns the stream's first error.
  absl::Status status() const;

 private:
  friend class Device;

  using Work = absl::AnyInvocable<absl::Status()>;
  enum class Skip { kNever, kAfterError };
  // Says whether a task runs on the device's thread, or also on the one that
  // enqueues it, always or after many short kernels.
  enum class Place { kDevice, kAnywhere, kAsKernels };
  struct Task {
    Work work;
    Skip skip;
    Place place;
  };

  // Returns a function that calls f and returns its status, or OK.
  template <typename F>
  static auto Returning(F f) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      return [f = std::move(f)]() mutable {
        f();
        return absl::OkStatus();
      };
    } else {
      return f;
    }
  }

  absl::Status LaunchKernel(Work kernel);
  absl::Status RunHostTask(Work task, bool is_short);

  // Runs the task at once, or enqueues it and wakes the stream's thread, unless
  // more work follows at once.
  void Enqueue(Work work, Skip skip, Place place, bool wake = true);
  static Place PlaceOfCopy(size_t bytes) {
    constexpr size_t kSmall = 64 << 10;
    return bytes <= kSmall ? Place::kAnywhere : Place::kDevice;
  }
  // Takes private or host addresses.
  absl::Status EnqueueCopy(void* dst, const void* src, size_t bytes);
  absl::Status EnqueueFill(void* device_dst, uint8_t pattern, size_t bytes);
  // Enqueues a moment that is reached after all work that is in the stream now.
  // If `clear`, reaching it clears the stream's error.
  std::shared_ptr<Moment> EnqueueMoment(bool clear);
  void EnqueueWait(std::shared_ptr<Moment> moment);

  bool IsThisThread() const {
    const std::thread::id id = std::this_thread::get_id();
    return id == thread_.get_id() ||
           id == enqueuing_thread_.load(std::memory_order_relaxed);
  }

  // These run in the stream's thread.
  void Run();
  bool NextBatch(std::vector<Task>* batch);  // false if closed and empty
  bool TakeBatch(std::vector<Task>* batch);  // requires mutex_

  // Runs a task in the thread that has set is_running_.
  void Do(Task& task);
  absl::Status RunTimed(Work& kernel);

  Device& device_;

  mutable std::mutex mutex_;  // guards the members up to status_
  // On the heap, so that a forked child can leak it: the destructor would wait
  // for threads that exist only in the parent.
  std::unique_ptr<std::condition_variable> enqueued_ =
      std::make_unique<std::condition_variable>();
  std::vector<Task> queue_;
  bool asleep_ = false;
  bool closed_ = false;
  // Whether a thread is running tasks. Only that thread writes status_ and
  // num_short_, and it may read them without the lock.
  bool is_running_ = true;  // until the thread asks for its first work
  absl::Status status_;
  int num_short_ = 0;  // kernels that were short, less those that were not

  std::atomic<bool> waiting_work_{false};  // whether queue_ has work
  // The thread that runs a task that it has just enqueued.
  std::atomic<std::thread::id> enqueuing_thread_{};
  int num_polls_ = 1;  // idle times in which the thread will still poll
  std::thread thread_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_STREAM_H_
