// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_LEAK_CHECK_H_
#define TFPLUG_TESTING_LEAK_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/testing/fault.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Return the number of TF_Status and TF_Tensor objects in the process.
inline int64_t LiveStatusCount() { return Counted<capi::TF_Status>::live; }
inline int64_t LiveTensorCount() { return Counted<capi::TF_Tensor>::live; }

// Finds TensorFlow's objects that were created after the LeakCheck and still
// exist: statuses, tensors, buffers, kernel builders, shape handles, graph
// properties and so on.
//
//   testing::LeakCheck leaks;
//   ...
//   CHECK(leaks.Check() == absl::OkStatus());
class LeakCheck {
 public:
  // Returns INTERNAL, with types and counts, if there are more or fewer objects
  // than when this LeakCheck was constructed.
  absl::Status Check() const {
    const Counts now = Count();
    std::string leaks;
    for (size_t i = 0; i < now.size(); ++i) {
      const int64_t count = now[i].live - before_[i].live;
      if (count == 0) continue;
      absl::StrAppend(&leaks, leaks.empty() ? "" : ", ", count, " ",
                      now[i].type);
    }
    if (leaks.empty()) return absl::OkStatus();
    return absl::InternalError("objects leaked: " + leaks);
  }

 private:
  struct TypeCount {
    const char* type;
    int64_t live;
  };
  using Counts = std::array<TypeCount, 10>;

  static Counts Count() {
#define TFPLUG_FAKE_COUNT(type) \
  { #type, Counted < capi::type> ::live }
    return {{TFPLUG_FAKE_COUNT(TF_Status), TFPLUG_FAKE_COUNT(TF_Tensor),
             TFPLUG_FAKE_COUNT(TF_Buffer), TFPLUG_FAKE_COUNT(TF_KernelBuilder),
             TFPLUG_FAKE_COUNT(TF_VariableInputLockHolder),
             TFPLUG_FAKE_COUNT(TF_OpDefinitionBuilder),
             TFPLUG_FAKE_COUNT(TF_ShapeHandle),
             TFPLUG_FAKE_COUNT(TF_DimensionHandle),
             TFPLUG_FAKE_COUNT(TF_GraphProperties),
             TFPLUG_FAKE_COUNT(TF_FunctionLibraryDefinition)}};
#undef TFPLUG_FAKE_COUNT
  }

  const Counts before_ = Count();
};

// Calls `run`, which returns an absl::Status, once without a fault; then once
// for each call of TensorFlow's C API that can fail, with a fault in that call.
// Returns OK if the first run returns OK and every other run returns
// RESOURCE_EXHAUSTED and leaks nothing.
//
//   CHECK(testing::TryEachFault([&] { return RunMyKernel(); }).ok());
template <class Run>
absl::Status TryEachFault(Run&& run) {
  absl::Status status;
  const int64_t calls = CountCalls([&] { status = run(); });
  if (!status.ok()) return status;
  if (calls == 0) {
    return absl::FailedPreconditionError(
        "the run made no call of TensorFlow that can fail");
  }
  for (int64_t n = 1; n <= calls; ++n) {
    const LeakCheck leaks;
    const Fault fault(n);
    status = run();
    const std::string call =
        absl::StrCat("call ", n, ", of ", fault.failed(), ", failed");
    if (!absl::IsResourceExhausted(status)) {
      return absl::InternalError(call + ", but the run returned " +
                                 status.ToString());
    }
    if (const absl::Status leaked = leaks.Check(); !leaked.ok()) {
      return absl::InternalError(absl::StrCat(call, "; ", leaked.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_LEAK_CHECK_H_
