// SPDX-License-Identifier: Apache-2.0
#include "tfplug/backend/register.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/reference_backend.h"

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
};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, tfplug::ActivationOps);

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
