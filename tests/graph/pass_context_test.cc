// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>
#include <tfplug/graph/pass_context.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <string>
#include <utility>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::pass_context_test {
namespace {

using testing::LeakCheckedFake;
using testing::TF_GrapplerItem;

TF_GrapplerItem MakeItem() {
  TF_GrapplerItem item;
  item.nodes_to_preserve = {"x", "", "y/z"};
  item.fetch_nodes = {"y/z:1", "x"};
  item.outputs["x"] = {{capi::TF_FLOAT, PartialShape(Shape{2, -1}), "value"},
                       {capi::TF_INT64, PartialShape(), ""}};
  item.inputs["y"] = {{capi::TF_HALF, PartialShape(Shape{}), ""}};
  return item;
}

std::string OpDefBytes() {
  const auto field = [](int number, absl::string_view value) {
    std::string out;
    internal::AppendField(out, number, value);
    return out;
  };
  const auto number = [](int number, uint64_t value) {
    std::string out;
    internal::AppendField(out, number, value);
    return out;
  };
  return field(1, "MyOp") +
         field(2, field(1, "x") + field(4, "T") + field(5, "N")) +
         field(2, field(1, "ref") + number(3, 1) + number(16, 1)) +
         field(3, field(1, "y") + field(6, "Ts")) +
         field(4, field(1, "T") + field(2, "type") + field(3, "default")) +
         field(4, field(1, "N") + field(2, "int")) + number(17, 1) +
         number(18, 1) + field(5, "a summary, which is skipped");
}

// Returns a GraphDef with one node and a library with one function.
std::string GraphWithFunction() {
  std::string node, signature, function, library, graph;
  internal::AppendField(node, 1, "some node");
  internal::AppendField(graph, 1, node);
  internal::AppendField(signature, 1, "my_function");
  internal::AppendField(function, 1, signature);
  internal::AppendField(library, 1, function);
  internal::AppendField(graph, 2, library);
  return graph;
}

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

TEST_CASE("HasKernel() with types from a literal and from a vector") {
  LeakCheckedFake fake;
  kernel_internal::RegisteredKernels().Clear();
  RegisterKernel<NoKernel>(
      KernelDef("MatMul").Device("SIM").TypeConstraint<float, double>("T"));
  const TF_GrapplerItem item;
  const PassContext context("SIM", "", &item);
  CHECK(context.HasAnyKernel());
  CHECK(context.HasKernel("MatMul"));
  CHECK(context.HasKernel("MatMul", {{"T", DataType::kFloat}}));
  CHECK_FALSE(context.HasKernel("MatMul", {{"T", DataType::kHalf}}));
  CHECK_FALSE(context.HasKernel("Sub"));
  std::vector<std::pair<absl::string_view, DataType>> types = {
      {"T", DataType::kDouble}, {"other", DataType::kHalf}};
  CHECK(context.HasKernel("MatMul", types));
  types[0].second = DataType::kInt32;
  CHECK_FALSE(context.HasKernel("MatMul", types));
  kernel_internal::RegisteredKernels().Clear();
}

TEST_CASE("names are fetched from TensorFlow once") {
  LeakCheckedFake fake;
  const TF_GrapplerItem item = MakeItem();
  const PassContext context("SIM", "", &item);
  CHECK(context.IsPreserved("x"));
  CHECK(context.IsPreserved("y/z"));
  CHECK(!context.IsPreserved("y"));
  CHECK(**context.item().GetFetchNodes() ==
        std::vector<std::string>{"y/z:1", "x"});
  CHECK(testing::CountCalls([&] {
          CHECK(context.IsPreserved("x"));
          CHECK(context.item().GetFetchNodes().ok());
        }) == 0);
  CHECK(context.status().ok());
  const TF_GrapplerItem nothing;
  CHECK((*GraphItem(&nothing).GetNodesToPreserve())->empty());
}

TEST_CASE("a constant that may be fed has no value") {
  LeakCheckedFake fake;
  TF_GrapplerItem item;
  item.nodes_to_preserve = {"fed", "fetched", "second", "target"};
  item.fetch_nodes = {"fetched:0", "second:1", "target"};
  const PassContext context("SIM", "", &item);
  Graph graph;
  for (const char* name : {"free", "fed", "fetched", "second", "target"}) {
    const Node node = graph.AddNode(name, "Const").value();
    Constant::Of(Shape{}, std::vector<float>{1.5f}).Write(node);
    const bool is_free = node.name() == "free" || node.name() == "fetched";
    CHECK(context.MayBeFed(node) != is_free);
    CHECK(context.ReadConstant(node).ok() == is_free);
    CHECK(context.ReadConstantShape(node).ok() == is_free);
  }
  CHECK(!context.MayBeFed(Output(graph.FindNode("second"), 1)));
  CHECK(context.ReadConstant(graph.FindNode("fed")).status() ==
        absl::FailedPreconditionError(
            "node 'fed' (Const) must be preserved and may be fed, so that its "
            "value can be another one in each run"));
  CHECK(absl::IsInvalidArgument(
      context.ReadConstant(graph.AddNode("fed/x", "Neg").value()).status()));
}

TEST_CASE("properties are inferred once, and values only on request") {
  LeakCheckedFake fake;
  const TF_GrapplerItem item = MakeItem();
  GraphProperties properties(&item);
  CHECK(item.inferences == 0);
  const auto outputs = properties.GetOutputs("x");
  REQUIRE(outputs.ok());
  REQUIRE(outputs->size() == 2);
  CHECK((*outputs)[0].dtype == DataType::kFloat);
  CHECK((*outputs)[0].shape.ToString() == "[2,?]");
  CHECK((*outputs)[1].dtype == DataType::kInt64);
  CHECK(!(*outputs)[1].shape.has_rank());
  const auto inputs = properties.GetInputs("y");
  REQUIRE(inputs.ok());
  CHECK((*inputs)[0].shape.rank() == 0);
  CHECK(item.inferences == 1);
  CHECK(testing::CountCalls([&] { CHECK(properties.GetOutputs("x").ok()); }) ==
        0);

  CHECK(properties.GetConstantValue("x", 0).value() == "value");
  CHECK(item.inferences == 2);
  CHECK(absl::IsNotFound(properties.GetConstantValue("x", 1).status()));
  CHECK(absl::IsNotFound(properties.GetConstantValue("x", 2).status()));
  CHECK(absl::IsNotFound(properties.GetConstantValue("x", -1).status()));
  CHECK(item.inferences == 2);
}

TEST_CASE("the properties of an added node are unknown until they are set") {
  LeakCheckedFake fake;
  const TF_GrapplerItem item = MakeItem();
  GraphProperties properties(&item);
  const absl::Status unknown = properties.GetOutputs("new").status();
  CHECK(absl::IsNotFound(unknown));
  CHECK(unknown.message().find("'new'") != absl::string_view::npos);
  properties.SetOutputs("new", {{DataType::kHalf, PartialShape(Shape{3})}});
  CHECK((*properties.GetOutputs("new"))[0].shape.ToString() == "[3]");
  CHECK(absl::IsNotFound(properties.GetInputs("new").status()));
  properties.SetInputs("new", {{DataType::kBool, PartialShape()}});
  CHECK((*properties.GetInputs("new"))[0].dtype == DataType::kBool);
  properties.Forget("new");
  CHECK(absl::IsNotFound(properties.GetOutputs("new").status()));
  // A node of TensorFlow's graph that a pass has changed.
  properties.Forget("x");
  CHECK(absl::IsNotFound(properties.GetOutputs("x").status()));
  CHECK(absl::IsNotFound(properties.GetConstantValue("x", 0).status()));
  properties.SetOutputs("x", {{}});
  CHECK(properties.GetOutputs("x")->size() == 1);
  CHECK(absl::IsNotFound(properties.GetConstantValue("x", 0).status()));
}

TEST_CASE("op and function signatures are looked up once") {
  LeakCheckedFake fake;
  testing::KnownOpDefs() = {{"MyOp", OpDefBytes()}};
  const std::string graph = GraphWithFunction();
  const FunctionLibrary library(graph);
  const auto op = library.GetSignature("MyOp");
  REQUIRE(op.ok());
  CHECK((*op)->name == "MyOp");
  REQUIRE((*op)->inputs.size() == 2);
  CHECK((*op)->inputs[0].type_attr == "T");
  CHECK((*op)->inputs[0].number_attr == "N");
  CHECK((*op)->inputs[1].type == DataType::kFloat);
  CHECK((*op)->inputs[1].is_ref);
  CHECK((*op)->outputs[0].type_list_attr == "Ts");
  CHECK((*op)->FindAttr("T")->default_value == "default");
  CHECK((*op)->FindAttr("N")->type == "int");
  CHECK(!(*op)->FindAttr("N")->has_default);
  CHECK((*op)->FindAttr("M") == nullptr);
  CHECK((*op)->is_stateful);
  CHECK((*op)->is_commutative);
  CHECK(!(*op)->is_aggregate);
  CHECK((*library.GetSignature("my_function"))->name == "my_function");
  CHECK(absl::IsNotFound(library.GetSignature("none").status()));
  CHECK(testing::CountCalls([&] {
          CHECK(*library.GetSignature("MyOp") == *op);
          CHECK(!library.GetSignature("none").ok());
        }) == 0);
}

TEST_CASE("a failure of any TensorFlow function is reported without a leak") {
  LeakCheckedFake fake;
  testing::KnownOpDefs() = {{"MyOp", OpDefBytes()}};
  const TF_GrapplerItem item = MakeItem();
  const std::string graph = GraphWithFunction();
  testing::FailEachCall([&]() -> absl::Status {
    const PassContext context("SIM", graph, &item);
    const auto is_preserved = context.IsPreserved("x");
    CHECK(is_preserved);  // Also if TensorFlow returns an error.
    if (!context.status().ok()) return context.status();
    if (auto s = context.item().GetFetchNodes(); !s.ok()) return s.status();
    if (auto s = context.properties().GetOutputs("x"); !s.ok())
      return s.status();
    if (auto s = context.properties().GetInputs("y"); !s.ok())
      return s.status();
    if (auto s = context.properties().GetConstantValue("x", 0); !s.ok()) {
      return s.status();
    }
    return context.functions().GetSignature("MyOp").status();
  });
}

TEST_CASE("a failed request is not repeated") {
  LeakCheckedFake fake;
  const TF_GrapplerItem item = MakeItem();
  const PassContext context("SIM", "", &item);
  {
    testing::Fault fault(1);
    CHECK(context.IsPreserved("nothing"));
  }
  CHECK(context.IsPreserved("nothing"));
  CHECK(absl::IsResourceExhausted(context.status()));
}

TEST_CASE("a missing TensorFlow function results in UNIMPLEMENTED") {
  LeakCheckedFake fake({{2, 21},
                        {"TF_GetNodesToPreserveList", "TF_InferStatically",
                         "TF_NewFunctionLibraryDefinition"}});
  const TF_GrapplerItem item = MakeItem();
  const PassContext context("SIM", "", &item);
  CHECK(absl::IsUnimplemented(context.item().GetNodesToPreserve().status()));
  CHECK(absl::IsUnimplemented(context.properties().GetOutputs("x").status()));
  CHECK(
      absl::IsUnimplemented(context.functions().GetSignature("MyOp").status()));
}

}  // namespace
}  // namespace tfplug::pass_context_test
