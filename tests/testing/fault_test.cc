// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing/fake_tensorflow.h>
#include <tfplug/testing/fault.h>
#include <tfplug/testing/leak_check.h>

#include <string>

namespace tfplug::testing::fault_test {
namespace {

// Makes two calls that can fail, of different functions. If the second fails
// and `leaked` is not null, leaves an object there; if the first fails and `hide`
// is true, returns OK.
absl::Status MakeBufferAndShape(TF_Buffer** leaked = nullptr,
                                bool hide = false) {
  TF_Buffer* const buffer = TF_NewBuffer();
  if (buffer == nullptr) {
    return hide ? absl::OkStatus() : absl::ResourceExhaustedError("buffer");
  }
  TF_ShapeHandle* const shape = TF_NewShapeHandle();
  if (shape == nullptr) {
    if (leaked != nullptr) {
      *leaked = buffer;
    } else {
      TF_DeleteBuffer(buffer);
    }
    return absl::ResourceExhaustedError("shape");
  }
  TF_DeleteShapeHandle(shape);
  TF_DeleteBuffer(buffer);
  return absl::OkStatus();
}

TEST_CASE("Fault fails the n-th call of any function") {
  for (int n : {1, 2}) {
    const Fault fault(n);
    CHECK(absl::IsResourceExhausted(MakeBufferAndShape()));
    CHECK(fault.failed() == (n == 1 ? "TF_NewBuffer" : "TF_NewShapeHandle"));
    CHECK(fault.calls() == n);
    CHECK(MakeBufferAndShape().ok());  // only once
  }
  const Fault none(3);
  CHECK(MakeBufferAndShape().ok());
  CHECK(none.failed().empty());
}

TEST_CASE("Fault fails the n-th call of one function") {
  const Fault fault("TF_NewShapeHandle", 2);
  CHECK(MakeBufferAndShape().ok());
  CHECK(absl::IsResourceExhausted(MakeBufferAndShape()));
  CHECK(fault.failed() == "TF_NewShapeHandle");
  CHECK(fault.calls() == 2);
}

TEST_CASE("Fault sets the status of functions that have one") {
  TF_Tensor* tensor = nullptr;
  capi::TF_OpKernelContext context;
  const Fault fault("TF_GetInput");
  CHECK(CallWithStatus(&TF_GetInput, &context, 0, &tensor) ==
        absl::ResourceExhaustedError("injected into TF_GetInput"));
  CHECK(absl::IsOutOfRange(CallWithStatus(&TF_GetInput, &context, 0, &tensor)));
}

TEST_CASE("CountCalls counts the calls that can fail") {
  CHECK(CountCalls([] { MakeBufferAndShape().IgnoreError(); }) == 2);
  CHECK(CountCalls([] {}) == 0);
}

TEST_CASE("LeakCheck names the leaked objects") {
  const LeakCheck leaks;
  CHECK(leaks.Check() == absl::OkStatus());
  TF_Buffer* const buffer = TF_NewBuffer();
  {
    const capi::TF_Status first, second;
    CHECK(leaks.Check() ==
          absl::InternalError("objects leaked: 2 TF_Status, 1 TF_Buffer"));
  }
  CHECK(leaks.Check() == absl::InternalError("objects leaked: 1 TF_Buffer"));
  const LeakCheck later;
  TF_DeleteBuffer(buffer);
  CHECK(leaks.Check() == absl::OkStatus());
  CHECK_FALSE(later.Check().ok());  // one object too many was deleted
}

TEST_CASE("TryEachFault finds a hidden failure and a leak") {
  CHECK(TryEachFault([] { return MakeBufferAndShape(); }) == absl::OkStatus());
  CHECK(TryEachFault([] {
          return MakeBufferAndShape(/*leaked=*/nullptr, /*hide=*/true);
        }).message() ==
        "call 1, of TF_NewBuffer, failed, but the run returned OK");
  TF_Buffer* leaked = nullptr;
  CHECK(TryEachFault([&] { return MakeBufferAndShape(&leaked); }).message() ==
        "call 2, of TF_NewShapeHandle, failed; objects leaked: 1 TF_Buffer");
  TF_DeleteBuffer(leaked);
  CHECK(TryEachFault([] { return absl::AbortedError("broken"); }) ==
        absl::AbortedError("broken"));
  CHECK(absl::IsFailedPrecondition(
      TryEachFault([] { return absl::OkStatus(); })));
}

}  // namespace
}  // namespace tfplug::testing::fault_test
