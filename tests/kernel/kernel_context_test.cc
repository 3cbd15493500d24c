// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::kernel_context_test {
namespace {

using capi::TF_OpKernelContext;
using testing::LeakCheckedFake;
using testing::MakeTensor;

struct FakeStream {};

// The behavior of the kernels below, set by each test.
std::function<absl::Status(KernelContext&)> on_compute;
absl::Status init_status;
int live_kernels = 0;

class Scripted : public Kernel {
 public:
  Scripted() { ++live_kernels; }
  ~Scripted() override { --live_kernels; }
  absl::Status Init(KernelConstruction&) override {
#if defined(__cpp_exceptions)
    if (init_status.code() == absl::StatusCode::kDataLoss) {
      throw std::runtime_error("thrown by Init");
    }
#endif
    return init_status;
  }
  absl::Status Compute(KernelContext& context) override {
    return on_compute(context);
  }
};
using Table = Scripted::TableOf<Scripted>;
const bool op_is_named = [] {
  kernel_internal::AddOp(kernel_internal::RegisteredOps<Scripted>(), "MyOp");
  return true;
}();

// Returns a context with the input x, the list "more" of two inputs, an empty
// list, and two outputs.
TF_OpKernelContext MakeContext() {
  internal::registered_platform.stream_type = internal::TypeTag<FakeStream>();
  static FakeStream stream;
  TF_OpKernelContext context;
  context.node.name = "model/my_op";
  context.node.input_args = {{"x", 1}, {"more", 2}, {"none", 0}};
  context.inputs = {MakeTensor<float>({2, 3}, {0, 1, 2, 3, 4, 5}),
                    MakeTensor<float>({1}, {7}), MakeTensor<float>({1}, {8})};
  context.requested_inputs = {"x", "y", "z:1"};
  context.outputs = {{capi::TF_FLOAT, /*on_host=*/true, {}},
                     {capi::TF_FLOAT, /*on_host=*/false, {}}};
  context.stream = reinterpret_cast<capi::SP_Stream>(&stream);
  context.inputs[1].on_host = true;
  context.resource_handle = "handle";
  context.config = "config";
  context.function_library = "library";
  context.step_id = 11;
  context.frame_id = 12;
  context.iteration_id = 13;
  context.device_id = 14;
  context.graph_def_version = 15;
  return context;
}

// Constructs a kernel that calls `compute`, runs it, and returns the status
// that TensorFlow received.
absl::Status Run(TF_OpKernelContext& context,
                 std::function<absl::Status(KernelContext&)> compute) {
  on_compute = std::move(compute);
  capi::TF_OpKernelConstruction node = {};
  void* const kernel = Table::create_func(&node);
  Table::compute_func(kernel, &context);
  Table::delete_func(kernel);
  CHECK(live_kernels == 0);
  return context.failure;
}
absl::Status Run(std::function<absl::Status(KernelContext&)> compute) {
  TF_OpKernelContext context = MakeContext();
  return Run(context, std::move(compute));
}

TF_OpKernelContext MakeContextWithThreeOutputs() {
  TF_OpKernelContext context = MakeContext();
  context.outputs.push_back({capi::TF_FLOAT, /*on_host=*/false, {}});
  return context;
}

// Uses every function for inputs, outputs, temporaries and the stream.
absl::Status DoEverything(KernelContext& context) {
  TFPLUG_ASSIGN_OR_RETURN(Tensor x, context.GetInput(0));
  TFPLUG_ASSIGN_OR_RETURN(Tensor by_name, context.GetInput("x"));
  TFPLUG_ASSIGN_OR_RETURN(std::vector<Tensor> more,
                          context.GetInputList("more"));
  TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
  TFPLUG_ASSIGN_OR_RETURN(Tensor again, context.GetOutput(0));
  TFPLUG_ASSIGN_OR_RETURN(Tensor temp,
                          context.AllocateTemp(DataType::kHalf, {4}));
  TFPLUG_ASSIGN_OR_RETURN(Tensor host,
                          context.AllocateHostTemp(DataType::kInt32, {4}));
  TFPLUG_ASSIGN_OR_RETURN(FakeStream * stream, context.GetStream<FakeStream>());
  if (stream == nullptr) return absl::InternalError("no stream");
  if (more.size() != 2 || more[1].scalar<float>() != 8) {
    return absl::InternalError("wrong list");
  }
  if (by_name.data() != x.data() || again.data() != y.data()) {
    return absl::InternalError("an unexpected copy");
  }
  TFPLUG_ASSIGN_OR_RETURN(Tensor z,
                          context.ForwardOrAllocateOutput(1, {0}, x.shape()));
  return context.SetOutput(2, z);
}

TEST_CASE("inputs, outputs, temporaries and the stream") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContextWithThreeOutputs();
  CHECK(Run(context, DoEverything) == absl::OkStatus());
  CHECK(context.outputs[0].tensor->dims == std::vector<int64_t>{2, 3});
  CHECK(context.temporaries == 1);
  CHECK(context.host_temporaries == 1);
}

TEST_CASE("every failure of TensorFlow is reported with the op and the node") {
  LeakCheckedFake fake;
  testing::FailEachCall([] {
    TF_OpKernelContext context = MakeContextWithThreeOutputs();
    const absl::Status status = Run(context, DoEverything);
    if (!status.ok()) {
      const std::string message(status.message());
      CAPTURE(message);
      CHECK(message.rfind("op 'MyOp', node 'model/my_op': ", 0) == 0);
      CHECK(message.find("injected into TF_") != std::string::npos);
    }
    return status;
  });
}

TEST_CASE("an unreferenced input is forwarded, and its index returned") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  context.outputs[0].on_host = false;  // like the input
  CHECK(Run(context, [](KernelContext& c) -> absl::Status {
          int forwarded = 7;
          TFPLUG_ASSIGN_OR_RETURN(
              Tensor y, c.ForwardOrAllocateOutput(0, {1, 0}, {6}, &forwarded));
          CHECK(forwarded == 0);
          CHECK(y.shape() == Shape({6}));
          TFPLUG_ASSIGN_OR_RETURN(
              Tensor z, c.ForwardOrAllocateOutput(1, {0}, {9}, &forwarded));
          CHECK(forwarded == -1);
          return absl::OkStatus();
        }) == absl::OkStatus());
  CHECK(context.forwarded == 1);
}

TEST_CASE("arguments on which TensorFlow would abort are errors") {
  LeakCheckedFake fake;
  CHECK(Run([](KernelContext& c) {
          CHECK(c.output_dtype(2) == DataType(0));
          CHECK(c.output_dtype(-1) == DataType(0));
          for (int i : {-1, 2, 1000}) {
            CHECK(absl::IsOutOfRange(c.AllocateOutput(i, {1}).status()));
            CHECK(absl::IsOutOfRange(
                c.ForwardOrAllocateOutput(i, {0}, {1}).status()));
            CHECK(absl::IsOutOfRange(c.GetOutput(i).status()));
            CHECK(absl::IsOutOfRange(c.IsHostMemoryOutput(i).status()));
          }
          for (int i : {-1, 3}) {
            CHECK(absl::IsOutOfRange(c.GetInput(i).status()));
            CHECK(absl::IsOutOfRange(c.GetInputType(i).status()));
            CHECK(absl::IsOutOfRange(c.GetRequestedInput(i).status()));
            CHECK(absl::IsOutOfRange(c.IsHostMemoryInput(i).status()));
            CHECK(absl::IsOutOfRange(c.GetResourceHandle(i).status()));
          }
          const int64_t big = int64_t{1} << 40;
          std::vector<int64_t> deep(255, 1);
          for (const Shape& bad : {Shape{-1}, Shape{2, -3}, Shape{big, big},
                                   Shape(absl::MakeConstSpan(deep))}) {
            CHECK(absl::IsInvalidArgument(c.AllocateOutput(0, bad).status()));
            CHECK(absl::IsInvalidArgument(
                c.ForwardOrAllocateOutput(0, {0}, bad).status()));
            CHECK(absl::IsInvalidArgument(
                c.AllocateTemp(DataType::kFloat, bad).status()));
          }
          CHECK(absl::IsInvalidArgument(
              c.AllocateOutput(0, {int64_t{1} << 62}).status()));
          for (int candidate : {-1, 3, 7}) {
            CHECK(c.ForwardOrAllocateOutput(0, {0, candidate}, {1}).status() ==
                  absl::OutOfRangeError("there is no input " +
                                        std::to_string(candidate) +
                                        ": the node has 3 inputs"));
          }
          for (int type : {0, -1, 99, 101}) {
            const auto dtype = static_cast<DataType>(type);
            CHECK(absl::IsInvalidArgument(c.AllocateTemp(dtype, {1}).status()));
          }
          CHECK(absl::IsInvalidArgument(c.SetOutput(0, Tensor())));
          CHECK(absl::IsFailedPrecondition(c.GetOutput(0).status()));
          CHECK(absl::IsInvalidArgument(c.GetResourceHandle(0).status()));
          return absl::AbortedError("enough");
        }).code() == absl::StatusCode::kAborted);
}

TEST_CASE("inputs by name: ranges, lists, unknown names, missing inputs") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  context.inputs.emplace_back();  // optional and missing
  CHECK(Run(context, [](KernelContext& c) -> absl::Status {
          CHECK(c.GetInputRange("more")->start == 1);
          CHECK(c.GetInputRange("more")->size() == 2);
          CHECK(c.GetInputList("none")->empty());
          CHECK(absl::IsInvalidArgument(c.GetInput("more").status()));
          const absl::Status unknown = c.GetInput("nothing").status();
          CHECK(absl::IsInvalidArgument(unknown));
          CHECK(unknown.message() ==
                "argument 'nothing': Unknown input name; set "
                "testing::Node::input_args if the op has it");
          // A failure does not affect the next call.
          CHECK(c.GetInput(3).status() ==
                absl::InternalError("TensorFlow returned no tensor"));
          CHECK(c.GetInput(0).ok());
          c.AllowUnsetOutput(0);
          c.AllowUnsetOutput(1);
          return absl::OkStatus();
        }) == absl::OkStatus());
}

TEST_CASE("names, ids, memory and protos of a run") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  context.inputs[2] = std::shared_ptr<testing::Variable>();  // a resource
  const absl::Status status = Run(context, [](KernelContext& c) {
    CHECK(c.GetNodeName().value() == "model/my_op");
    CHECK(c.GetRequestedInput(2).value() == "z:1");
    CHECK(c.GetDeviceName().value() == "/device:MY_DEVICE:0");
    CHECK(c.GetDefaultContainer().value() == "localhost");
    CHECK(c.step_id() == 11);
    CHECK(c.GetFrameId().value() == 12);
    CHECK(c.GetIterationId().value() == 13);
    CHECK(c.GetDeviceId().value() == 14);
    CHECK(c.GetGraphDefVersion().value() == 15);
    CHECK(c.GetInputType(0).value() == DataType::kFloat);
    CHECK(c.IsHostMemoryInput(1).value());
    CHECK(!c.IsHostMemoryInput(0).value());
    CHECK(c.IsHostMemoryOutput(0).value());
    CHECK(!c.IsHostMemoryOutput(1).value());
    CHECK(c.GetSessionConfig()->bytes() == "config");
    CHECK(c.GetFunctionLibrary()->bytes() == "library");
    CHECK(c.GetResourceHandle(2)->bytes() == "handle");
    for (int n = 1; n <= 2; ++n) {
      testing::Fault fault(n);
      CHECK(absl::IsResourceExhausted(c.GetSessionConfig().status()));
    }
    testing::Fault fault(1);
    CHECK(absl::IsResourceExhausted(c.IsHostMemoryInput(0).status()));
    return absl::AbortedError("enough");
  });
  CHECK(absl::IsAborted(status));
}

TEST_CASE("functions that an old release lacks return UNIMPLEMENTED") {
  LeakCheckedFake fake({{2, 9}, {}});
  const absl::Status status = Run([](KernelContext& c) {
    for (const absl::Status& status :
         {c.GetNodeName().status(), c.GetRequestedInput(0).status(),
          c.GetDeviceName().status(), c.GetDefaultContainer().status(),
          c.GetFrameId().status(), c.GetIterationId().status(),
          c.GetDeviceId().status(), c.GetGraphDefVersion().status(),
          c.GetInputType(0).status(), c.IsHostMemoryInput(0).status(),
          c.IsHostMemoryOutput(0).status(), c.GetSessionConfig().status(),
          c.GetFunctionLibrary().status(), c.GetInputRange("x").status(),
          c.GetOutput(0).status(), c.BeginDeferredOp()}) {
      CHECK(absl::IsUnimplemented(status));
      CHECK(status.message().find("(2.9.0) lacks TF_") != std::string::npos);
    }
    CHECK(c.step_id() == 11);
    CHECK(c.GetInput("x").ok());  // by TF_GetInputByName
    return absl::AbortedError("enough");
  });
  CHECK(absl::IsAborted(status));
}

TEST_CASE("the wrong Stream class and a device without streams are errors") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  context.stream = nullptr;
  const absl::Status status = Run(context, [](KernelContext& c) {
    CHECK(absl::IsInternal(c.GetStream<int>().status()));
    CHECK(absl::IsFailedPrecondition(c.GetStream<FakeStream>().status()));
    return absl::AbortedError("enough");
  });
  CHECK(absl::IsAborted(status));
}

TEST_CASE("OK with an output unset is an error that names the output") {
  LeakCheckedFake fake;
  const absl::Status status = Run([](KernelContext& c) {
    return c.AllocateOutput(0, {0}).status();  // an empty tensor, nothing else
  });
  CHECK(status ==
        absl::InternalError("op 'MyOp', node 'model/my_op': the kernel "
                            "returned OK without setting output 1; set every "
                            "output on every path, or call AllowUnsetOutput"));
  CHECK(Run([](KernelContext& c) {
          c.AllowUnsetOutput(0);
          c.AllowUnsetOutput(1);
          return absl::OkStatus();
        }) == absl::OkStatus());
}

// Runs a kernel with `outputs` outputs that sets the first `set` of them.
absl::Status RunOutputs(int outputs, int set) {
  TF_OpKernelContext context = MakeContext();
  context.outputs.assign(static_cast<size_t>(outputs),
                         {capi::TF_FLOAT, false, {}});
  return Run(context, [&](KernelContext& c) -> absl::Status {
    CHECK(absl::IsOutOfRange(c.AllocateOutput(outputs, {1}).status()));
    for (int i = 0; i < set; ++i) {
      TFPLUG_RETURN_IF_ERROR(c.AllocateOutput(i, {1}).status());
      CHECK(c.output_dtype(i) == DataType::kFloat);
    }
    CHECK(absl::IsOutOfRange(c.AllocateOutput(outputs, {1}).status()));
    CHECK(c.output_dtype(outputs) == DataType(0));
    return absl::OkStatus();
  });
}

TEST_CASE("the first 64 outputs have to be set") {
  LeakCheckedFake fake;
  for (int outputs : {1, 2, 63, 64, 65, 70}) {
    CAPTURE(outputs);
    const int required = std::min(outputs, 64);
    CHECK(RunOutputs(outputs, outputs).ok());
    CHECK(RunOutputs(outputs, required).ok());
    CHECK(RunOutputs(outputs, required - 1)
              .message()
              .find("without setting output " + std::to_string(required - 1) +
                    ";") != absl::string_view::npos);
  }
  TF_OpKernelContext context = MakeContext();
  context.outputs.assign(66, {capi::TF_FLOAT, false, {}});
  const absl::Status first = Run(context, [](KernelContext& c) {
    for (int i = 1; i < 66; ++i) c.AllowUnsetOutput(i);
    return absl::OkStatus();
  });
  CHECK(first.message().find("setting output 0;") != absl::string_view::npos);
}

TEST_CASE("an output is set once, because TensorFlow aborts otherwise") {
  LeakCheckedFake fake;
  const auto run = [](void (*set)(KernelContext&, const Tensor&), int outputs) {
    TF_OpKernelContext context = MakeContext();
    context.outputs.assign(static_cast<size_t>(outputs),
                           {capi::TF_FLOAT, false, {}});
    return Run(context, [&](KernelContext& c) -> absl::Status {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x, c.GetInput(0));
      set(c, x);
      const int last = outputs - 1;
      for (int i = 0; i < last; ++i) c.AllowUnsetOutput(i);
      return c.SetOutput(last, x);
    });
  };
  const auto nothing = [](KernelContext&, const Tensor&) {};
  CHECK(run(nothing, 1).ok());
  CHECK(run(nothing, 64).ok());
  CHECK(run(nothing, 65).ok());
  const absl::Status twice = run(
      [](KernelContext& c, const Tensor& x) { CHECK(c.SetOutput(0, x).ok()); },
      1);
  CHECK(absl::IsFailedPrecondition(twice));
  CHECK(twice.message() ==
        "op 'MyOp', node 'model/my_op': SetOutput: output 0 is already set, or "
        "was passed to "
        "AllowUnsetOutput; TensorFlow aborts if an output is set twice, so set "
        "each output on one path only");
  CHECK(absl::IsFailedPrecondition(
      run([](KernelContext& c,
             const Tensor&) { CHECK(c.AllocateOutput(0, Shape{}).ok()); },
          1)));
  CHECK(absl::IsFailedPrecondition(run(
      [](KernelContext& c, const Tensor&) { c.AllowUnsetOutput(63); }, 64)));
  CHECK_FALSE(run(nothing, 0).ok());  // output -1
}

TEST_CASE("deferred ops end no later than the run") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  CHECK(Run(context, [](KernelContext& c) -> absl::Status {
          c.EndDeferredOp();  // has no effect without BeginDeferredOp
          TFPLUG_RETURN_IF_ERROR(c.BeginDeferredOp());
          c.EndDeferredOp();
          TFPLUG_RETURN_IF_ERROR(c.BeginDeferredOp());
          TFPLUG_RETURN_IF_ERROR(c.BeginDeferredOp());
          return absl::UnavailableError("x");
        }).code() == absl::StatusCode::kUnavailable);
  CHECK(context.max_deferred_ops == 2);
  CHECK(context.deferred_ops == 0);
}

#if defined(__cpp_exceptions)
TEST_CASE("an exception fails the run once") {
  LeakCheckedFake fake;
  TF_OpKernelContext context = MakeContext();
  const absl::Status status = Run(context, [](KernelContext&) -> absl::Status {
    throw std::runtime_error("thrown");
  });
  CHECK(status == absl::InternalError("op 'MyOp', node 'model/my_op': C++ "
                                      "exception: thrown"));
  CHECK(context.failures == 1);
  CHECK(absl::IsResourceExhausted(
      Run([](KernelContext&) -> absl::Status { throw std::bad_alloc(); })));
}

TEST_CASE("a kernel whose construction failed is destroyed and does not run") {
  LeakCheckedFake fake;
  for (const absl::Status& failure :
       {absl::NotFoundError("no such thing"), absl::DataLossError("")}) {
    init_status = failure;
    capi::TF_OpKernelConstruction node = {{"MyOp", "n", {}, {}}, {}};
    CHECK(Table::create_func(&node) == nullptr);
    CHECK(live_kernels == 0);
    CAPTURE(node.failure.ToString());
    CHECK(node.failure.message().rfind("op 'MyOp', node 'n': ", 0) == 0);
    bool ran = false;
    on_compute = [&](KernelContext&) {
      ran = true;
      return absl::OkStatus();
    };
    TF_OpKernelContext context = MakeContext();
    Table::compute_func(nullptr, &context);
    CHECK(!ran);
    CHECK(absl::IsFailedPrecondition(context.failure));
    Table::delete_func(nullptr);
  }
  init_status = absl::OkStatus();
}
#endif

}  // namespace
}  // namespace tfplug::kernel_context_test
