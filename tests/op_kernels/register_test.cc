// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/register.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/ops/nn.h"
#include "tfplug/primitives/reference_backend.h"

namespace register_test {
namespace {

using tfplug::testing::FakeKernel;
using tfplug::testing::KernelRun;

enum class Failure { kNone, kStatus, kException };
Failure failure = Failure::kNone;

class Backend : public tfplug::ReferenceBackend<minimal::Stream> {
 public:
  absl::Status Map(minimal::Stream& stream,
                   const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override {
    if (failure == Failure::kStatus) {
      return absl::UnavailableError("the launch failed");
    }
#if defined(__cpp_exceptions)
    if (failure == Failure::kException) throw std::runtime_error("it threw");
#endif
    return ReferenceBackend::Map(stream, expression, inputs, outputs);
  }
  bool SupportsOpcode(tfplug::Opcode opcode,
                      tfplug::DataType type) const override {
    return opcode != tfplug::Opcode::kExpm1 ||
           type != tfplug::DataType::kDouble;
  }
};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, tfplug::ActivationOps);

// A kernel of the library's author for an op of a family.
struct OwnRelu6 : tfplug::Kernel {
  absl::Status Compute(tfplug::KernelContext& /*context*/) override {
    return absl::UnavailableError("the author's kernel");
  }
};
TFPLUG_REGISTER_KERNEL(OwnRelu6, tfplug::ops::Relu6().T<float>());

TEST_CASE("kernels of the author win, and all win over those of the CPU") {
  tfplug::Fixture<minimal::Platform> fixture;
  auto& registry = tfplug::testing::KernelRegistry::Get();
  registry.Refill(&TF_InitKernel);
  int made = 0, own = 0;
  for (const auto& kernel : registry.kernels()) {
    // TensorFlow places an op on the device whose kernel has the highest
    // priority; those of its CPU have 0.
    CHECK(kernel->priority >= 0);
    if (kernel->op == "Relu6") ++(kernel->priority > 1 ? own : made);
  }
  CHECK(made > 0);
  CHECK(own == 1);
  tfplug::testing::Node node;
  node.op = "Relu6";
  node.name = "relu6";
  node.attrs["T"] = tfplug::DataType::kFloat;
  auto kernel = FakeKernel::Create(node, fixture.host().device_type());
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  KernelRun run(**kernel, &fixture.device());
  run.AddInput<float>({{2}, {-1, 1}});
  run.AddOutput(tfplug::DataType::kFloat);
  CHECK(absl::IsUnavailable(run.Run()));
}

TEST_CASE("ops that need an opcode which the device lacks are not registered") {
  tfplug::Fixture<minimal::Platform> fixture;
  tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  const auto is_registered = [&](const char* op, tfplug::DataType type) {
    tfplug::testing::Node node;
    node.op = op;
    node.name = "node";
    node.attrs["T"] = type;
    return FakeKernel::Create(node, fixture.host().device_type()).ok();
  };
  CHECK_FALSE(is_registered("Elu", tfplug::DataType::kDouble));  // has expm1
  CHECK(is_registered("Elu", tfplug::DataType::kFloat));
  CHECK(is_registered("Elu", tfplug::DataType::kHalf));
  CHECK(is_registered("Relu", tfplug::DataType::kDouble));
  // Nor are they fused.
  for (const auto& op : tfplug::ir::FusableOps()) {
    const auto bit = tfplug::kernel::SetOf(tfplug::DataType::kDouble);
    if (std::string(op.op.name) == "Elu") CHECK((op.types & bit) == 0);
    if (std::string(op.op.name) == "Relu") CHECK((op.types & bit) != 0);
  }
}

TEST_CASE("a primitive that fails fails its op, and the next one works") {
  tfplug::Fixture<minimal::Platform> fixture;
  tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  tfplug::testing::Node node;
  node.op = "Relu";
  node.name = "relu";
  node.attrs["T"] = tfplug::DataType::kFloat;
  auto kernel = FakeKernel::Create(node, fixture.host().device_type());
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  const auto run_relu = [&](Failure wanted) {
    failure = wanted;
    KernelRun run(**kernel, &fixture.device());
    run.AddInput<float>({{2}, {-1, 1}});
    run.AddOutput(tfplug::DataType::kFloat);
    absl::Status status = run.Run();
    failure = Failure::kNone;
    if (status.ok()) {
      CHECK(run.Output<float>(0).elements == std::vector<float>{0, 1});
    }
    return status;
  };
  CHECK(run_relu(Failure::kNone).ok());
  const absl::Status status = run_relu(Failure::kStatus);
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message().find("the launch failed") != std::string::npos);
  CHECK(status.message().find("relu") != std::string::npos);
  CHECK(run_relu(Failure::kNone).ok());
#if defined(__cpp_exceptions)
  CHECK(run_relu(Failure::kException).message().find("it threw") !=
        std::string::npos);
  CHECK(run_relu(Failure::kNone).ok());
#endif
}

}  // namespace
}  // namespace register_test
