// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_LEAK_CHECKED_FAKE_H_
#define TFPLUG_TESTS_LEAK_CHECKED_FAKE_H_

#include <doctest/doctest.h>

#include <utility>

#include "tfplug/testing/fake_tensorflow.h"
#include "tfplug/testing/leak_check.h"

namespace tfplug::testing {

// A fake of TensorFlow whose destructor checks that no object has leaked.
class LeakCheckedFake {
 public:
  explicit LeakCheckedFake(const FakeOptions& options = {}) : fake_(options) {}
  ~LeakCheckedFake() {
    KernelRegistry::Get().Clear();
    RegisteredOps().clear();
    CHECK(leaks_.Check() == absl::OkStatus());
  }

 private:
  const LeakCheck leaks_;
  const ScopedFakeTensorFlow fake_;
};

// Checks that `run` returns the failure of each call of TensorFlow and leaks
// nothing. See TryEachFault.
template <class Run>
void FailEachCall(Run&& run) {
  CHECK(TryEachFault(std::forward<Run>(run)) == absl::OkStatus());
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_LEAK_CHECKED_FAKE_H_
