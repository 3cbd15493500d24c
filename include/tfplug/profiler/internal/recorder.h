// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_RECORDER_H_
#define TFPLUG_PROFILER_INTERNAL_RECORDER_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "tfplug/base/internal/profiling.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/profiler/internal/thread_buffer.h"
#include "tfplug/profiler/internal/work_timers.h"

#pragma GCC visibility push(hidden)

// Records the activities of this library while a profile is recorded: one
// buffer for each thread, no lock, bounded memory.
//
// If the device has times of its own, a timer around each piece of work takes
// them. Otherwise, the end of work on a stream is recorded by a host task, a
// "mark", that is enqueued after the work. Work begins when the stream's
// earlier work has ended, or when it is enqueued, whichever is later.
namespace tfplug::profiler_internal {

// The functions of the device's classes that the recorder calls.
struct TracedStreams {
  uint32_t (*id)(capi::SP_Stream stream);
  // Enqueues a host task; returns false if that failed.
  bool (*run_on_host)(capi::SP_Stream stream,
                      capi::SE_StatusCallbackFn function, void* argument);
  // Starts `idle`, or a new timer if that is null. Returns null on failure.
  // Null if the device has no times.
  std::unique_ptr<WorkTimer> (*start)(capi::SP_Stream stream,
                                      std::unique_ptr<WorkTimer> idle);
};

class Recorder {
 public:
  [[gnu::cold]] static uint64_t NowNs() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<uint64_t>(now.tv_nsec);
  }

  // Starts a new profile. Calls of Start and Stop must not overlap.
  [[gnu::cold]] static void Start(const TracedStreams& streams) {
    streams_.store(&streams, std::memory_order_relaxed);
    pending_marks_.store(0, std::memory_order_relaxed);
    timers().Clear();
    dropped_.store(0, std::memory_order_relaxed);
    started_ns_ = NowNs();
    generation_.fetch_add(1);
    __atomic_store_n(&internal::profiling.functions, &kFunctions,
                     __ATOMIC_RELEASE);
    ReplaceGetStream(true);
    __atomic_store_n(&internal::profiling.gate, ~uintptr_t{0},
                     __ATOMIC_RELEASE);
  }

  // Stops recording and waits for pending work, at most for `timeout_ns`: the
  // work of a stream that hangs is missing in the profile.
  [[gnu::cold]] static void Stop(uint64_t timeout_ns = 2000000000) {
    __atomic_store_n(&internal::profiling.gate, uintptr_t{0}, __ATOMIC_RELEASE);
    ReplaceGetStream(false);
    const uint64_t end_ns = NowNs() + timeout_ns;
    while ((!timers().ReadAll(&AddTimes) ||
            pending_marks_.load(std::memory_order_acquire) > 0) &&
           NowNs() < end_ns) {
      const timespec millisecond = {0, 1000000};
      nanosleep(&millisecond, nullptr);
    }
    timers().Clear();
  }

  [[gnu::cold]] static uint64_t started_ns() { return started_ns_; }

  // Adds a record to the buffer of the calling thread.
  [[gnu::cold]] static void Add(internal::Record record,
                                absl::string_view node) {
    AddTo(generation_.load(std::memory_order_acquire), record, node);
  }

  // Returns an id that connects work on the host and on the device.
  [[gnu::cold]] static uint64_t NextCorrelation() {
    return next_correlation_.fetch_add(1, std::memory_order_relaxed);
  }

  // Begins and ends the measurement of work that the calling thread enqueues on
  // `stream`. EndWork owns the timer.
  [[gnu::cold]] static WorkTimer* StartWork(capi::SP_Stream stream) {
    const TracedStreams& streams = *streams_.load(std::memory_order_relaxed);
    if (streams.start == nullptr) return nullptr;
    return streams.start(stream, timers().TakeIdle(streams.id(stream)))
        .release();
  }
  [[gnu::cold]] static void EndWork(capi::SP_Stream stream,
                                    uint64_t correlation, WorkTimer* timer) {
    std::unique_ptr<WorkTimer> owned(timer);
    if (timer == nullptr || !timer->Stop(stream)) {
      return Mark(stream, correlation);
    }
    timers().Add(StreamId(stream), correlation, std::move(owned), &AddTimes);
  }

  [[gnu::cold]] static uint32_t StreamId(capi::SP_Stream stream) {
    return streams_.load(std::memory_order_relaxed)->id(stream);
  }

  // Calls use(thread, record) for all records of the last profile, thread by
  // thread. Returns the number of records that were dropped.
  template <class Use>
  [[gnu::cold]] static uint64_t ForEach(Use use) {
    const uint64_t generation = generation_.load();
    uint64_t dropped = 0;
    for (const ThreadBuffer* buffer = buffers_.load(std::memory_order_acquire);
         buffer != nullptr; buffer = buffer->next) {
      buffer->ForEach(generation, [&](const internal::Record& record) {
        use(buffer->thread(), record);
      });
      dropped += buffer->Dropped(generation);
    }
    return dropped + dropped_.load();
  }

 private:
  static constexpr int kGenerationBits = 24;
  static constexpr uint64_t kGenerationMask = (1 << kGenerationBits) - 1;

  // Is never destroyed: kernels may run while the process exits.
  static WorkTimers& timers() {
    static auto* const timers = new WorkTimers;
    return *timers;
  }
  [[gnu::cold]] static void AddTimes(const WorkTimers::Result& result) {
    internal::Record record = {};
    record.kind = internal::Activity::kTimed;
    record.begin_ns = result.begin_ns;
    record.end_ns = result.end_ns;
    record.correlation = result.correlation;
    record.stream = result.stream;
    Add(record, "");
  }

  // Enqueues a mark for the end of the work that `stream` has so far.
  [[gnu::cold]] static void Mark(capi::SP_Stream stream, uint64_t correlation) {
    const uint64_t generation = generation_.load(std::memory_order_relaxed);
    pending_marks_.fetch_add(1, std::memory_order_relaxed);
    const uintptr_t argument =
        (correlation << kGenerationBits) | (generation & kGenerationMask);
    if (!streams_.load(std::memory_order_relaxed)
             ->run_on_host(stream, &OnMark,
                           reinterpret_cast<void*>(argument))) {
      pending_marks_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  [[gnu::cold]] static void AddTo(uint64_t generation,
                                  const internal::Record& record,
                                  absl::string_view node) {
    if (ThreadBuffer* const buffer = OwnBuffer(generation)) {
      buffer->Add(generation, record, node);
    } else {
      dropped_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Runs on a thread of the driver, when the stream reaches the mark.
  [[gnu::cold]] static void OnMark(void* argument, capi::TF_Status*) {
    const auto mark = reinterpret_cast<uintptr_t>(argument);
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    if ((generation & kGenerationMask) != (mark & kGenerationMask)) return;
    internal::Record record = {};
    record.kind = internal::Activity::kDone;
    record.begin_ns = record.end_ns = NowNs();
    record.correlation = mark >> kGenerationBits;
    AddTo(generation, record, "");
    pending_marks_.fetch_sub(1, std::memory_order_release);
  }

  // ---- Kernels -------------------------------------------------------------

  [[gnu::cold]] static void BeginLaunch(internal::LaunchRecord& launch) {
    launch.outer = current_launch_;
    current_launch_ = &launch;
    launch.begin_ns = NowNs();
  }
  [[gnu::cold]] static void EndLaunch(internal::LaunchRecord& launch,
                                      const char* ops, absl::string_view node,
                                      int64_t step) {
    internal::Record record = {};
    record.kind = internal::Activity::kLaunch;
    record.begin_ns = launch.begin_ns;
    record.end_ns = NowNs();
    record.name = ops;
    record.values[0] = static_cast<uint64_t>(step);
    current_launch_ = launch.outer;
    if (launch.stream != nullptr) {
      record.stream = StreamId(launch.stream);
      record.correlation = NextCorrelation();
    }
    Add(record, node);
    if (launch.stream != nullptr) {
      EndWork(launch.stream, record.correlation, launch.timer);
    }
  }

  // While a profile is recorded, kernels get their stream from this function.
  [[gnu::cold]] static capi::SP_Stream GetStream(
      capi::TF_OpKernelContext* context, capi::TF_Status* status) {
    const capi::SP_Stream stream = get_stream_(context, status);
    internal::LaunchRecord* const launch = current_launch_;
    if (launch != nullptr && launch->stream == nullptr && stream != nullptr) {
      launch->stream = stream;
      launch->timer = StartWork(stream);
    }
    return stream;
  }
  [[gnu::cold]] static void ReplaceGetStream(bool by_own) {
    auto* const current = internal::tensorflow.TF_GetStream;
    if (by_own && current != nullptr && current != &GetStream) {
      get_stream_ = current;
      __atomic_store_n(&internal::tensorflow.TF_GetStream, &GetStream,
                       __ATOMIC_RELEASE);
    } else if (!by_own && current == &GetStream) {
      __atomic_store_n(&internal::tensorflow.TF_GetStream, get_stream_,
                       __ATOMIC_RELEASE);
    }
  }

  // ---- Buffers -------------------------------------------------------------

  struct BufferOwner {
    ThreadBuffer* buffer = nullptr;
    ~BufferOwner() {
      if (buffer != nullptr) buffer->Disown();
    }
  };

  // Returns the calling thread's buffer, or null without memory. Reuses that of
  // a thread that has exited, if it has no record of this profile.
  [[gnu::cold]] static ThreadBuffer* OwnBuffer(uint64_t generation) {
    static thread_local BufferOwner owner;
    if (owner.buffer != nullptr) return owner.buffer;
    for (ThreadBuffer* buffer = buffers_.load(std::memory_order_acquire);
         buffer != nullptr; buffer = buffer->next) {
      if (buffer->generation() != generation && buffer->TryOwn()) {
        return owner.buffer = buffer;
      }
    }
    void* const memory = AllocateForTrace(sizeof(ThreadBuffer));
    if (memory == nullptr) return nullptr;
    auto* const added = new (memory) ThreadBuffer;
    added->TryOwn();
    added->next = buffers_.load(std::memory_order_relaxed);
    while (!buffers_.compare_exchange_weak(added->next, added,
                                           std::memory_order_release)) {
    }
    return owner.buffer = added;
  }

  static constexpr internal::ProfilingFunctions kFunctions = {
      &NowNs, &BeginLaunch, &EndLaunch, &Add};

  static inline std::atomic<uint64_t> generation_{0};
  static inline std::atomic<uint64_t> next_correlation_{1};
  static inline std::atomic<int64_t> pending_marks_{0};
  static inline std::atomic<uint64_t> dropped_{0};  // for lack of a buffer
  static inline std::atomic<const TracedStreams*> streams_{nullptr};
  static inline std::atomic<ThreadBuffer*> buffers_{nullptr};
  static inline uint64_t started_ns_ = 0;
  static inline decltype(capi::Functions::TF_GetStream) get_stream_ = nullptr;
  static inline thread_local internal::LaunchRecord* current_launch_ = nullptr;
};

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_RECORDER_H_
