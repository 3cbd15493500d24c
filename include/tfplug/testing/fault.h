// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAULT_H_
#define TFPLUG_TESTING_FAULT_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "tfplug/testing/internal/status_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Makes one call of TensorFlow's C API fail: with RESOURCE_EXHAUSTED and
// "injected into TF_…", or with a null result where there is no TF_Status.
// Calls that can fail in TensorFlow are counted across all threads, starting at
// 1 when the Fault is constructed. Only one Fault may exist at a time.
//
//   testing::Fault fault("TF_AllocateTemp", 2);
//   CHECK(absl::IsResourceExhausted(run.Run()));
//   CHECK(fault.failed() == "TF_AllocateTemp");
class Fault {
 public:
  // Fails call number `call` of any function; 0 fails none.
  explicit Fault(int64_t call) : Fault("", call) {}
  // Fails call number `call` of `function`.
  explicit Fault(std::string function, int64_t call = 1) {
    std::lock_guard<std::mutex> lock(plan().mutex);
    plan().calls = 0;
    plan().fail_at = call;
    plan().function = std::move(function);
    plan().failed.clear();
  }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault() {
    std::lock_guard<std::mutex> lock(plan().mutex);
    plan().fail_at = 0;
  }

  // Returns the function that failed; empty if the call has not happened.
  std::string failed() const {
    std::lock_guard<std::mutex> lock(plan().mutex);
    return plan().failed;
  }
  // Returns the number of calls counted so far.
  int64_t calls() const {
    std::lock_guard<std::mutex> lock(plan().mutex);
    return plan().calls;
  }

  // Is called by the fake's functions: counts a call, and returns whether it
  // must fail.
  static bool Hits(const char* function) {
    std::lock_guard<std::mutex> lock(plan().mutex);
    if (!plan().function.empty() && plan().function != function) return false;
    if (++plan().calls != plan().fail_at) return false;
    plan().failed = function;
    return true;
  }
  static bool Hits(const char* function, TF_Status* status) {
    if (!Hits(function)) return false;
    TF_SetStatus(status, capi::TF_RESOURCE_EXHAUSTED,
                 (std::string("injected into ") + function).c_str());
    return true;
  }

 private:
  struct Plan {
    std::mutex mutex;
    int64_t calls = 0;
    int64_t fail_at = 0;
    std::string function;
    std::string failed;
  };
  static Plan& plan() {
    static auto* const plan = new Plan;
    return *plan;
  }
};

// Returns the number of calls that `run` makes and that can fail.
template <class Run>
int64_t CountCalls(Run&& run) {
  const Fault none(0);
  run();
  return none.calls();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAULT_H_
