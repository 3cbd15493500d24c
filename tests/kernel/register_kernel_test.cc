// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>
#include <tfplug/kernel/async_kernel.h>
#include <tfplug/kernel/internal/kernel_set.h>
#include <tfplug/kernel/register_kernel.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::register_kernel_test {
namespace {

using testing::LeakCheckedFake;

const std::vector<std::unique_ptr<testing::TF_KernelBuilder>>&
RegisteredKernels() {
  return testing::KernelRegistry::Get().kernels();
}

class Nothing : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
class NothingAsync : public AsyncKernel {
 public:
  absl::Status ComputeAsync(AsyncRun&) override { return absl::OkStatus(); }
};

// Calls TF_InitKernel with the kernels that `add` registers; returns the log.
template <class Add>
std::string Init(Add add) {
  testing::LogCapture log;
  internal::registered_platform.device_type = "MY_DEVICE";
  kernel_internal::RegisteredKernels().Clear();
  add();
  TF_InitKernel();
  return log.text();
}

KernelDef Full() {
  return KernelDef("MatMul")
      .TypeConstraint<float, Half>("T")
      .TypeConstraint("S", {DataType::kInt32})
      .HostMemory("a")
      .HostMemory("b")
      .Priority(3)
      .Label("special");
}

TEST_CASE("a kernel with all its types is one KernelDef, since 2.10") {
  LeakCheckedFake fake({{2, 20}, {}});
  CHECK(Init([] { RegisterKernel<Nothing>(Full()); }).empty());
  REQUIRE(RegisteredKernels().size() == 1);
  const auto& kernel = *RegisteredKernels()[0];
  CHECK(kernel.op == "MatMul");
  CHECK(kernel.device_type == "MY_DEVICE");
  const std::string expected(
      "\x0a\x06MatMul\x12\x09MY_DEVICE"
      "\x1a\x0b\x0a\x01T\x12\x06\x0a\x04\x32\x02\x01\x13"
      "\x1a\x0a\x0a\x01S\x12\x05\x0a\x03\x32\x01\x03"
      "\x22\x01\x61\x22\x01\x62\x2a\x07special\x30\x03");
  CHECK(kernel.kernel_def == expected);
  using Types = std::map<std::string, std::vector<testing::TF_DataType>>;
  CHECK(kernel.type_constraints ==
        Types{{"T", {capi::TF_FLOAT, capi::TF_HALF}}, {"S", {capi::TF_INT32}}});
  // The builder has no constraints of its own, which would need more calls.
  CHECK(testing::CountCalls(
            [] { Init([] { RegisterKernel<Nothing>(Full()); }); }) == 2);
}

TEST_CASE("before 2.10, a kernel is registered for each combination of types") {
  LeakCheckedFake fake({{2, 9}, {}});
  CHECK(Init([] {
          RegisterKernel<Nothing>(KernelDef("Cast")
                                      .TypeConstraint<float, double>("A")
                                      .TypeConstraint<int, bool, Half>("B")
                                      .HostMemory("x")
                                      .Priority(2));
        }).empty());
  REQUIRE(RegisteredKernels().size() == 6);
  using Types = std::map<std::string, std::vector<testing::TF_DataType>>;
  CHECK(RegisteredKernels()[5]->type_constraints ==
        Types{{"A", {capi::TF_DOUBLE}}, {"B", {capi::TF_HALF}}});
  CHECK(RegisteredKernels()[5]->host_memory == std::vector<std::string>{"x"});
  CHECK(RegisteredKernels()[5]->priority == 2);
  CHECK(RegisteredKernels()[5]->kernel_def.empty());
}

TEST_CASE("a kernel that the release does not support is skipped and logged") {
  LeakCheckedFake fake({{2, 9}, {}});
  const std::string log = Init([] {
    RegisterKernel<Nothing>(KernelDef("A").Label("x"));
    RegisterKernel<Nothing>(KernelDef("B").TypeConstraint<Int4, float>("T"));
    RegisterKernel<Nothing>(KernelDef("C"));
  });
  CHECK(log.find("A on MY_DEVICE labelled x: this TensorFlow (2.9.0) lacks "
                 "TF_KernelBuilder_Label") != std::string::npos);
  CHECK(log.find("B on MY_DEVICE with T=int4: Unexpected type") !=
        std::string::npos);
  REQUIRE(RegisteredKernels().size() == 2);
  CHECK(RegisteredKernels()[1]->op == "C");
}

TEST_CASE("a KernelDef supports types that the builder does not") {
  LeakCheckedFake fake;
  CHECK(Init([] {
          RegisterKernel<Nothing>(KernelDef("B").TypeConstraint<Int4>("T"));
        }).empty());
  CHECK(RegisteredKernels().size() == 1);
}

TEST_CASE("of two kernels for the same op and types, the second is skipped") {
  LeakCheckedFake fake({{2, 20}, {}});
  const std::string log = Init([] {
    RegisterKernel<Nothing>(KernelDef("A").TypeConstraint<float>("T"));
    RegisterKernel<Nothing>(KernelDef("A").TypeConstraint<float, double>("T"));
    RegisterKernel<Nothing>(
        KernelDef("A").TypeConstraint<float>("T").Priority(1));
    RegisterKernel<Nothing>(
        KernelDef("A").TypeConstraint<float>("T").Label("l"));
    RegisterKernel<Nothing>(
        KernelDef("A").TypeConstraint<float>("T").Device("CPU"));
  });
  CHECK(log.find("two kernels for A on MY_DEVICE with T=float;") !=
        std::string::npos);
  REQUIRE(RegisteredKernels().size() == 5);
  CHECK(RegisteredKernels()[1]->type_constraints.size() == 1);
  CHECK(RegisteredKernels()[1]->type_constraints.at("T") ==
        std::vector{capi::TF_DOUBLE});
  CHECK(RegisteredKernels()[4]->device_type == "CPU");
}

TEST_CASE("a kernel for an op that TensorFlow does not have is logged") {
  LeakCheckedFake fake({{2, 20}, {}});
  const auto add = [] {
    RegisterKernel<Nothing>(KernelDef("Relu").TypeConstraint<float>("T"));
    RegisterKernel<Nothing>(KernelDef("Rellu").TypeConstraint<float>("T"));
    RegisterKernel<Nothing>(KernelDef("Rellu").TypeConstraint<double>("T"));
    RegisterKernel<Nothing>(KernelDef("New").OnlyIf([] { return false; }));
    // A kernel that tfplug makes for an op of other releases.
    kernel_internal::RegisteredKernels().AddMade(KernelDef("Newest"), {});
  };
  testing::KnownOps() = {"MatMul", "Relu T="};
  CHECK(Init(add) ==
        "tfplug: TF_InitKernel: TensorFlow has no op \"Rellu\", so its kernel "
        "cannot be used; check the spelling, or use a typed op such as "
        "tfplug::ops::MatMul()\n");
  CHECK(RegisteredKernels().size() == 4);
  testing::KnownOps().clear();  // no list of ops
  CHECK(Init(add).find("no op") == std::string::npos);
}

TEST_CASE("kernels for another device type are logged, once for each type") {
  LeakCheckedFake fake({{2, 20}, {}});
  CHECK(Init([] {
          RegisterKernel<Nothing>(KernelDef("A").Device("CPU"));
          RegisterKernel<Nothing>(KernelDef("A").Device("MY_DEVICE"));
          RegisterKernel<Nothing>(KernelDef("A").Device("MYDEVICE"));
          RegisterKernel<Nothing>(KernelDef("B").Device("MYDEVICE"));
        }) ==
        "tfplug: TF_InitKernel: the kernel of A is for a device of type "
        "\"MYDEVICE\", and this library's is \"MY_DEVICE\", which kernels that "
        "name no type are for\n");
}

TEST_CASE("types that the op does not allow are left out and logged") {
  LeakCheckedFake fake({{2, 20}, {}});
  const auto add = [] {
    RegisterKernel<Nothing>(
        KernelDef("Relu").TypeConstraint<float, double>("T"));
    RegisterKernel<Nothing>(KernelDef("Abs").TypeConstraint<double>("T"));
    RegisterKernel<Nothing>(KernelDef("Neg").TypeConstraint<double>("T"));
  };
  testing::KnownOps() = {"Abs x S=2 T=1,3", "Neg x T=", "Relu x T=3,1"};
  CHECK(Init(add) ==
        "tfplug: TF_InitKernel: TensorFlow's op Relu does not allow double for "
        "T, so its kernel is left out for that type; remove the type unless "
        "other releases allow it\n"
        "tfplug: TF_InitKernel: TensorFlow's op Abs does not allow double for "
        "T, so its kernel is left out for that type; remove the type unless "
        "other releases allow it\n");
  REQUIRE(RegisteredKernels().size() == 2);
  CHECK(RegisteredKernels()[0]->op == "Relu");
  CHECK(RegisteredKernels()[1]->op == "Neg");
  // Graph passes do not count on the types either.
  const kernel_internal::KernelSet kernels("MY_DEVICE");
  CHECK(kernels.Has("Relu", {{"T", DataType::kFloat}}));
  CHECK_FALSE(kernels.Has("Relu", {{"T", DataType::kDouble}}));
  CHECK_FALSE(kernels.Has("Abs", {{"T", DataType::kDouble}}));
  testing::KnownOps().clear();
}

TEST_CASE("kernels with names that the op lacks are left out and logged") {
  LeakCheckedFake fake({{2, 20}, {}});
  const auto add = [] {
    RegisterKernel<Nothing>(KernelDef("Relu").TypeConstraint<float>("Tx"));
    RegisterKernel<Nothing>(KernelDef("Abs").HostMemory("input"));
    RegisterKernel<Nothing>(KernelDef("NoOp").TypeConstraint<float>("T"));
    RegisterKernel<Nothing>(
        KernelDef("Abs").TypeConstraint<float>("T").HostMemory("y"));
    RegisterKernel<Nothing>(KernelDef("Mine").TypeConstraint<float>("T"));
  };
  testing::KnownOps() = {"Abs x y T=", "NoOp", "Relu S= T="};
  const std::string log = Init(add);
  testing::KnownOps().clear();
  for (const char* line :
       {"TensorFlow's op Relu has no attribute \"Tx\", so its kernel is left "
        "out; it has [S, T]\n",
        "TensorFlow's op Abs has no input or output \"input\", so its kernel "
        "is "
        "left out; it has [x, y]\n",
        "TensorFlow's op NoOp has no attribute \"T\", so its kernel is left "
        "out; "
        "it has []\n"}) {
    CAPTURE(line);
    CHECK(log.find(line) != std::string::npos);
  }
  REQUIRE(RegisteredKernels().size() == 2);
  CHECK(RegisteredKernels()[0]->op == "Abs");
  CHECK(RegisteredKernels()[1]->op == "Mine");
  // Graph passes do not count on them either.
  const kernel_internal::KernelSet kernels("MY_DEVICE");
  CHECK_FALSE(kernels.Has("Relu", {{"Tx", DataType::kFloat}}));
  CHECK_FALSE(kernels.Has("NoOp", {{"T", DataType::kFloat}}));
}

TEST_CASE("all arguments in host memory") {
  const auto add = [] {
    RegisterKernel<Nothing>(KernelDef("Add").HostMemory("y").AllInHostMemory());
  };
  {
    LeakCheckedFake fake({{2, 20}, {}});
    testing::KnownOps() = {"Sub a b", "Add x y T=1"};
    CHECK(Init(add).empty());
    REQUIRE(RegisteredKernels().size() == 1);
    CHECK(RegisteredKernels()[0]->kernel_def ==
          "\x0a\x03"
          "Add\x12\x09MY_DEVICE\x22\x01y\x22\x01x");
  }
  LeakCheckedFake fake({{2, 20}, {}});
  testing::KnownOps() = {"Sub a b"};
  const std::string log = Init(add);
  testing::KnownOps().clear();
  CHECK(log.find("this TensorFlow does not describe the op Add") !=
        std::string::npos);
  CHECK(RegisteredKernels().empty());
}

TEST_CASE("conditions, devices and asynchronous kernels") {
  {
    LeakCheckedFake fake({{2, 20}, {}});
    const std::string log = Init([] {
      RegisterKernel<Nothing>(KernelDef("A").OnlyIf([] { return false; }));
      RegisterKernel<NothingAsync>(KernelDef("B").OnlyIf([] { return true; }));
      internal::registered_platform.device_type = nullptr;
      RegisterKernel<Nothing>(KernelDef("C"));
    });
    REQUIRE(RegisteredKernels().size() == 0);
    CHECK(log.find("link the file with TFPLUG_REGISTER_DEVICE into it") !=
          std::string::npos);
    Init([] { RegisterKernel<NothingAsync>(KernelDef("B")); });
    REQUIRE(RegisteredKernels().size() == 1);
    CHECK((RegisteredKernels()[0]->compute_async_func != nullptr));
    CHECK((RegisteredKernels()[0]->compute_func == nullptr));
  }
  LeakCheckedFake fake({{2, 12}, {}});
  Init([] { RegisterKernel<NothingAsync>(KernelDef("B")); });
  REQUIRE(RegisteredKernels().size() == 1);
  CHECK((RegisteredKernels()[0]->compute_func != nullptr));
}

TEST_CASE("a failed registration is logged and leaks nothing") {
  for (const testing::Release release :
       {testing::Release{2, 20}, testing::Release{2, 9}}) {
    LeakCheckedFake fake({release, {}});
    const auto init = [] {
      return Init([] {
        RegisterKernel<Nothing>(
            KernelDef("A").TypeConstraint<float, double>("T"));
      });
    };
    const int64_t calls = testing::CountCalls(init);
    CHECK(calls > 1);
    for (int64_t n = 1; n <= calls; ++n) {
      testing::Fault fault(n);
      const std::string log = init();
      CAPTURE(fault.failed());
      CHECK(log.find("RESOURCE_EXHAUSTED: A") != std::string::npos);
    }
  }
}

TEST_CASE("a name with a NUL byte is rejected") {
  LeakCheckedFake fake({{2, 20}, {}});
  const std::string log =
      Init([] { RegisterKernel<Nothing>(KernelDef(std::string("A\0B", 3))); });
  CHECK(log.find("contains a NUL byte") != std::string::npos);
  CHECK(RegisteredKernels().empty());
}

}  // namespace
}  // namespace tfplug::register_kernel_test
