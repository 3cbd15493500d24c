// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PROFILING_H_
#define TFPLUG_BASE_INTERNAL_PROFILING_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tfplug/abi/types.h"

#pragma GCC visibility push(hidden)

// The connection between the code that is profiled and the recorder of the
// default profiler (profiler/internal/recorder.h), which only the file with
// TFPLUG_REGISTER_DEVICE compiles.
//
// While no profile is recorded, a launch takes no more instructions than
// without a profiler: the comparison of the kernel with null, which it needs
// anyway, becomes a comparison with `profiling.gate`.
namespace tfplug::profiler_internal {
class WorkTimer;
}  // namespace tfplug::profiler_internal

namespace tfplug::internal {

enum class Activity : uint8_t {
  kLaunch,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kFill,
  kWait,  // of a stream, for an event or for another stream
  kHostTask,
  kHostCall,  // a call that enqueues nothing to be timed, or that blocks
  kAllocate,
  kDeallocate,
  kGraphPass,
  kDone,   // a stream has reached the end of the work `correlation`
  kTimed,  // The device did the work `correlation`, in times of its clock.
};

// The record of one activity. The meaning of `values` depends on the
// kind: see TraceReport.
struct Record {
  uint64_t begin_ns;  // since the epoch
  uint64_t end_ns;
  const char* name;      // static: a C field, or the ops of a kernel
  const char* node;      // kept by the recorder; null if there is none
  uint64_t correlation;  // connects host and device; 0 if nothing is enqueued
  uint64_t values[4];
  uint32_t stream;  // StreamState::trace_id; 0: none
  Activity kind;
};

// One run of a kernel, on the stack of its thread.
struct LaunchRecord {
  uint64_t begin_ns = 0;
  capi::SP_Stream stream = nullptr;  // set when the kernel asks for it
  profiler_internal::WorkTimer* timer =
      nullptr;                    // owned; for its work on that stream
  LaunchRecord* outer = nullptr;  // A kernel may run another kernel.
};

struct ProfilingFunctions {
  uint64_t (*now_ns)();
  void (*begin_launch)(LaunchRecord& launch);
  // `ops` is static, `node` is copied.
  void (*end_launch)(LaunchRecord& launch, const char* ops,
                     absl::string_view node, int64_t step);
  // Adds the record with a copy of `node`.
  void (*add)(Record record, absl::string_view node);
};

struct Profiling {
  // All ones while a profile is recorded, otherwise 0. Accessed with the
  // __atomic functions and ReadChanging.
  uintptr_t gate = 0;
  // Not null while a profile is recorded, and from then on.
  const ProfilingFunctions* functions = nullptr;
};
inline Profiling profiling;

// Reads a variable that the recorder may change at any time. g++ does not fold
// an atomic load into the instruction that uses the value, so this is a plain
// one, of an aligned word.
template <class T>
[[gnu::always_inline]] inline T ReadChanging(const T& variable) {
#if defined(__SANITIZE_THREAD__)
  return __atomic_load_n(&variable, __ATOMIC_RELAXED);
#else
  return variable;
#endif
}

// Returns true if `kernel` is null or a profile is recorded.
[[gnu::always_inline]] inline bool IsNullOrProfiled(const void* kernel) {
  return reinterpret_cast<uintptr_t>(kernel) <= ReadChanging(profiling.gate);
}

// Returns the recorder's functions while a profile is recorded, otherwise null.
inline const ProfilingFunctions* ActiveProfiling() {
  if (__atomic_load_n(&profiling.gate, __ATOMIC_ACQUIRE) == 0) return nullptr;
  return __atomic_load_n(&profiling.functions, __ATOMIC_ACQUIRE);
}

// Records one activity on the host, from construction to destruction, if a
// profile is recorded.
class HostRecord {
 public:
  HostRecord(Activity kind, const char* name)
      : functions_(ActiveProfiling()), record_() {
    if (functions_ == nullptr) return;
    record_.kind = kind;
    record_.name = name;
    record_.begin_ns = functions_->now_ns();
  }
  HostRecord(const HostRecord&) = delete;
  HostRecord& operator=(const HostRecord&) = delete;
  ~HostRecord() {
    if (functions_ == nullptr) return;
    record_.end_ns = functions_->now_ns();
    functions_->add(record_, "");
  }

  // Returns true if a profile is recorded.
  explicit operator bool() const { return functions_ != nullptr; }
  Record* operator->() { return &record_; }

 private:
  const ProfilingFunctions* const functions_;
  Record record_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PROFILING_H_
