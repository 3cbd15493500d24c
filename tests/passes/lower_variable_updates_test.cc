// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph/constant.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/passes/lower_variable_updates.h>
#include <tfplug/testing/fake_tensorflow.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/build_graph.h"

namespace tfplug::lower_variable_updates_test {
namespace {

// TensorFlow without and with the functions that update variables.
const testing::FakeOptions kWithout{{2, 21}, {}};
const testing::FakeOptions kWith{{2, 18}, {}};

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// Registers kernels of this library, and unregisters them on destruction.
struct Kernels {
  Kernels() { kernel_internal::RegisteredKernels().Clear(); }
  ~Kernels() { kernel_internal::RegisteredKernels().Clear(); }
  template <class... Types>
  void Add(const char* op, const char* attr) {
    RegisterKernel<NoKernel>(
        KernelDef(op).Device("SIM").TypeConstraint<Types...>(attr));
  }
};

Node AddUpdate(Graph& graph, const std::string& name, const std::string& op,
               std::initializer_list<std::string> inputs,
               const char* device = kSimDevice,
               DataType dtype = DataType::kFloat) {
  const Node node = Add(graph, name, op, inputs, device);
  node.SetAttr("dtype", dtype);
  return node;
}

void Run(Graph& graph) {
  const testing::TF_GrapplerItem item;
  const PassContext context("SIM", "", &item);
  LowerVariableUpdates pass;
  const absl::Status status = pass.Run(graph, context);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  REQUIRE(graph.status().ok());
}

TEST_CASE("an update becomes a read, a sum and an assignment") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "x", "Const");
  Add(graph, "before", "NoOp");
  const Node node =
      AddUpdate(graph, "sub", "AssignSubVariableOp", {"v", "x:1", "^before"});
  node.SetAttr("_class", std::vector<std::string>{"loc:@v"});
  Add(graph, "after", "NoOp", {"^sub"});
  Run(graph);
  CHECK(TextOf(graph) == Lines{"after = NoOp(^sub)", "before = NoOp()",
                               "sub = AssignVariableOp(v, sub/sub, ^before)",
                               "sub/read = ReadVariableOp(v, ^before, ^x)",
                               "sub/sub = Sub(sub/read, x:1)",
                               "v = VarHandleOp()", "x = Const()"});
  CHECK(node.GetAttr<bool>("validate_shape").value());
  CHECK(node.GetAttr<DataType>("dtype").value() == DataType::kFloat);
  const Node read = graph.FindNode("sub/read");
  CHECK(read.GetAttr<DataType>("dtype").value() == DataType::kFloat);
  CHECK(read.device() == kSimDevice);
  CHECK(read.GetAttr<std::vector<std::string>>("_class").value()[0] ==
        "loc:@v");
  const Node sub = graph.FindNode("sub/sub");
  CHECK(sub.GetAttr<DataType>("T").value() == DataType::kFloat);
  CHECK(sub.device() == kSimDevice);
  CHECK(sub.HasAttr("_class"));
}

// Adds an update or lookup of slices.
Node AddIndexed(Graph& graph, const std::string& name, const std::string& op,
                std::initializer_list<std::string> inputs,
                DataType dtype = DataType::kFloat) {
  const Node node = AddUpdate(graph, name, op, inputs, kSimDevice, dtype);
  node.SetAttr("Tindices", DataType::kInt64);
  return node;
}

TEST_CASE("an update of slices becomes a read, a scatter and an assignment") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  for (const char* how : {"Add", "Sub", "Update", "Max", "Min"}) {
    Graph graph;
    Add(graph, "v", "VarHandleOp");
    Add(graph, "i", "Const");
    Add(graph, "x", "Const");
    Add(graph, "before", "NoOp");
    const Node node =
        AddIndexed(graph, "s", std::string("ResourceScatter") + how,
                   {"v", "i", "x:1", "^before"});
    Run(graph);
    const std::string math = std::string("TensorScatter") + how;
    CHECK(TextOf(graph) ==
          Lines{"before = NoOp()", "i = Const()",
                "s = AssignVariableOp(v, s/scatter, ^before)",
                "s/first_dim = Const(^i)", "s/first_dim_1 = Const(^i)",
                "s/index = ExpandDims(s/indices, s/last_dim)",
                "s/indices = ExpandDims(i, s/first_dim)",
                "s/last_dim = Const(^i)",
                "s/read = ReadVariableOp(v, ^before, ^i, ^x)",
                "s/scatter = " + math + "(s/read, s/index, s/slices)",
                "s/slices = ExpandDims(x:1, s/first_dim_1)",
                "v = VarHandleOp()", "x = Const()"});
    CHECK(node.GetAttr<bool>("validate_shape").value());
    CHECK(!node.HasAttr("Tindices"));
    const Node scatter = graph.FindNode("s/scatter");
    CHECK(scatter.GetAttr<DataType>("T").value() == DataType::kFloat);
    CHECK(scatter.GetAttr<DataType>("Tindices").value() == DataType::kInt64);
    const Node index = graph.FindNode("s/index");
    CHECK(index.GetAttr<DataType>("T").value() == DataType::kInt64);
    CHECK(index.GetAttr<DataType>("Tdim").value() == DataType::kInt32);
    CHECK(Constant::Read(graph.FindNode("s/last_dim"))
              ->GetElements<int32_t>()
              .value() == std::vector<int32_t>{-1});
  }
}

TEST_CASE("a gather of a variable becomes a read and a gather") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "i", "Const");
  Add(graph, "before", "NoOp");
  const Node node =
      AddIndexed(graph, "g", "ResourceGather", {"v", "i:1", "^before"});
  node.SetAttr("batch_dims", int64_t{1});
  node.SetAttr("validate_indices", true);
  AddIndexed(graph, "list", "ResourceGather", {"v", "i"}, DataType::kVariant);
  Run(graph);
  CHECK(TextOf(graph) ==
        Lines{"before = NoOp()", "g = GatherV2(g/read, i:1, g/axis, ^before)",
              "g/axis = Const(^i)", "g/read = ReadVariableOp(v, ^before, ^i)",
              "i = Const()", "list = ResourceGather(v, i)",
              "v = VarHandleOp()"});
  CHECK(node.GetAttr<DataType>("Tparams").value() == DataType::kFloat);
  CHECK(node.GetAttr<DataType>("Tindices").value() == DataType::kInt64);
  CHECK(node.GetAttr<DataType>("Taxis").value() == DataType::kInt32);
  CHECK(node.GetAttr<int64_t>("batch_dims").value() == 1);
  CHECK(!node.HasAttr("dtype"));
  CHECK(!node.HasAttr("validate_indices"));
  CHECK(Constant::Read(graph.FindNode("g/axis"))->GetIntegers().value() ==
        std::vector<int64_t>{1});
}

TEST_CASE("updates and reads of elements become ops on values") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "i", "Const");
  Add(graph, "x", "Const");
  const auto add = [&](const char* name, const char* op,
                       std::initializer_list<std::string> inputs) {
    const Node node = Add(graph, name, op, inputs, kSimDevice);
    node.SetAttr("T", DataType::kFloat);
    return node;
  };
  const Node nd = add("nd", "ResourceScatterNdMax", {"v", "i", "x"});
  nd.SetAttr("Tindices", DataType::kInt64);
  nd.SetAttr("use_locking", true);
  const Node slice = add("slice", "ResourceStridedSliceAssign",
                         {"v", "i", "i", "i", "x", "^nd"});
  slice.SetAttr("Index", DataType::kInt32);
  slice.SetAttr("begin_mask", int64_t{2});
  AddIndexed(graph, "g", "ResourceGatherNd", {"v", "i", "^slice"});
  Run(graph);
  CHECK(TextOf(graph) ==
        Lines{"g = GatherNd(g/read, i, ^slice)",
              "g/read = ReadVariableOp(v, ^i, ^slice)", "i = Const()",
              "nd = AssignVariableOp(v, nd/scatter)",
              "nd/read = ReadVariableOp(v, ^i, ^x)",
              "nd/scatter = TensorScatterMax(nd/read, i, x)",
              "slice = AssignVariableOp(v, slice/slice, ^nd)",
              "slice/read = ReadVariableOp(v, ^i, ^nd, ^x)",
              "slice/slice = TensorStridedSliceUpdate(slice/read, i, i, i, x)",
              "v = VarHandleOp()", "x = Const()"});
  CHECK(nd.GetAttr<DataType>("dtype").value() == DataType::kFloat);
  CHECK(nd.GetAttrs().size() == 2);
  const Node scatter = graph.FindNode("nd/scatter");
  CHECK(scatter.GetAttr<DataType>("Tindices").value() == DataType::kInt64);
  CHECK(!scatter.HasAttr("use_locking"));
  CHECK(graph.FindNode("slice/slice").GetAttr<int64_t>("begin_mask").value() ==
        2);
}

// Registers an optimizer's op and the op that computes its values.
struct OptimizerOps : Kernels {
  OptimizerOps() {
    kernel::UpdateOp op = {"ResourceSparseApplyMomentum", kNewTrainingValuesOp,
                           2, 6};
    op.indices = 4;
    op.option = "use_nesterov";
    kernel::UpdateOps() = {op};
    Add<float>(kNewTrainingValuesOp, "T");
  }
  ~OptimizerOps() { kernel::UpdateOps().clear(); }
};

Node AddMomentum(Graph& graph, const char* name, const char* var,
                 const char* accum, const char* device = kSimDevice) {
  const Node node = Add(graph, name, "ResourceSparseApplyMomentum",
                        {var, accum, "lr", "g", "i", "m"}, device);
  node.SetAttr("T", DataType::kFloat);
  node.SetAttr("Tindices", DataType::kInt32);
  node.SetAttr("use_locking", true);
  node.SetAttr("use_nesterov", true);
  return node;
}

Graph MakeMomentumGraph() {
  Graph graph;
  for (const char* name : {"v", "w", "a", "b"}) Add(graph, name, "VarHandleOp");
  for (const char* name : {"lr", "g", "i", "m"}) Add(graph, name, "Const");
  return graph;
}

TEST_CASE("an optimizer's op becomes reads, new values and assignments") {
  OptimizerOps ops;
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph = MakeMomentumGraph();
  Add(graph, "before", "NoOp");
  const Node node = AddMomentum(graph, "train", "v", "a");
  REQUIRE(node.AddControl(graph.FindNode("before")).ok());
  Add(graph, "after", "NoOp", {"^train"});
  Run(graph);
  CHECK(TextOf(node) ==
        "train = AssignVariableOp(v, train/values, ^before, ^train/assign)");
  CHECK(TextOf(graph.FindNode("train/assign")) ==
        "train/assign = AssignVariableOp(a, train/values:1)");
  CHECK(TextOf(graph.FindNode("train/values")) ==
        "train/values = TfplugNewTrainingValuesV1(train/read, train/read_1, "
        "lr, g, i, m)");
  CHECK(TextOf(graph.FindNode("train/read")) ==
        "train/read = ReadVariableOp(v, ^before, ^g, ^i, ^lr, ^m)");
  CHECK(TextOf(graph.FindNode("train/read_1")) ==
        "train/read_1 = ReadVariableOp(a, ^before, ^g, ^i, ^lr, ^m)");
  CHECK(TextOf(graph.FindNode("after")) == "after = NoOp(^train)");
  const Node values = graph.FindNode("train/values");
  CHECK(values.GetAttr<std::string>("op").value() ==
        "ResourceSparseApplyMomentum");
  CHECK(values.GetAttr<int64_t>("N").value() == 2);
  CHECK(values.GetAttr<bool>("option").value());
  CHECK(values.GetAttr<std::vector<DataType>>("Targs").value() ==
        std::vector<DataType>{DataType::kFloat, DataType::kFloat,
                              DataType::kInt32, DataType::kFloat});
  CHECK(node.GetAttrs().size() == 2);
}

TEST_CASE("updates that share one of several variables are ordered") {
  OptimizerOps ops;
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph = MakeMomentumGraph();
  AddMomentum(graph, "first", "v", "a");
  AddMomentum(graph, "second", "w", "a");
  REQUIRE(graph.FindNode("second").AddControl(graph.FindNode("first")).ok());
  AddUpdate(graph, "sum", "AssignAddVariableOp", {"a", "g", "^second"});
  Run(graph);
  CHECK(graph.TopologicalOrder().ok());
  CHECK(TextOf(graph.FindNode("second/read_1")) ==
        "second/read_1 = ReadVariableOp(a, ^first, ^g, ^i, ^lr, ^m)");
  CHECK(TextOf(graph.FindNode("sum/read")) ==
        "sum/read = ReadVariableOp(a, ^g, ^second)");
}

TEST_CASE("an optimizer's op is left alone if it can or must be") {
  OptimizerOps ops;
  const auto op_after = [](testing::FakeOptions options, const char* device,
                           void (*change)(Node)) {
    testing::ScopedFakeTensorFlow fake(options);
    Graph graph = MakeMomentumGraph();
    change(AddMomentum(graph, "train", "v", "a", device));
    Run(graph);
    return std::string(graph.FindNode("train").op());
  };
  const auto same = [](Node) {};
  const std::string op = "ResourceSparseApplyMomentum";
  CHECK(op_after(kWithout, kSimDevice, same) == "AssignVariableOp");
  CHECK(op_after(kWithout, kCpuDevice, same) == op);
  CHECK(op_after(kWithout, "", same) == op);  // no kernel on the CPU
  CHECK(op_after(kWithout, kSimDevice, [](Node node) {
          node.SetAttr("T", DataType::kDouble);  // no kernel
        }) == op);
  CHECK(op_after(kWithout, kSimDevice,
                 [](Node node) { node.RemoveAttr("use_nesterov"); }) == op);
  ops.Add<float>("ResourceSparseApplyMomentum", "T");
  CHECK(op_after(kWith, kSimDevice, same) == op);
}

TEST_CASE("a gather with negative batch_dims is left alone") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "i", "Const");
  AddIndexed(graph, "g", "ResourceGather", {"v", "i"})
      .SetAttr("batch_dims", int64_t{-1});
  Run(graph);
  CHECK(TextOf(graph) ==
        Lines{"g = ResourceGather(v, i)", "i = Const()", "v = VarHandleOp()"});
}

TEST_CASE("updates of slices and of the whole variable are ordered") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "i", "Const");
  Add(graph, "x", "Const");
  const Node whole =
      AddUpdate(graph, "whole", "AssignAddVariableOp", {"v", "x"});
  const Node some =
      AddIndexed(graph, "some", "ResourceScatterAdd", {"v", "i", "x"});
  REQUIRE(some.AddControl(whole).ok());
  Run(graph);
  CHECK(graph.TopologicalOrder().ok());
  CHECK(TextOf(graph.FindNode("some/read")) ==
        "some/read = ReadVariableOp(v, ^i, ^whole, ^x)");
}

TEST_CASE("without a kernel for both types, the CPU updates slices") {
  Kernels kernels;
  RegisterKernel<NoKernel>(KernelDef("TensorScatterAdd")
                               .Device("SIM")
                               .TypeConstraint<float>("T")
                               .TypeConstraint<int32_t>("Tindices"));
  kernels.Add<float>("GatherV2", "Tparams");
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "i", "Const");
  Add(graph, "x", "Const");
  AddIndexed(graph, "long", "ResourceScatterAdd", {"v", "i", "x"});
  AddIndexed(graph, "short", "ResourceScatterAdd", {"v", "i", "x"})
      .SetAttr("Tindices", DataType::kInt32);
  AddIndexed(graph, "gather", "ResourceGather", {"v", "i"});
  AddIndexed(graph, "other", "ResourceGather", {"v", "i"}, DataType::kInt64);
  Run(graph);
  CHECK(graph.FindNode("long/scatter").device() == kCpuDevice);
  CHECK(graph.FindNode("long/index").device() == kCpuDevice);
  CHECK(graph.FindNode("long/read").device() == kSimDevice);
  CHECK(graph.FindNode("short/scatter").device() == kSimDevice);
  CHECK(graph.FindNode("gather").device() == kSimDevice);
  CHECK(graph.FindNode("other").device() == kCpuDevice);
  CHECK(graph.FindNode("other/read").device() == kSimDevice);
}

TEST_CASE("added nodes do not take a name that is already used") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "a/read", "Const");
  AddUpdate(graph, "a", "AssignAddVariableOp", {"v", "a/read"});
  Run(graph);
  CHECK(TextOf(graph) ==
        Lines{"a = AssignVariableOp(v, a/add)",
              "a/add = AddV2(a/read_1, a/read)", "a/read = Const()",
              "a/read_1 = ReadVariableOp(v, ^a/read)", "v = VarHandleOp()"});
}

TEST_CASE("unordered updates of one variable become ordered") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "same", "Identity", {"v"});
  Add(graph, "other", "VarHandleOp");
  Add(graph, "x", "Const");
  AddUpdate(graph, "a", "AssignAddVariableOp", {"v", "x"});
  AddUpdate(graph, "b", "AssignSubVariableOp", {"same", "x"});
  AddUpdate(graph, "c", "AssignAddVariableOp", {"other", "x"});
  Run(graph);
  const bool a_first = TextOf(graph.FindNode("b/read")) ==
                       "b/read = ReadVariableOp(same, ^a, ^x)";
  CHECK(TextOf(graph.FindNode("a/read")) ==
        std::string(a_first ? "a/read = ReadVariableOp(v, ^x)"
                            : "a/read = ReadVariableOp(v, ^b, ^x)"));
  CHECK(TextOf(graph.FindNode("b/read")) ==
        std::string(a_first ? "b/read = ReadVariableOp(same, ^a, ^x)"
                            : "b/read = ReadVariableOp(same, ^x)"));
  CHECK(TextOf(graph.FindNode("c/read")) ==
        "c/read = ReadVariableOp(other, ^x)");
  CHECK(graph.TopologicalOrder().ok());
}

TEST_CASE("an existing order is kept") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "x", "Const");
  // The later update comes first in the graph.
  const Node late = AddUpdate(graph, "late", "AssignSubVariableOp", {"v", "x"});
  const Node early =
      AddUpdate(graph, "early", "AssignSubVariableOp", {"v", "x"});
  REQUIRE(late.AddControl(early).ok());
  Run(graph);
  CHECK(graph.TopologicalOrder().ok());
  CHECK(TextOf(graph.FindNode("early/read")) ==
        "early/read = ReadVariableOp(v, ^x)");
  CHECK(TextOf(graph.FindNode("late/read")) ==
        "late/read = ReadVariableOp(v, ^early, ^x)");
}

TEST_CASE("no edge is added between the branches of a condition") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "p", "Const");
  Add(graph, "v", "VarHandleOp");
  Add(graph, "x", "Const");
  Add(graph, "switch", "Switch", {"v", "p"});
  AddUpdate(graph, "no", "AssignAddVariableOp", {"switch", "x"});
  AddUpdate(graph, "yes", "AssignAddVariableOp", {"switch:1", "x"});
  Add(graph, "pivot", "Identity", {"switch"});
  AddUpdate(graph, "no_too", "AssignAddVariableOp", {"v", "x", "^pivot"});
  AddUpdate(graph, "always", "AssignAddVariableOp", {"v", "x"});
  Run(graph);
  CHECK(TextOf(graph.FindNode("no/read")) ==
        "no/read = ReadVariableOp(switch, ^x)");
  CHECK(TextOf(graph.FindNode("yes/read")) ==
        "yes/read = ReadVariableOp(switch:1, ^x)");
  CHECK(TextOf(graph.FindNode("no_too/read")) ==
        "no_too/read = ReadVariableOp(v, ^pivot, ^x)");
  CHECK(TextOf(graph.FindNode("always/read")) ==
        "always/read = ReadVariableOp(v, ^x)");
}

TEST_CASE("a cycle is an error that names its nodes and changes nothing") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph built;
  Add(built, "v", "VarHandleOp");
  Add(built, "x", "Const");
  AddUpdate(built, "a", "AssignAddVariableOp", {"v", "x"});
  AddUpdate(built, "b", "AssignAddVariableOp", {"v", "x", "^a"});
  REQUIRE(built.FindNode("a").AddControl(built.FindNode("b")).ok());
  const std::string bytes = built.ToString();
  Graph graph = Graph::Parse(bytes).value();
  const testing::TF_GrapplerItem item;
  const absl::Status status =
      LowerVariableUpdates().Run(graph, PassContext("SIM", bytes, &item));
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message().find("'a'") != absl::string_view::npos);
  CHECK(!graph.changed());
}

TEST_CASE(
    "nodes on other devices are left alone; nodes without a device are not") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph graph;
  Add(graph, "v", "VarHandleOp");
  Add(graph, "x", "Const");
  AddUpdate(graph, "cpu", "AssignAddVariableOp", {"v", "x"}, kCpuDevice);
  AddUpdate(graph, "simon", "AssignAddVariableOp", {"v", "x"},
            "/device:SIMON:0");
  AddUpdate(graph, "none", "AssignAddVariableOp", {"v", "x"}, "");
  AddUpdate(graph, "short", "AssignAddVariableOp", {"v", "x"}, "/device:SIM:*");
  Run(graph);
  CHECK(graph.FindNode("cpu").op() == "AssignAddVariableOp");
  CHECK(graph.FindNode("simon").op() == "AssignAddVariableOp");
  CHECK(graph.FindNode("none").op() == "AssignVariableOp");
  CHECK(graph.FindNode("short").op() == "AssignVariableOp");
}

TEST_CASE("updates with TensorFlow's functions and a kernel are left alone") {
  Kernels kernels;
  kernels.Add<float>("AssignAddVariableOp", "dtype");
  kernels.Add<float>("AddV2", "T");
  const auto make = [](Graph& graph, const char* device) {
    Add(graph, "v", "VarHandleOp");
    Add(graph, "w", "VarHandleOp");
    Add(graph, "x", "Const");
    AddUpdate(graph, "f", "AssignAddVariableOp", {"v", "x"}, device);
    AddUpdate(graph, "i", "AssignAddVariableOp", {"w", "x"}, device,
              DataType::kInt64);
  };
  SUBCASE("2.18 has the functions, and there is no kernel for int64") {
    testing::ScopedFakeTensorFlow fake(kWith);
    Graph graph;
    make(graph, kSimDevice);
    Run(graph);
    CHECK(graph.FindNode("f").op() == "AssignAddVariableOp");
    CHECK(graph.FindNode("i").op() == "AssignVariableOp");
  }
  SUBCASE("2.21 lacks the functions; the CPU adds where the device cannot") {
    testing::ScopedFakeTensorFlow fake(kWithout);
    Graph graph;
    make(graph, kSimDevice);
    Run(graph);
    CHECK(graph.FindNode("f").op() == "AssignVariableOp");
    CHECK(graph.FindNode("f/add").device() == kSimDevice);
    CHECK(graph.FindNode("i").op() == "AssignVariableOp");
    CHECK(graph.FindNode("i/add").device() == kCpuDevice);
    CHECK(graph.FindNode("i/read").device() == kSimDevice);
  }
  SUBCASE("an unplaced update without a kernel for the sum is left alone") {
    testing::ScopedFakeTensorFlow fake(kWithout);
    Graph graph;
    make(graph, "");
    Run(graph);
    CHECK(graph.FindNode("f").op() == "AssignVariableOp");
    CHECK(graph.FindNode("i").op() == "AssignAddVariableOp");
  }
}

TEST_CASE("a graph without updates is left unchanged") {
  testing::ScopedFakeTensorFlow fake(kWithout);
  Graph built;
  Add(built, "v", "VarHandleOp");
  Add(built, "broken", "AssignAddVariableOp", {"v"});
  const std::string bytes = built.ToString();
  Graph graph = Graph::Parse(bytes).value();
  Run(graph);
  CHECK(!graph.changed());
}

TEST_CASE("the device type is read from a device name") {
  using internal::DeviceTypeOf;
  CHECK(DeviceTypeOf(kSimDevice) == "SIM");
  CHECK(DeviceTypeOf("/device:SIM:*") == "SIM");
  CHECK(DeviceTypeOf("/job:a/device:SIM") == "SIM");
  CHECK(DeviceTypeOf("/gpu:0") == "GPU");
  CHECK(DeviceTypeOf("/job:localhost") == "");
  CHECK(DeviceTypeOf("") == "");
  CHECK(internal::CpuInSameTask(kSimDevice) == kCpuDevice);
  CHECK(internal::CpuInSameTask("/device:SIM:1/job:a") ==
        "/device:CPU:0/job:a");
}

}  // namespace
}  // namespace tfplug::lower_variable_updates_test
