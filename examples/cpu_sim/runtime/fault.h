// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_FAULT_H_
#define CPU_SIM_RUNTIME_FAULT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Fault injection: tests let each call of the driver fail in every way in which
// a driver can fail.
//
// Each entry point of the runtime calls CheckFault("its name"). Faults are
// injected in one of three ways:
//
//   C++          InjectFault("hook=memcpy_htod,kind=oom")
//   environment  CPU_SIM_FAULT=hook=memcpy_htod,after=3,times=2,kind=throw
//   a file       CPU_SIM_FAULT_FILE names a file that holds a FaultControl;
//                it is mapped, so a test in another language can arm a fault
//                during a run and check whether it was reached
//
// A fault lets `after` calls pass (default 0) and fails the `times` calls
// that follow (default 1). Its kind is one of
//
//   error      INTERNAL, with a driver's error number in the message
//   oom        RESOURCE_EXHAUSTED
//   throw      throws std::runtime_error
//   bad_alloc  throws std::bad_alloc
//   unknown    throws an object that is not a std::exception
//
// The same check fails every call in a forked child, which has none of the
// runtime's threads.
namespace cpu_sim::rt {

enum class FaultKind : uint32_t { kError, kOom, kThrow, kBadAlloc, kUnknown };

// The pending fault. `armed` is written last when a fault is armed, and becomes
// 0 after the last of the `times` calls has failed.
struct FaultControl {
  std::atomic<uint32_t> armed{0};
  FaultKind kind{};
  uint32_t after = 0;
  uint32_t times = 0;
  char hook[48] = {};  // null-terminated
};
static_assert(sizeof(FaultControl) == 64);

namespace fault_internal {
extern FaultControl* control;  // set before the first device exists
absl::Status Reach(const char* hook);
}  // namespace fault_internal

// Returns the pending fault if it applies to `hook`, or FAILED_PRECONDITION in
// a forked child. Costs one load and one branch otherwise. Thread-safe.
inline absl::Status CheckFault(const char* hook) {
  if (fault_internal::control->armed.load(std::memory_order_acquire) == 0) {
    return absl::OkStatus();
  }
  return fault_internal::Reach(hook);
}

// Replaces the pending fault; an empty text disarms it. Returns
// INVALID_ARGUMENT, without any change, if the text is malformed.
absl::Status InjectFault(absl::string_view text);

// Returns whether the pending fault will make further calls fail.
bool FaultPending();

// Reads the two environment variables, or those with another prefix. Not
// thread-safe; called at start-up.
absl::Status InjectFaultsFromEnvironment(const std::string& prefix = "CPU_SIM");

// Makes CheckFault fail in children that are forked from now on. Thread-safe.
void FailAfterFork();

// Returns whether this process was forked after FailAfterFork().
bool IsForkedChild();

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_FAULT_H_
