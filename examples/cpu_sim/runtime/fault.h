// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_FAULT_H_
#define CPU_SIM_RUNTIME_FAULT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Faults on demand, so that tests can see what becomes of a driver's failure
// at every place where a driver can fail.
//
// Each entry of the runtime asks CheckFault("its name"). Nothing is injected
// unless someone asks for it in one of three ways:
//
//   C++          InjectFault("hook=memcpy_htod,kind=oom")
//   environment  CPU_SIM_FAULT=hook=memcpy_htod,after=3,times=2,kind=throw
//   a file       CPU_SIM_FAULT_FILE names a file that holds a FaultControl;
//                it is mapped, so a test in another language can arm a fault
//                in the middle of a run and see whether it was reached
//
// A fault lets `after` calls pass (default 0) and fails the `times` calls
// that follow (default 1). Its kind is one of
//
//   error      INTERNAL, with a driver's error number in the message
//   oom        RESOURCE_EXHAUSTED
//   throw      throws std::runtime_error
//   bad_alloc  throws std::bad_alloc
//   unknown    throws something that is no std::exception
namespace cpu_sim::rt {

enum class FaultKind : uint32_t { kError, kOom, kThrow, kBadAlloc, kUnknown };

// The fault to come. `armed` is written last by who arms it, and becomes 0
// when the last of the `times` calls has failed.
struct FaultControl {
  std::atomic<uint32_t> armed{0};
  FaultKind kind{};
  uint32_t after = 0;
  uint32_t times = 0;
  char hook[48] = {};  // ends in a zero
};
static_assert(sizeof(FaultControl) == 64);

namespace fault_internal {
extern FaultControl* control;  // set before the first device exists
absl::Status Reach(const char* hook);
}  // namespace fault_internal

// One load and one branch when nothing is armed. Thread-safe.
inline absl::Status CheckFault(const char* hook) {
  if (fault_internal::control->armed.load(std::memory_order_acquire) == 0) {
    return absl::OkStatus();
  }
  return fault_internal::Reach(hook);
}

// Replaces the fault to come; an empty text disarms. INVALID_ARGUMENT, with
// nothing changed, when the text is not as above.
absl::Status InjectFault(absl::string_view text);

// Whether the fault has not yet failed all of its calls.
bool FaultPending();

// Heeds the two environment variables. Not thread-safe: for start-up.
absl::Status InjectFaultsFromEnvironment();

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_FAULT_H_
