// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

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

// A kernel of at most kShortKernel costs less than waking the stream's thread.
// The enqueuing thread runs kernels once there were kMinShort more short ones
// than others; a long one counts as many times as it is longer, within limits:
// the time may be that of another process.
constexpr std::chrono::microseconds kShortKernel(5);
constexpr int kMinShort = 64, kMaxShort = 128, kMaxWeight = 16;

// Gives the calling thread the floating-point mode of a stream's thread:
// TensorFlow's threads flush denormal numbers to zero.
class DefaultFloatingPoint {
 public:
#if defined(__x86_64__) || defined(__i386__)
  DefaultFloatingPoint() : mode_(_mm_getcsr()) {
    if (mode_ != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatingPoint() { _mm_setcsr(mode_); }

 private:
  static constexpr unsigned kDefault = 0x1f80;
  const unsigned mode_;
#else
  DefaultFloatingPoint() {
    std::fegetenv(&mode_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&mode_); }

 private:
  std::fenv_t mode_;
#endif
};

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
    // Leaked, with its moments.
    new (std::nothrow) std::vector<Task>(std::move(queue_));
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
          Skip::kAfterError, PlaceOfCopy(bytes));
  return absl::OkStatus();
}

absl::Status Stream::LaunchKernel(Work kernel) {
  absl::Status status = CheckFault("launch");
  if (!status.ok()) return status;
  Enqueue(std::move(kernel), Skip::kAfterError, Place::kAsKernels);
  return absl::OkStatus();
}

absl::Status Stream::RunHostTask(Work task, bool is_short) {
  absl::Status status = CheckFault("host_callback");
  if (!status.ok()) return status;
  Enqueue(std::move(task), Skip::kNever,
          is_short ? Place::kAnywhere : Place::kDevice);
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
  // The work that is measured follows, and wakes the stream's thread, which
  // takes the time just before it.
  Enqueue(Returning([points = timer.SetStart()] {
            points->start = NowNanoseconds();
          }),
          Skip::kNever, Place::kDevice, /*wake=*/false);
  return absl::OkStatus();
}

absl::Status Stream::Stop(Timer& timer) {
  absl::Status status = CheckFault("stop_timer");
  if (!status.ok()) return status;
  Enqueue(Returning(
              [points = timer.SetStop()] { points->stop = NowNanoseconds(); }),
          Skip::kNever, Place::kAnywhere);
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
          Skip::kAfterError, PlaceOfCopy(bytes));
  return absl::OkStatus();
}

absl::Status Stream::EnqueueFill(void* device_dst, uint8_t pattern,
                                 size_t bytes) {
  absl::StatusOr<void*> dst = device_.ToPrivate(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  Enqueue(Returning([dst = *dst, pattern, bytes] {
            if (bytes > 0) memset(dst, pattern, bytes);
          }),
          Skip::kAfterError, PlaceOfCopy(bytes));
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
      Skip::kNever, Place::kAnywhere);
  return moment;
}

void Stream::EnqueueWait(std::shared_ptr<Moment> moment) {
  const bool is_reached = moment->IsReached();
  if (is_reached && moment->status().ok()) return;
  Enqueue(
      [moment = std::move(moment)] {
        moment->Await();
        return moment->status();
      },
      Skip::kNever, is_reached ? Place::kAnywhere : Place::kDevice);
}

void Stream::Enqueue(Work work, Skip skip, Place place, bool wake) {
  Task task{std::move(work), skip, place};
  std::unique_lock<std::mutex> lock(mutex_);
  if (is_running_ || !queue_.empty() || place == Place::kDevice ||
      (place == Place::kAsKernels && num_short_ < kMinShort)) {
    queue_.push_back(std::move(task));
    waiting_work_.store(true, std::memory_order_release);
    wake = wake && asleep_ && !is_running_;
  } else {
    is_running_ = true;
    enqueuing_thread_.store(std::this_thread::get_id(),
                            std::memory_order_relaxed);
    lock.unlock();
    {
      const DefaultFloatingPoint mode;
      Do(task);
      task.work = nullptr;  // releases its captures in order
    }
    lock.lock();
    enqueuing_thread_.store(std::thread::id(), std::memory_order_relaxed);
    is_running_ = false;
    wake = asleep_ && !queue_.empty();
  }
  lock.unlock();
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

bool Stream::TakeBatch(std::vector<Task>* batch) {
  batch->swap(queue_);
  waiting_work_.store(false, std::memory_order_relaxed);
  is_running_ = !batch->empty();
  return is_running_;
}

bool Stream::NextBatch(std::vector<Task>* batch) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock<std::mutex> lock(mutex_);
  if (TakeBatch(batch)) return true;
  lock.unlock();
  const Clock::time_point start = Clock::now();
  while (num_polls_ > 0 && !waiting_work_.load(std::memory_order_acquire) &&
         Clock::now() - start < kPollTime) {
    Relax();
  }
  lock.lock();
  asleep_ = true;
  enqueued_->wait(
      lock, [this] { return !is_running_ && (!queue_.empty() || closed_); });
  asleep_ = false;
  const bool has_work = TakeBatch(batch);
  lock.unlock();
  num_polls_ =
      Clock::now() - start < kPollTime ? kPolls : std::max(0, num_polls_ - 1);
  return has_work;
}

absl::Status Stream::RunTimed(Work& kernel) {
  const auto start = std::chrono::steady_clock::now();
  absl::Status status = kernel();
  const auto took = std::chrono::steady_clock::now() - start;
  num_short_ += took <= kShortKernel ? 1
                                     : -static_cast<int>(std::min<int64_t>(
                                           kMaxWeight, took / kShortKernel));
  num_short_ = std::clamp(num_short_, 0, kMaxShort);
  return status;
}

void Stream::Do(Task& task) {
  const bool skippable = task.skip == Skip::kAfterError;
  if (skippable && !status_.ok()) return;
  absl::Status status = RunGuarded([&] {
    absl::Status fault = skippable ? CheckFault("device") : absl::OkStatus();
    if (!fault.ok()) return fault;
    return task.place == Place::kAsKernels ? RunTimed(task.work) : task.work();
  });
  if (status.ok()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(std::move(status));  // keeps the first error
}

}  // namespace cpu_sim::rt
