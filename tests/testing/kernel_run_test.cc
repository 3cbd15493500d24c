// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/base/tstring.h>
#include <tfplug/graph/graph_pass.h>
#include <tfplug/kernel/host_tensor.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/op_def.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/kernel/register_op.h>
#include <tfplug/testing/fake_kernel.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::kernel_run_test {
namespace {

std::function<absl::Status(KernelContext&)> on_compute;

class Scripted : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    return on_compute(context);
  }
};
TFPLUG_REGISTER_KERNEL(Scripted, KernelDef("Scripted").Device("CPU"));

// A kernel on the host that calls `compute`.
class HostKernel {
 public:
  explicit HostKernel(std::function<absl::Status(KernelContext&)> compute) {
    on_compute = std::move(compute);
    testing::KernelRegistry::Get().Refill(&TF_InitKernel);
    kernel_ = testing::FakeKernel::Create({"Scripted", "node", {}, {}}, "CPU")
                  .value();
  }
  testing::FakeKernel& operator*() { return *kernel_; }

 private:
  std::unique_ptr<testing::FakeKernel> kernel_;
};

using Strings = std::vector<std::string>;
const std::string long_text(100, 'x');

TEST_CASE("string tensors: inputs, outputs and temporaries") {
  testing::LeakCheckedFake fake;
  HostKernel kernel([](KernelContext& context) -> absl::Status {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    CHECK(x.ToString() == "string[3]");
    TFPLUG_ASSIGN_OR_RETURN(const Tensor temp,
                            context.AllocateTemp(DataType::kString, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            context.AllocateOutput(0, x.shape()));
    for (size_t i = 0; i < 3; ++i) {
      CHECK(temp.flat<TString>()[i].view().empty());
      temp.flat<TString>()[i].Assign(x.flat<TString>()[i].view());
      y.flat<TString>()[i].Assign(std::string(temp.flat<TString>()[i].view()) +
                                  "!");
    }
    return absl::OkStatus();
  });
  testing::KernelRun run(*kernel, nullptr);
  run.AddInput<std::string>({{3}, {"", "short", long_text}});
  run.AddOutput(DataType::kString);
  CHECK(run.Run() == absl::OkStatus());
  CHECK(run.Output<std::string>(0).elements ==
        Strings{"!", "short!", long_text + "!"});
}

TEST_CASE("strings: short ones in place, long ones on the heap, views") {
  testing::LeakCheckedFake fake;
  OwnedTString text;  // calls TF_StringInit
  CHECK(text.type() == capi::TF_TSTR_SMALL);
  CHECK(text.view().empty());
  const std::string longest_short(22, 'y');
  text.Assign(longest_short);
  CHECK(text.type() == capi::TF_TSTR_SMALL);
  CHECK(text.capacity() == 22);
  CHECK(text.view() == longest_short);
  CHECK(text.data()[22] == '\0');
  text.Assign(longest_short + "z");
  CHECK(text.type() == capi::TF_TSTR_LARGE);
  CHECK(text.capacity() >= 23);
  CHECK(text.view() == longest_short + "z");
  text.AssignView(long_text);
  CHECK(text.type() == capi::TF_TSTR_VIEW);
  CHECK(text.data() == long_text.data());
  CHECK(text.capacity() == 0);
  text.Assign("");
  CHECK(text.view().empty());
}

TEST_CASE("a new string tensor outside a run, and as an output") {
  testing::LeakCheckedFake fake;
  HostKernel kernel([](KernelContext& context) -> absl::Status {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            NewHostTensor(DataType::kString, {2}));
    y.flat<TString>()[1].Assign(long_text);
    return context.SetOutput(0, y);
  });
  testing::KernelRun run(*kernel, nullptr);
  run.AddOutput(DataType::kString);
  CHECK(run.Run() == absl::OkStatus());
  CHECK(run.Output<std::string>(0).elements == Strings{"", long_text});
}

TEST_CASE("bools, the step id, the type of an input, and a missing input") {
  testing::LeakCheckedFake fake;
  HostKernel kernel([](KernelContext& context) -> absl::Status {
    CHECK(context.step_id() == 7);
    CHECK(context.GetInputType(1).value() == DataType::kResource);
    CHECK(context.GetInput(2).status() ==
          absl::InternalError("TensorFlow returned no tensor"));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            context.AllocateOutput(0, x.shape()));
    y.flat<bool>()[0] = x.flat<bool>()[1];
    y.flat<bool>()[1] = x.flat<bool>()[0];
    return absl::OkStatus();
  });
  testing::KernelRun run(*kernel, nullptr);
  run.context()->step_id = 7;
  run.AddInput<bool>({{2}, {true, false}});
  run.AddInput(std::make_shared<testing::Variable>());
  run.AddInput(testing::InputSlot());
  run.AddOutput(DataType::kBool);
  CHECK(run.Run() == absl::OkStatus());
  CHECK(run.Output<bool>(0).elements == std::vector<bool>{false, true});
}

TEST_CASE("inputs by the names in the op that a plug-in defines") {
  testing::LeakCheckedFake fake;
  RegisterOp(OpDef("Scripted")
                 .Attr("N: int")
                 .Input("x: float")
                 .Input("more : N * float"));
  HostKernel kernel([](KernelContext& context) -> absl::Status {
    CHECK(context.GetInput("x")->flat<float>()[0] == 1);
    CHECK(context.GetInputList("more")->size() == 2);
    CHECK(context.GetInput("y").status().message() ==
          "argument 'y': Unknown input name; set testing::Node::input_args if "
          "the op has it");
    return absl::OkStatus();
  });
  testing::KernelRun run(*kernel, nullptr);
  for (const float value : {1, 2, 3}) run.AddInput<float>({{1}, {value}});
  CHECK(run.Run() == absl::OkStatus());
  // A pass finds the op as well.
  const PassContext context("CPU", "", nullptr);
  CHECK(context.functions().GetSignature("Scripted").ok());
  CHECK(
      context.functions().GetSignature("Other").status().message() ==
      "Op type not registered 'Other'; a test adds the ops of TensorFlow that "
      "it needs to testing::KnownOpDefs(), and those of a plug-in are known "
      "once its TF_InitKernel has run");
  kernel_internal::RegisteredOpDefs().clear();
}

TEST_CASE("an input is forwarded only to the same kind of memory") {
  testing::LeakCheckedFake fake;
  HostKernel kernel([](KernelContext& context) {
    return context.ForwardOrAllocateOutput(0, {0}, {2}).status();
  });
  for (const bool on_host : {false, true}) {
    testing::KernelRun run(*kernel, nullptr);
    run.AddInput<float>({{2}, {1, 2}}, /*on_host=*/true);
    run.AddOutput(DataType::kFloat, on_host);
    CHECK(run.Run() == absl::OkStatus());
    CHECK(run.context()->forwarded == (on_host ? 1 : 0));
  }
}

TEST_CASE(
    "each fault reaches TensorFlow, and a kernel that hides one is found") {
  testing::LeakCheckedFake fake;
  bool hide = false;
  HostKernel kernel([&](KernelContext& context) -> absl::Status {
    auto temp = context.AllocateTemp(DataType::kFloat, {4});
    if (!temp.ok() && !hide) return temp.status();
    return context.AllocateOutput(0, {4}).status();
  });
  const auto run_once = [&] {
    testing::KernelRun run(*kernel, nullptr);
    run.AddOutput(DataType::kFloat);
    return run.Run();
  };
  CHECK(testing::TryEachFault(run_once) == absl::OkStatus());
  hide = true;
  CHECK(testing::TryEachFault(run_once).message() ==
        "call 1, of TF_AllocateTemp, failed, but the run returned OK");
}

TEST_CASE("the memory is exhausted after some allocations") {
  testing::LeakCheckedFake fake;
  HostKernel kernel([](KernelContext& context) -> absl::Status {
    TFPLUG_RETURN_IF_ERROR(
        context.AllocateTemp(DataType::kString, {4}).status());
    return context.AllocateOutput(0, {4}).status();
  });
  for (int allocations : {0, 1, 2}) {
    testing::KernelRun run(*kernel, nullptr);
    run.AddOutput(DataType::kFloat);
    run.FailAllocationAfter(allocations);
    CHECK(run.Run().code() == (allocations < 2
                                   ? absl::StatusCode::kResourceExhausted
                                   : absl::StatusCode::kOk));
  }
}

}  // namespace
}  // namespace tfplug::kernel_run_test
