// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/op_def.h>
#include <tfplug/kernel/register_op.h>

#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::op_def_test {
namespace {

using testing::LeakCheckedFake;
using testing::RegisteredOps;

// Calls TF_InitKernel with the ops that `add` registers; returns the log.
template <class Add>
std::string Init(Add add) {
  testing::LogCapture log;
  kernel_internal::RegisteredOpDefs().clear();
  testing::KnownOps() = {"MatMul"};
  add();
  TF_InitKernel();
  return log.text();
}

// Sets two outputs: [4, last dimension of input 0, ?], and the dimensions of
// input 0 followed by the last dimension of input 1.
absl::Status Shapes(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(ShapeHandle x, s.GetInput(0));
  TFPLUG_ASSIGN_OR_RETURN(x, s.WithRankAtLeast(x, 1));
  TFPLUG_ASSIGN_OR_RETURN(x, s.WithRankAtMost(x, 3));
  TFPLUG_ASSIGN_OR_RETURN(x, s.WithRank(x, 2));
  TFPLUG_ASSIGN_OR_RETURN(const DimensionHandle last, s.GetDim(x, -1));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle y,
                          s.MakeShape(Shape{4, last.value(), -1}));
  TFPLUG_RETURN_IF_ERROR(s.SetOutput(0, y));
  TFPLUG_ASSIGN_OR_RETURN(const DataType type, s.GetTypeAttr("T"));
  if (type != DataType::kHalf) return absl::InternalError("wrong type");
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle z, s.GetInput(1));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle tail, s.Subshape(z, -1));
  return s.SetOutput(1, s.Concatenate(x, tail));
}

capi::TF_ShapeInferenceContext MakeContext() {
  capi::TF_ShapeInferenceContext context;
  context.inputs = {Shape{2, 3}, Shape{5, 7}};
  context.outputs.resize(2, Shape{});
  context.type_attrs["T"] = capi::TF_HALF;
  return context;
}

absl::Status Infer(capi::TF_ShapeInferenceContext& context,
                   OpDef::ShapeFunction function) {
  return testing::CallWithStatus(function, &context);
}

TEST_CASE("an op with every property") {
  LeakCheckedFake fake({{2, 20}, {}});
  CHECK(Init([] {
          RegisterOp(OpDef("MyScale")
                         .Attr("T: {float, half} = DT_FLOAT")
                         .Input("x: T")
                         .Output("y: T")
                         .Output("z: T")
                         .SetIsCommutative()
                         .SetIsAggregate()
                         .SetIsStateful()
                         .SetAllowsUninitializedInput()
                         .Deprecated(7, "use another")
                         .SetShapeFn<&Shapes>());
          RegisterOp(OpDef("Plain"));
        }).empty());
  REQUIRE(RegisteredOps().size() == 2);
  const auto& op = *RegisteredOps()[0];
  CHECK(op.name == "MyScale");
  CHECK(op.attrs == std::vector<std::string>{"T: {float, half} = DT_FLOAT"});
  CHECK(op.inputs == std::vector<std::string>{"x: T"});
  CHECK(op.outputs == std::vector<std::string>{"y: T", "z: T"});
  CHECK(op.flags ==
        std::vector<std::string>{"commutative", "aggregate", "stateful",
                                 "allows uninitialized input",
                                 "deprecated since 7: use another"});
  CHECK(RegisteredOps()[1]->flags.empty());
  // TensorFlow lists it with its own ops.
  const kernel_internal::OpList ops;
  CHECK(ops.Has("MatMul"));
  CHECK(ops.Has("Plain"));
  CHECK(ops.GetArguments("MyScale") == std::vector<std::string>{"x", "y", "z"});
  const std::vector<PartialShape> inputs = {Shape{2, 3}, Shape{5, 7}};
  const auto shapes =
      testing::InferShapes("MyScale", inputs, {{"T", DataType::kHalf}});
  REQUIRE(shapes.ok());
  CHECK((*shapes)[0].ToString() == "[4,3,?]");
  CHECK((*shapes)[1].ToString() == "[2,3,7]");
  CHECK(testing::InferShapes("MyScale", inputs, {{"T", DataType::kFloat}})
            .status()
            .message() == "shape function: wrong type");
  CHECK(absl::IsNotFound(testing::InferShapes("Other", inputs).status()));
  // Without a shape function, shapes are unknown.
  auto context = MakeContext();
  CHECK(Infer(context, RegisteredOps()[1]->shape_function).ok());
  CHECK(!context.outputs[0].has_rank());
}

TEST_CASE("an op on which TensorFlow would abort is skipped") {
  LeakCheckedFake fake({{2, 20}, {}});
  const std::vector<OpDef> bad = [] {
    std::vector<OpDef> defs;
    for (const char* attr :
         {"T", "T:", "T: nonsense", "1T: int", "T: {float", "T: {float, 'a'}",
          "T: list(int", "T: int = x", "T: bool = 1", "T: type = float",
          "T: float >= 1", "T: int >= x", "T: string = a", "T: shape = 1",
          "T: list(int) = 1", "T: int extra", ": int"}) {
      defs.push_back(OpDef("Bad").Attr(attr));
    }
    for (const char* arg :
         {"x", "x: nonsense", "X: float", "x: N * float", "x: float extra",
          "x: n * n", "x: Ref(float", "x: s", "1: float", "x: n * t"}) {
      defs.push_back(OpDef("Bad")
                         .Attr("n: int")
                         .Attr("s: string")
                         .Attr("t: list(type)")
                         .Input(arg));
    }
    defs.push_back(OpDef("Bad").Attr("T: int").Attr("T: int"));
    defs.push_back(OpDef("Bad").Input("x: int32").Input("x: int32"));
    defs.push_back(OpDef("bad"));
    defs.push_back(OpDef(""));
    defs.push_back(OpDef("Ba-d"));
    return defs;
  }();
  for (const OpDef& def : bad) {
    const std::string log = Init([&] { RegisterOp(def); });
    CAPTURE(def.attrs().empty() ? "" : def.attrs()[0]);
    CAPTURE(def.inputs().empty() ? "" : def.inputs()[0]);
    CHECK(log.find("INVALID_ARGUMENT: op ") != std::string::npos);
  }
  CHECK(RegisteredOps().empty());
  CHECK(Init([] { RegisterOp(OpDef("MatMul")); }).find("ALREADY_EXISTS") !=
        std::string::npos);
  CHECK(RegisteredOps().empty());
  CHECK(Init([] {
          RegisterOp(OpDef("Twice"));
          RegisterOp(OpDef("Twice"));
        }).find("ALREADY_EXISTS: op Twice") != std::string::npos);
  CHECK(RegisteredOps().size() == 1);
  // An op that several plug-ins share is silently skipped.
  CHECK(Init([] { RegisterOp(OpDef("MatMul").AllowExisting()); }).empty());
  CHECK(RegisteredOps().size() == 1);
}

TEST_CASE("valid specs are accepted") {
  LeakCheckedFake fake({{2, 20}, {}});
  CHECK(Init([] {
          RegisterOp(
              OpDef("Good_2>X")
                  .Attr("T: type")
                  .Attr("U: {numbertype, quantizedtype, string} = DT_INT8")
                  .Attr("n: int >= 2 = 3")
                  .Attr("m:list(int)>=2=[1, 2]")
                  .Attr("s: {'a', \"b,\\\"}\"} = 'a'")
                  .Attr("f: float = -1.5e-3")
                  .Attr("b: bool = true")
                  .Attr("sh: shape = { unknown_rank: true }")
                  .Attr("t: list({float, half}) >= 1")
                  .Attr("fn: func")
                  .Attr("te: tensor = { dtype: DT_FLOAT }")
                  .Input("a: T")
                  .Input("b: n * U")
                  .Input("c: t")
                  .Input("d: Ref(float)")
                  .Input("e: Ref(n * T)")
                  .Output("a: resource")
                  .Output("z: variant"));
        }).empty());
}

TEST_CASE("a shape function returns every failure") {
  LeakCheckedFake fake;
  const auto def = OpDef("A").SetShapeFn<&Shapes>();
  testing::FailEachCall([&] {
    auto context = MakeContext();
    return Infer(context, def.shape_fn());
  });
  auto context = MakeContext();
  context.inputs[0] = Shape{1};
  CHECK(absl::IsInvalidArgument(Infer(context, def.shape_fn())));
  context = MakeContext();
  context.type_attrs.clear();
  const absl::Status absent = Infer(context, def.shape_fn());
  CHECK(absent.message() ==
        "shape function: cannot read attribute 'T' as type: No attr named 'T'");
}

TEST_CASE(
    "indices out of range are errors, except in releases that accept only 0") {
  LeakCheckedFake fake;
  auto context = MakeContext();
  ShapeInference s(&context);
  for (int i : {-1, 2}) CHECK(absl::IsOutOfRange(s.GetInput(i).status()));
  const ShapeHandle x = s.GetInput(0).value();
  CHECK(absl::IsOutOfRange(s.SetOutput(-1, x)));
  CHECK(!s.SetOutput(2, x).ok());
  for (int i : {-3, 2}) CHECK(absl::IsOutOfRange(s.GetDim(x, i).status()));
  CHECK(s.GetDim(x, -2)->value() == 2);
  // If the rank is unknown, so is every dimension.
  CHECK(!s.GetDim(ShapeHandle(), 5)->is_known());
  CHECK(s.GetDim(ShapeHandle(), 5)->value() == -1);
  CHECK(s.rank(ShapeHandle()) == -1);
  CHECK(s.MakeVector(-1).ok());
  CHECK(absl::IsInvalidArgument(s.MakeVector(-5).status()));
  CHECK(absl::IsInvalidArgument(s.MakeShape(Shape{2, -5}).status()));
  CHECK(absl::IsInvalidArgument(s.SetOutput(0, s.MakeVector(-5))));

  auto old = MakeContext();
  old.only_first_index = true;
  const auto def = OpDef("A").SetShapeFn<&Shapes>();
  CHECK(Infer(old, def.shape_fn()).ok());
  CHECK(!old.outputs[0].has_rank());
  CHECK(!old.outputs[1].has_rank());
}

absl::Status SetTooMany(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle x, s.GetInput(0));
  TFPLUG_RETURN_IF_ERROR(s.SetOutput(1, x));
  return s.SetOutput(9, x);
}

TEST_CASE("an output that the op does not have is an error") {
  LeakCheckedFake fake({{2, 20}, {}});
  CHECK(Init([] {
          RegisterOp(OpDef("A").Output("x: float").SetShapeFn<&SetTooMany>());
          RegisterOp(OpDef("B")
                         .SetShapeFn<&SetTooMany>()
                         .Output("x: float")
                         .Output("y: float"));
        }).empty());
  const auto infer = [] {
    auto context = MakeContext();
    return Infer(context, RegisteredOps()[0]->shape_function);
  };
  CHECK(infer() == absl::OutOfRangeError(
                       "shape function: there is no output 9: the number of "
                       "outputs is 2"));
  // With a list, the number of outputs is unknown, and TensorFlow's error
  // cannot be distinguished from the limit of old releases.
  CHECK(Init([] {
          RegisterOp(OpDef("C")
                         .Attr("N: int")
                         .Output("x: N * float")
                         .SetShapeFn<&SetTooMany>());
          RegisterOp(OpDef("D")
                         .Attr("T: list(type)")
                         .Output("x: T")
                         .SetShapeFn<&SetTooMany>());
        }).empty());
  CHECK(infer().ok());
}

TEST_CASE("a lambda is a shape function, and its exceptions are errors") {
  LeakCheckedFake fake;
  auto context = MakeContext();
  const auto ok = OpDef("A").SetShapeFn(
      [](ShapeInference& s) { return s.SetUnknownShape(); });
  CHECK(Infer(context, ok.shape_fn()).ok());
  CHECK(!context.outputs[1].has_rank());
#if defined(__cpp_exceptions)
  const auto bad = OpDef("A").SetShapeFn(
      [](ShapeInference&) -> absl::Status { throw std::bad_alloc(); });
  CHECK(absl::IsResourceExhausted(Infer(context, bad.shape_fn())));
#endif
}

TEST_CASE("a failed registration is logged and leaks nothing") {
  LeakCheckedFake fake({{2, 20}, {}});
  const auto init = [] {
    RegisteredOps().clear();  // as in another process
    return Init([] { RegisterOp(OpDef("A").Input("x: float")); });
  };
  const int64_t calls = testing::CountCalls(init);
  CHECK(calls == 3);
  for (int64_t n = 1; n <= calls; ++n) {
    testing::Fault fault(n);
    const std::string log = init();
    CAPTURE(fault.failed());
    if (fault.failed() == "TF_GetAllOpList") continue;
    CHECK(log.find("RESOURCE_EXHAUSTED: op A") != std::string::npos);
  }
}

}  // namespace
}  // namespace tfplug::op_def_test
