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

// A queue of work, and the one device thread that does it, first in, first
// out. Enqueueing never waits for the work; it may be done from any thread.
//
// Memory that a copy or a kernel names must stay alive until the stream has
// passed it: host memory too, for nothing is copied while enqueueing.
//
// Errors. What can be known while enqueueing (a range that is not the
// device's) is returned there, and nothing is enqueued. When work fails on
// the device, the stream keeps the first error: copies, fills and kernels
// behind it are skipped, events behind it become errors, host tasks still
// run, once each. Synchronize() or Device::Synchronize() reports the error
// and clears it. A stream that waits for an event takes over its error, since
// what it waited for is not there.
//
// Destruction runs all that is in the queue, then ends the thread; not to be
// done by a task of the stream itself.
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
  // Either side may also be memory of another device of the machine.
  absl::Status CopyOnDevice(void* device_dst, const void* device_src,
                            size_t bytes);

  absl::Status Zero(void* device_dst, size_t bytes);
  absl::Status Fill(void* device_dst, uint8_t pattern, size_t bytes);
  // INVALID_ARGUMENT unless address and size are multiples of 4.
  absl::Status Fill32(void* device_dst, uint32_t pattern, size_t bytes);

  // Runs a kernel, void() or absl::Status(), on the device. It reaches memory
  // through Device::ToPrivate(), best called before enqueueing.
  template <typename Kernel>
  absl::Status Launch(Kernel kernel) {
    return LaunchKernel(Returning(std::move(kernel)));
  }

  // Runs void() or absl::Status() once, in order with the rest, even if the
  // stream has failed. The host's memory is its to use, the device's is not.
  template <typename HostTask>
  absl::Status RunOnHost(HostTask task) {
    return RunHostTask(Returning(std::move(task)));
  }

  absl::Status Record(Event& event);
  // Does not block the host, and waits for what is recorded in it now.
  absl::Status WaitFor(const Event& event);
  // Waits for all that is in the other stream now.
  absl::Status WaitFor(Stream& other);

  absl::Status Start(Timer& timer);
  absl::Status Stop(Timer& timer);

  // Blocks until all that is in the stream now has run.
  // FAILED_PRECONDITION in the stream's own thread, which would never return.
  absl::Status Synchronize();

  // The error that the stream keeps.
  absl::Status status() const;

 private:
  friend class Device;

  using Work = absl::AnyInvocable<absl::Status()>;
  enum class Skip { kNever, kAfterError };
  struct Task {
    Work work;
    Skip skip;
  };

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
  absl::Status RunHostTask(Work task);

  void Enqueue(Work work, Skip skip);
  // Private addresses, or the host's.
  absl::Status EnqueueCopy(void* dst, const void* src, size_t bytes);
  absl::Status EnqueueFill(void* device_dst, uint8_t pattern, size_t bytes);
  // A moment that comes when the stream has done all that is in it now, and
  // takes the stream's error away if `clear`.
  std::shared_ptr<Moment> EnqueueMoment(bool clear);
  void EnqueueWait(std::shared_ptr<Moment> moment);

  bool IsThisThread() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

  // The stream's thread.
  void Run();
  bool NextBatch(std::vector<Task>* batch);  // false: closed and empty
  void Do(Task& task);

  Device& device_;

  mutable std::mutex mutex_;  // guards what follows, up to status_
  std::condition_variable enqueued_;
  std::vector<Task> queue_;
  bool asleep_ = false;
  bool closed_ = false;
  absl::Status status_;  // written by the stream's thread only

  std::atomic<bool> waiting_work_{false};  // queue_ is not empty
  std::thread thread_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_STREAM_H_
