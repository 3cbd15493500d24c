// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_LEAKS_H_
#define TFPLUG_TESTS_FAULT_CORE_LEAKS_H_

#include <doctest/doctest.h>

#include "fault_core/core.h"

namespace tfplug::testing {

// Core for a test, which at its end has as many objects as it began with.
class LeakCheckedFake {
 public:
  explicit LeakCheckedFake(const FakeOptions& options = {}) : core_(options) {}
  ~LeakCheckedFake() {
    RegisteredKernels().clear();
    RegisteredOps().clear();
    CHECK(LiveObjectCount() == before_);
  }

 private:
  const int64_t before_ = LiveObjectCount();
  const ScopedFakeTensorFlow core_;
};

// Lets each call of core's that `run` makes fail in turn. `run` returns the
// status that core or the author has got; it must be the injected one.
template <class Run>
void FailEachCall(Run run) {
  const int64_t calls = CountCalls([&] { CHECK(run() == absl::OkStatus()); });
  CHECK(calls > 0);
  for (int64_t n = 1; n <= calls; ++n) {
    const int64_t before = LiveObjectCount();
    Fault fault(n);
    const absl::Status status = run();
    CAPTURE(n);
    CAPTURE(fault.failed());
    CAPTURE(status.ToString());
    CHECK(LiveObjectCount() == before);
    CHECK(absl::IsResourceExhausted(status));
  }
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_LEAKS_H_
