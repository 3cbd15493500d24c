// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "fault.h"

namespace cpu_sim::rt {
namespace {

// The time for which an idle stream polls for work before it sleeps. Waking the
// thread costs the host a system call and delays the work by some 50 us, and
// work usually comes in bursts. A stream without bursts, such as one of small
// copies, does not poll: after kPolls idle times of which none was shorter than
// this.
constexpr std::chrono::microseconds kPollTime(20);
constexpr int kPolls = 4;

void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Converts an exception of a kernel or host task to a status.
template <typename F>
absl::Status RunGuarded(F work) {
#ifdef __cpp_exceptions
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the host is out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("exception: ", e.what()));
  } catch (...) {
    return absl::InternalError("an exception of unknown type");
  }
#else
  return work();
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create(Device& device) {
  absl::Status fault = CheckFault("create_stream");
  if (!fault.ok()) return fault;
  return std::make_unique<Stream>(device);
}

Stream::Stream(Device& device) : device_(device) {
  std::lock_guard<std::mutex> lock(device_.streams_mutex_);
  // Allocates before the thread starts; the other steps cannot throw.
  device_.streams_.reserve(device_.streams_.size() + 1);
  thread_ = std::thread([this] { Run(); });
  device_.streams_.push_back(this);
}

Stream::~Stream() {
  if (IsForkedChild()) {  // the thread exists only in the parent
    thread_.detach();
    (void)enqueued_.release();
    new std::vector<Task>(std::move(queue_));  // leaked, with its moments
    return;
  }
  {
    std::lock_guard<std::mutex> lock(device_.streams_mutex_);
    auto& streams = device_.streams_;
    streams.erase(std::find(streams.begin(), streams.end(), this));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  waiting_work_.store(true, std::memory_order_release);
  enqueued_->notify_one();
  thread_.join();
}

absl::Status Stream::CopyToDevice(void* device_dst, const void* host_src,
                                  size_t bytes) {
  absl::Status status = CheckFault("memcpy_htod");
  if (status.ok()) status = device_.CheckHostRange(host_src, bytes);
  if (!status.ok()) return status;
  absl::StatusOr<void*> dst = device_.ToPrivate(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  return EnqueueCopy(*dst, host_src, bytes);
}

absl::Status Stream::CopyToHost(void* host_dst, const void* device_src,
                                size_t bytes) {
  absl::Status status = CheckFault("memcpy_dtoh");
  if (status.ok()) status = device_.CheckHostRange(host_dst, bytes);
  if (!status.ok()) return status;
  absl::StatusOr<void*> src = device_.ToPrivate(device_src, bytes);
  if (!src.ok()) return src.status();
  return EnqueueCopy(host_dst, *src, bytes);
}

absl::Status Stream::CopyOnDevice(void* device_dst, const void* device_src,
                                  size_t bytes) {
  absl::Status status = CheckFault("memcpy_dtod");
  if (!status.ok()) return status;
  absl::StatusOr<void*> dst = device_.ToPrivateOfAny(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  absl::StatusOr<void*> src = device_.ToPrivateOfAny(device_src, bytes);
  if (!src.ok()) return src.status();
  return EnqueueCopy(*dst, *src, bytes);
}

absl::Status Stream::Zero(void* device_dst, size_t bytes) {
  absl::Status status = CheckFault("mem_zero");
  if (!status.ok()) return status;
  return EnqueueFill(device_dst, 0, bytes);
}

absl::Status Stream::Fill(void* device_dst, uint8_t pattern, size_t bytes) {
  absl::Status status = CheckFault("memset");
  if (!status.ok()) return status;
  return EnqueueFill(device_dst, pattern, bytes);
}

absl::Status Stream::Fill32(void* device_dst, uint32_t pattern, size_t bytes) {
  absl::Status status = CheckFault("memset32");
  if (!status.ok()) return status;
  if (bytes % 4 != 0 || reinterpret_cast<uintptr_t>(device_dst) % 4 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot fill ", bytes, " bytes at ", absl::Hex(device_dst),
        " with a 4-byte pattern: address and size must be multiples of 4"));
  }
  absl::StatusOr<void*> dst = device_.ToPrivate(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  Enqueue(Returning([dst = static_cast<uint32_t*>(*dst), pattern, bytes] {
            std::fill_n(dst, bytes / 4, pattern);
          }),
          Skip::kAfterError);
  return absl::OkStatus();
}

absl::Status Stream::LaunchKernel(Work kernel) {
  absl::Status status = CheckFault("launch");
  if (!status.ok()) return status;
  Enqueue(std::move(kernel), Skip::kAfterError);
  return absl::OkStatus();
}

absl::Status Stream::RunHostTask(Work task) {
  absl::Status status = CheckFault("host_callback");
  if (!status.ok()) return status;
  Enqueue(std::move(task), Skip::kNever);
  return absl::OkStatus();
}

absl::Status Stream::Record(Event& event) {
  absl::Status status = CheckFault("record_event");
  if (!status.ok()) return status;
  event.set_moment(EnqueueMoment(/*clear=*/false));
  return absl::OkStatus();
}

absl::Status Stream::WaitFor(const Event& event) {
  absl::Status status = CheckFault("wait_for_event");
  if (!status.ok()) return status;
  if (std::shared_ptr<Moment> moment = event.moment()) {
    EnqueueWait(std::move(moment));
  }
  return absl::OkStatus();
}

absl::Status Stream::WaitFor(Stream& other) {
  absl::Status status = CheckFault("create_stream_dependency");
  if (!status.ok()) return status;
  EnqueueWait(other.EnqueueMoment(/*clear=*/false));
  return absl::OkStatus();
}

absl::Status Stream::Start(Timer& timer) {
  absl::Status status = CheckFault("start_timer");
  if (!status.ok()) return status;
  // The work that is measured follows, and wakes the stream's thread.
  Enqueue(Returning([points = timer.SetStart()] {
            points->start = NowNanoseconds();
          }),
          Skip::kNever, /*wake=*/false);
  return absl::OkStatus();
}

absl::Status Stream::Stop(Timer& timer) {
  absl::Status status = CheckFault("stop_timer");
  if (!status.ok()) return status;
  Enqueue(Returning(
              [points = timer.SetStop()] { points->stop = NowNanoseconds(); }),
          Skip::kNever);
  return absl::OkStatus();
}

absl::Status Stream::Synchronize() {
  absl::Status status = CheckFault("block_host_until_done");
  if (!status.ok()) return status;
  if (IsThisThread()) {
    return absl::FailedPreconditionError(
        "a task must not wait for its own stream");
  }
  const std::shared_ptr<Moment> moment = EnqueueMoment(/*clear=*/true);
  moment->Await();
  return moment->status();
}

absl::Status Stream::status() const {
  absl::Status fault = CheckFault("get_stream_status");
  if (!fault.ok()) return fault;
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status Stream::EnqueueCopy(void* dst, const void* src, size_t bytes) {
  // memmove, because the ranges of a copy on the device may overlap.
  Enqueue(Returning([dst, src, bytes] {
            if (bytes > 0) memmove(dst, src, bytes);
          }),
          Skip::kAfterError);
  return absl::OkStatus();
}

absl::Status Stream::EnqueueFill(void* device_dst, uint8_t pattern,
                                 size_t bytes) {
  absl::StatusOr<void*> dst = device_.ToPrivate(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  Enqueue(Returning([dst = *dst, pattern, bytes] {
            if (bytes > 0) memset(dst, pattern, bytes);
          }),
          Skip::kAfterError);
  return absl::OkStatus();
}

std::shared_ptr<Moment> Stream::EnqueueMoment(bool clear) {
  auto moment = std::make_shared<Moment>();
  Enqueue(
      [this, moment, clear] {
        std::unique_lock<std::mutex> lock(mutex_);
        absl::Status status = status_;
        if (clear) status_ = absl::OkStatus();
        lock.unlock();
        moment->Reach(std::move(status));
        return absl::OkStatus();
      },
      Skip::kNever);
  return moment;
}

void Stream::EnqueueWait(std::shared_ptr<Moment> moment) {
  Enqueue(
      [moment = std::move(moment)] {
        moment->Await();
        return moment->status();
      },
      Skip::kNever);
}

void Stream::Enqueue(Work work, Skip skip, bool wake) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(Task{std::move(work), skip});
    waiting_work_.store(true, std::memory_order_release);
    wake = wake && asleep_;
  }
  if (wake) enqueued_->notify_one();
}

void Stream::Run() {
  std::vector<Task> batch;
  while (NextBatch(&batch)) {
    for (Task& task : batch) {
      Do(task);
      task.work = nullptr;  // releases its captures in order
    }
    batch.clear();
  }
}

bool Stream::NextBatch(std::vector<Task>* batch) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (num_polls_ > 0 && !waiting_work_.load(std::memory_order_acquire) &&
         Clock::now() - start < kPollTime) {
    Relax();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  asleep_ = true;
  enqueued_->wait(lock, [this] { return !queue_.empty() || closed_; });
  asleep_ = false;
  batch->swap(queue_);
  waiting_work_.store(false, std::memory_order_relaxed);
  lock.unlock();
  num_polls_ =
      Clock::now() - start < kPollTime ? kPolls : std::max(0, num_polls_ - 1);
  return !batch->empty();
}

void Stream::Do(Task& task) {
  const bool skippable = task.skip == Skip::kAfterError;
  // Only this thread writes status_, so it can read it without the lock.
  if (skippable && !status_.ok()) return;
  absl::Status status = RunGuarded([&] {
    absl::Status fault = skippable ? CheckFault("device") : absl::OkStatus();
    return fault.ok() ? task.work() : fault;
  });
  if (status.ok()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(std::move(status));  // keeps the first error
}

}  // namespace cpu_sim::rt
