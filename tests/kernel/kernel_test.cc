// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "minimal_device.h"

namespace tfplug::kernel_test {
namespace {

using ComputeFunction = std::function<absl::Status(tfplug::KernelContext&)>;

// The behavior of the kernel Scripted, set by each test.
struct Script {
  std::function<absl::Status(tfplug::KernelConstruction&)> init;
  ComputeFunction compute;
  int alive = 0;
};
Script script;

class Scripted : public tfplug::Kernel {
 public:
  Scripted() { ++script.alive; }
  ~Scripted() override { --script.alive; }
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return script.init ? script.init(construction) : absl::OkStatus();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    const ComputeFunction compute = script.compute;  // The test may replace it.
    return compute(context);
  }
};

// y = x + 1, on the device's own stream.
class Increment : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    const tfplug::Shape shape = context.GetInput(0)->shape();
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y,
                            context.ForwardOrAllocateOutput(0, {0}, shape));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(minimal::Stream * stream,
                            context.GetStream<minimal::Stream>());
    stream->GetStatus().IgnoreError();
    for (size_t i = 0; i < x.flat<float>().size(); ++i) {
      y.flat<float>()[i] =
          x.flat<float>()[i] + 1;  // device memory is host memory here
    }
    return absl::OkStatus();
  }
};

}  // namespace

TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_KERNEL(Scripted, tfplug::KernelDef("Scripted"));
TFPLUG_REGISTER_KERNEL(
    Increment, tfplug::KernelDef("Increment").TypeConstraint<float>("T"));

namespace {

using testing::FakeKernel;
using testing::KernelRun;
using testing::Node;

capi::TF_Status* StatusOf(KernelContext& context) {
  return internal::Access::state(context).status();
}

class KernelFixture {
 protected:
  KernelFixture() {
    testing::KernelRegistry::Get().Refill(&TF_InitKernel);
    script = Script();
  }
  ~KernelFixture() {
    CHECK(host_->Problems().ok());
    CHECK(script.alive == 0);
    CHECK(testing::LiveStatusCount() == statuses_);
    CHECK(testing::LiveTensorCount() == tensors_);
  }

  std::unique_ptr<FakeKernel> Make(Node node) {
    auto kernel = FakeKernel::Create(std::move(node), "MINIMAL");
    REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
    return *std::move(kernel);
  }
  // Runs the script once, with one float input and one float output.
  absl::Status RunScript(ComputeFunction compute) {
    script.compute = std::move(compute);
    auto kernel = Make({"Scripted", "node", {}, {{"x", 1}}});
    KernelRun run(*kernel, device_);
    run.AddInput<float>({{2}, {1, 2}});
    run.AddOutput(DataType::kFloat);
    return run.Run();
  }

  const int64_t statuses_ = testing::LiveStatusCount();
  const int64_t tensors_ = testing::LiveTensorCount();
  testing::ScopedFakeTensorFlow tensorflow_;
  std::unique_ptr<testing::Host> host_ =
      testing::Host::Register(&SE_InitPlugin).value();
  testing::FakeDevice* const device_ = host_->Device(0).value();
};

TEST_CASE_FIXTURE(KernelFixture, "a kernel runs on its device") {
  auto kernel = Make({"Increment", "i", {{"T", DataType::kFloat}}, {}});
  for (int i = 0; i < 2; ++i) {
    KernelRun run(*kernel, device_);
    run.AddInput<float>({{2, 2}, {0, 1, 2, 3}});
    run.AddOutput(DataType::kFloat);
    CHECK(run.Run().ok());
    CHECK(run.Output<float>(0).dims == std::vector<int64_t>{2, 2});
    CHECK(run.Output<float>(0).elements == std::vector<float>{1, 2, 3, 4});
  }
}

TEST_CASE_FIXTURE(KernelFixture, "kernels are found by op, device and types") {
  const auto find = [](const char* op, const char* device, DataType type) {
    return FakeKernel::Create({op, "n", {{"T", type}}, {}}, device).status();
  };
  CHECK(find("Increment", "MINIMAL", DataType::kFloat).ok());
  CHECK(find("Increment", "MINIMAL", DataType::kDouble).code() ==
        absl::StatusCode::kNotFound);
  CHECK(find("Increment", "CPU", DataType::kFloat).code() ==
        absl::StatusCode::kNotFound);
  CHECK(find("Decrement", "MINIMAL", DataType::kFloat).code() ==
        absl::StatusCode::kNotFound);
}

TEST_CASE_FIXTURE(KernelFixture,
                  "an input without other references is forwarded") {
  const auto run_with = [this](bool held) {
    std::unique_ptr<capi::TF_Tensor> holder;
    auto kernel = Make({"Increment", "i", {{"T", DataType::kFloat}}, {}});
    KernelRun run(*kernel, device_);
    auto tensor = testing::MakeDeviceTensor<float>(device_, {{1}, {1}}).value();
    const void* const data = tensor.buffer->data;
    if (held) holder = std::make_unique<capi::TF_Tensor>(tensor);
    run.AddInput(std::move(tensor));
    run.AddOutput(DataType::kFloat);
    CHECK(run.Run().ok());
    CHECK(run.Output<float>(0).elements == std::vector<float>{2});
    return run.output(0)->buffer->data == data;
  };
  CHECK(run_with(false));
  CHECK_FALSE(run_with(true));
}

TEST_CASE_FIXTURE(KernelFixture,
                  "a Tensor that the kernel holds is a reference") {
  CHECK(RunScript([](KernelContext& context) -> absl::Status {
          int forwarded = 0;
          TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
          TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.ForwardOrAllocateOutput(
                                                0, {0}, Shape{2}, &forwarded));
          CHECK(forwarded == -1);
          return absl::OkStatus();
        }).ok());
  CHECK(RunScript([](KernelContext& context) -> absl::Status {
          int forwarded = -1;
          CHECK(context.GetInput(0).ok());
          TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.ForwardOrAllocateOutput(
                                                0, {0}, Shape{2}, &forwarded));
          CHECK(forwarded == 0);
          return absl::OkStatus();
        }).ok());
}

TEST_CASE_FIXTURE(KernelFixture,
                  "a kernel reads the inputs, names and types of its run") {
  CHECK(RunScript([](KernelContext& context) -> absl::Status {
          CHECK(context.num_inputs() == 1);
          CHECK(context.num_outputs() == 1);
          CHECK(context.output_dtype(0) == DataType::kFloat);
          CHECK(context.output_dtype(1) == DataType(0));
          CHECK(context.GetNodeName().value() == "node");
          CHECK(context.GetDeviceId().value() == 0);
          CHECK(context.GetInputRange("x")->stop == 1);
          CHECK(context.GetInput("x")->num_elements() == 2);
          CHECK_FALSE(context.GetInput("y").ok());
          CHECK(context.GetInputList("x")->size() == 1);
          TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
          CHECK(x.ToString() == "float[2]");
          CHECK(x.byte_size() == 8);
          return context.SetOutput(0, x);
        }).ok());
}

TEST_CASE_FIXTURE(KernelFixture,
                  "a failing call does not affect the next one") {
  CHECK(RunScript([](KernelContext& context) -> absl::Status {
          CHECK(context.GetInput(7).status().code() ==
                absl::StatusCode::kOutOfRange);
          CHECK(context.GetInput(-1).status().code() ==
                absl::StatusCode::kOutOfRange);
          CHECK_FALSE(context.AllocateOutput(1, Shape{1}).ok());
          CHECK_FALSE(context.AllocateOutput(0, Shape{-1}).ok());
          CHECK(context.GetInput(0).ok());
          return context.AllocateOutput(0, Shape{}).status();
        }).ok());
}

TEST_CASE_FIXTURE(KernelFixture, "failures name the op and the node") {
  CHECK(RunScript([](KernelContext&) {
          return absl::AbortedError("the driver's message");
        }) ==
        absl::AbortedError("op 'Scripted', node 'node': the driver's message"));
  CHECK(RunScript([](KernelContext&) { return absl::OkStatus(); }) ==
        absl::InternalError("op 'Scripted', node 'node': the kernel returned "
                            "OK without setting output 0; set every output on "
                            "every path, or call AllowUnsetOutput"));
#if defined(__cpp_exceptions)
  CHECK(RunScript([](KernelContext&) -> absl::Status {
          throw std::runtime_error("no");
        }) ==
        absl::InternalError("op 'Scripted', node 'node': C++ exception: no"));
  CHECK(RunScript([](KernelContext&) -> absl::Status {
          throw std::bad_alloc();
        }).code() == absl::StatusCode::kResourceExhausted);
  CHECK(RunScript([](KernelContext& context) {
          context.GetInput(0)->flat<double>();  // Its elements are floats.
          return absl::OkStatus();
        })
            .message()
            .find("accessed as double") != absl::string_view::npos);
#endif
}

TEST_CASE_FIXTURE(KernelFixture, "runs reuse one status, one at a time") {
  auto kernel = Make({"Scripted", "node", {}, {}});
  const auto run = [&](ComputeFunction compute) {
    script.compute = std::move(compute);
    KernelRun run(*kernel, device_);
    run.AddOutput(DataType::kFloat);
    return run.Run();
  };
  const ComputeFunction allocate = [](KernelContext& context) {
    return context.AllocateOutput(0, Shape{4}).status();
  };
  int64_t statuses = 0;
  capi::TF_Status* shared = nullptr;
  CHECK(run([&](KernelContext& context) {
          statuses = testing::LiveStatusCount();
          shared = StatusOf(context);
          return allocate(context);
        }).ok());
  // After a failed run, the cached status is OK again, and the next run has to
  // set all outputs.
  CHECK(run([](KernelContext&) { return absl::AbortedError("no"); }).code() ==
        absl::StatusCode::kAborted);
  CHECK(run([](KernelContext& context) {
          return context.GetInput(0).status();
        }).code() == absl::StatusCode::kOutOfRange);
  CHECK(run([](KernelContext&) { return absl::OkStatus(); }).code() ==
        absl::StatusCode::kInternal);
  CHECK(run([&](KernelContext& context) {
          CHECK(StatusOf(context) == shared);
          CHECK(ToStatus(StatusOf(context)).ok());
          CHECK(testing::LiveStatusCount() == statuses);
          return allocate(context);
        }).ok());
  // A nested run overlaps with the outer one.
  CHECK(run([&](KernelContext& outer) {
          CHECK(run([&](KernelContext& inner) {
                  CHECK(StatusOf(inner) != StatusOf(outer));
                  CHECK(testing::LiveStatusCount() == statuses + 1);
                  return allocate(inner);
                }).ok());
          CHECK(testing::LiveStatusCount() == statuses);
          return allocate(outer);
        }).ok());
}

TEST_CASE_FIXTURE(KernelFixture, "TensorFlow is out of device memory") {
  script.compute = [](KernelContext& context) -> absl::Status {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor temp,
                            context.AllocateTemp(DataType::kFloat, Shape{4}));
    return context.AllocateOutput(0, Shape{4}).status();
  };
  auto kernel = Make({"Scripted", "node", {}, {}});
  for (int allocations : {0, 1, 2}) {
    CAPTURE(allocations);
    KernelRun run(*kernel, device_);
    run.AddOutput(DataType::kFloat);
    run.FailAllocationAfter(allocations);
    CHECK(run.Run().code() == (allocations < 2
                                   ? absl::StatusCode::kResourceExhausted
                                   : absl::StatusCode::kOk));
  }
}

TEST_CASE_FIXTURE(KernelFixture, "GetStream with another class is an error") {
  CHECK(RunScript([](KernelContext& context) {
          return context.GetStream<int>().status();
        }).code() == absl::StatusCode::kInternal);
}

TEST_CASE_FIXTURE(KernelFixture, "a kernel reads its attributes") {
  script.init = [](KernelConstruction& c) {
    CHECK(c.name() == "node");
    CHECK(c.GetOp().value() == "Scripted");
    CHECK(c.GetAttr<bool>("b").value());
    CHECK(c.GetAttr<int64_t>("i").value() == int64_t{1} << 40);
    CHECK(c.GetAttr<float>("f").value() == 0.5f);
    CHECK(c.GetAttr<DataType>("t").value() == DataType::kHalf);
    CHECK(c.GetAttr<std::string>("s").value() == std::string("a\0b", 3));
    CHECK(c.GetAttr<std::string>("empty").value().empty());
    CHECK(c.GetAttr<std::vector<bool>>("bs").value() ==
          std::vector<bool>{true, false});
    CHECK(c.GetAttr<std::vector<int64_t>>("is").value() ==
          std::vector<int64_t>{1, -2});
    CHECK(c.GetAttr<std::vector<int32_t>>("is").value() ==
          std::vector<int32_t>{1, -2});
    CHECK(c.GetAttr<std::vector<std::string>>("ss").value() ==
          std::vector<std::string>{"x", "", "yz"});
    CHECK(c.HasAttr("b"));
    CHECK_FALSE(c.HasAttr("none"));
    CHECK(c.GetAttr<int32_t>("i").status().code() ==
          absl::StatusCode::kInvalidArgument);
    CHECK(c.GetAttr<bool>("i").status().code() ==
          absl::StatusCode::kInvalidArgument);
    CHECK(c.GetAttr<std::vector<int64_t>>("i").status().code() ==
          absl::StatusCode::kInvalidArgument);
    return c.GetAttr<bool>("none").status();
  };
  Node node{"Scripted", "node", {}, {}};
  node.attrs["b"] = true;
  node.attrs["i"] = int64_t{1} << 40;
  node.attrs["f"] = 0.5f;
  node.attrs["t"] = DataType::kHalf;
  node.attrs["s"] = std::string("a\0b", 3);
  node.attrs["empty"] = std::string();
  node.attrs["bs"] = std::vector<bool>{true, false};
  node.attrs["is"] = std::vector<int64_t>{1, -2};
  node.attrs["ss"] = std::vector<std::string>{"x", "", "yz"};
  CHECK(FakeKernel::Create(node, "MINIMAL").status() ==
        absl::NotFoundError("op 'Scripted', node 'node': cannot read attribute "
                            "'none' as bool: the node has no such attribute; "
                            "it has [b, bs, empty, f, i, is, s, ss, t]"));
}

TEST_CASE_FIXTURE(KernelFixture,
                  "a kernel whose construction failed is destroyed") {
  script.init = [](KernelConstruction&) {
    CHECK(script.alive == 1);
    return absl::UnimplementedError("not for this node");
  };
  CHECK(FakeKernel::Create({"Scripted", "node", {}, {}}, "MINIMAL").status() ==
        absl::UnimplementedError(
            "op 'Scripted', node 'node': not for this node"));
  CHECK(script.alive == 0);
#if defined(__cpp_exceptions)
  script.init = [](KernelConstruction&) -> absl::Status { throw 1; };
  CHECK(FakeKernel::Create({"Scripted", "node", {}, {}}, "MINIMAL")
            .status()
            .code() == absl::StatusCode::kInternal);
  CHECK(script.alive == 0);
#endif
}

}  // namespace
}  // namespace tfplug::kernel_test
