// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "leak_checked_fake.h"
#include "tfplug/graph/constant.h"
#include "tfplug/testing/graph_host.h"

namespace tfplug::keep_to_own_kernels_test {
namespace {

constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:SIM:0";
constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

template <class T = float>
void AddKernels(const std::vector<const char*>& ops) {
  for (const char* op : ops) {
    RegisterKernel<NoKernel>(
        KernelDef(op).Device("SIM").TypeConstraint<T>("T"));
  }
}

// A graph with one node `f` of the op, whose inputs are x, y and z.
struct OneNode {
  OneNode(const char* op, int num_inputs, DataType type = DataType::kFloat) {
    kernel_internal::RegisteredKernels().Clear();
    f = graph.AddNode("f", op).value();
    f.SetDevice(kDevice);
    f.SetAttr("T", type);
    for (int i = 0; i < num_inputs; ++i) {
      const Node input =
          graph.AddNode(std::string(1, "xyzuvw"[i]), "_Arg").value();
      REQUIRE(f.AddInput(input).ok());
    }
  }
  ~OneNode() { kernel_internal::RegisteredKernels().Clear(); }

  void Run() {
    const PassContext context("SIM", "", &item);
    const auto status = KeepToOwnKernels().Run(graph, context);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
  }

  // Returns the formula of a node.
  static std::string ToText(const Node& node) {
    if (node.op() == "_Arg") return std::string(node.name());
    if (node.op() == "Const") {
      CHECK(node.num_controls() == 1);
      const auto value = Constant::Read(node).value();
      const double number = value.dtype() == DataType::kFloat
                                ? value.GetElements<float>()->front()
                                : value.GetElements<double>()->front();
      std::string text = std::to_string(number);
      text.erase(text.find_last_not_of('0') + 1);
      return text + value.shape().ToString();
    }
    CHECK(node.device() == kDevice);
    CHECK(node.HasAttr("T"));
    std::string text = std::string(node.op()) + "(";
    for (const Input& input : node.inputs()) {
      if (input.index > 0) text += ", ";
      text += ToText(input.from.node);
    }
    return text + ")";
  }
  std::string Text() const { return ToText(f); }

  testing::LeakCheckedFake fake;
  testing::TF_GrapplerItem item;
  Graph graph;
  Node f;
};

TEST_CASE("a sum of many becomes a chain") {
  OneNode sum("AddN", 3);
  sum.f.SetAttr("N", int64_t{3});
  AddKernels({"AddV2"});
  sum.Run();
  CHECK(sum.Text() == "AddV2(AddV2(x, y), z)");
  CHECK(sum.f.name() == "f");
  CHECK(!sum.f.HasAttr("N"));  // AddV2 has no such attribute
  sum.Run();
  CHECK(sum.Text() == "AddV2(AddV2(x, y), z)");
}

TEST_CASE("nothing changes if there is a kernel, or no kernels at all") {
  OneNode sum("AddN", 3);
  sum.Run();
  CHECK(sum.f.op() == "AddN");
  AddKernels<double>({"AddN"});
  AddKernels({"AddV2", "AddN"});
  sum.Run();
  CHECK(sum.f.op() == "AddN");
}

TEST_CASE("other types of the op's kernels do not count") {
  OneNode sum("AddN", 2, DataType::kDouble);
  AddKernels({"AddN"});
  AddKernels<double>({"AddV2"});
  sum.Run();
  CHECK(sum.Text() == "AddV2(x, y)");
}

TEST_CASE("formulas") {
  struct Case {
    const char* op;
    int num_inputs;
    std::vector<const char*> kernels;
    const char* expected;
  };
  for (const Case& c : std::vector<Case>{
           {"Rsqrt", 1, {"Sqrt", "Reciprocal"}, "Reciprocal(Sqrt(x))"},
           {"Rsqrt", 1, {"Sqrt", "RealDiv"}, "RealDiv(1.[], Sqrt(x))"},
           {"Rsqrt", 1, {"Pow"}, "Pow(x, -0.5[])"},
           {"AddV2", 2, {"Sub"}, "Sub(x, Sub(0.[], y))"},
           {"Add", 2, {"Sub"}, "Sub(x, Sub(0.[], y))"},
           {"SquaredDifference",
            2,
            {"Sub", "Mul"},
            "Mul(Sub(x, y), Sub(x, y))"},
           {"Log1p", 1, {"Log", "Add"}, "Log(Add(x, 1.[]))"},
           {"Min", 2, {"Max", "Neg"}, "Neg(Max(Neg(x), y))"},
       }) {
    OneNode one(c.op, c.num_inputs);
    AddKernels(c.kernels);
    one.Run();
    CHECK(one.Text() == c.expected);
  }
}

TEST_CASE("a multiple is a sum again") {
  struct Case {
    double factor;
    int constant;  // the input that is the factor
    std::vector<const char*> kernels;
    const char* expected;
    bool is_fed = false;
  };
  const char* const kOther = "Mul";
  for (const Case& c : std::vector<Case>{
           {2, 0, {"AddV2"}, "AddV2(y, y)"},
           {2, 1, {"Add"}, "Add(x, x)"},
           {3, 0, {"AddV2", "AddN"}, "AddV2(AddV2(y, y), y)"},
           {3, 0, {"AddN"}, "AddN(y, y, y)"},
           {2, 0, {"Sub"}, "Sub(y, Sub(0.[], y))"},
           {2, 0, {"RealDiv"}, "RealDiv(2.[], RealDiv(1.[], y))"},
           {2.5, 0, {"AddV2"}, kOther},
           {9, 0, {"AddV2"}, kOther},
           {2, 1, {"AddV2"}, kOther, true},
       }) {
    OneNode one("Mul", 2);
    const Node factor = one.f.input(c.constant).node;
    factor.SetOp("Const");
    REQUIRE(factor.AddControl(one.f.input(1 - c.constant).node).ok());
    Constant::Of(Shape{}, std::vector<float>{static_cast<float>(c.factor)})
        .Write(factor);
    AddKernels(c.kernels);
    if (c.is_fed) one.item.nodes_to_preserve = {std::string(factor.name())};
    one.Run();
    if (c.expected == kOther) {
      CHECK(one.f.op() == "Mul");
      CHECK(one.f.device() == kCpu);
    } else {
      CHECK(one.Text() == c.expected);
      if (one.f.op() == "AddN") CHECK(one.f.GetAttr<int64_t>("N").value() == 3);
    }
  }
}

TEST_CASE("a product of tensors is not a sum") {
  OneNode product("Mul", 2);
  AddKernels({"AddV2", "Pow"});
  product.Run();
  CHECK(product.f.op() == "Mul");
  CHECK(product.f.device() == kCpu);
  OneNode square("Square", 1);  // not via Mul, which is no sum here
  AddKernels({"AddV2", "Pow"});
  square.Run();
  CHECK(square.Text() == "Pow(x, 2.[])");
}

TEST_CASE("a reduction keeps its attributes") {
  OneNode min("Min", 2);
  min.f.SetAttr("keep_dims", true);
  min.f.SetAttr("Tidx", DataType::kInt32);
  min.f.SetAttr("_output_shapes", true);
  AddKernels({"Max", "Neg"});
  min.Run();
  CHECK(!min.f.HasAttr("keep_dims"));
  CHECK(!min.f.HasAttr("Tidx"));
  CHECK(min.f.HasAttr("_output_shapes"));
  const Node max = min.f.input(0).node;
  CHECK(max.GetAttr<bool>("keep_dims").value());
  CHECK(max.GetAttr<DataType>("Tidx").value() == DataType::kInt32);
  CHECK(!max.HasAttr("_output_shapes"));
}

TEST_CASE("a broadcast multiplies by ones of the constant shape") {
  OneNode broadcast("BroadcastTo", 2, DataType::kDouble);
  AddKernels<double>({"Mul"});
  SUBCASE("constant") {
    const Node shape = broadcast.f.input(1).node;
    shape.SetOp("Const");
    Constant::Of<int32_t>({2}, {4, 3}).Write(shape);
    broadcast.Run();
    CHECK(broadcast.Text() == "Mul(x, 1.[4,3])");
  }
  SUBCASE("fed") {
    const Node shape = broadcast.f.input(1).node;
    shape.SetOp("Const");
    Constant::Of<int32_t>({2}, {4, 3}).Write(shape);
    broadcast.item.nodes_to_preserve = {"y"};
    broadcast.Run();
    CHECK(broadcast.f.op() == "BroadcastTo");
  }
  SUBCASE("not constant") {
    broadcast.Run();
    CHECK(broadcast.f.op() == "BroadcastTo");
    CHECK(broadcast.f.device() == kCpu);
  }
}

// A fused normalization, optionally with a sum, and the user of two outputs.
struct FusedNorm : OneNode {
  explicit FusedNorm(bool has_side = false)
      : OneNode("_FusedBatchNormEx", has_side ? 6 : 5) {
    f.SetAttr("activation_mode", "Relu");
    f.SetAttr("num_side_inputs", int64_t{has_side});
    f.SetAttr("epsilon", 0.5f);
    user = graph.AddNode("user", "_Retval").value();
    REQUIRE(user.SetInputs({f, Output(f, 1)}).ok());
    AddKernels({"Relu", "AddV2"});
  }
  Node user;
};

TEST_CASE("a fused batch normalization becomes its parts") {
  for (const bool has_side : {false, true}) {
    FusedNorm norm(has_side);
    norm.Run();
    CHECK(norm.f.op() == "FusedBatchNormV3");
    CHECK(norm.f.num_inputs() == 5);
    CHECK(norm.f.GetAttr<float>("epsilon").value() == 0.5f);
    CHECK(!norm.f.HasAttr("activation_mode"));
    CHECK(!norm.f.HasAttr("num_side_inputs"));
    CHECK(norm.user.input(1) == Output(norm.f, 1));
    const std::string text = "FusedBatchNormV3(x, y, z, u, v)";
    CHECK(norm.ToText(norm.user.input(0).node) ==
          "Relu(" + (has_side ? "AddV2(" + text + ", w)" : text) + ")");
  }
}

TEST_CASE("a fused batch normalization that stays") {
  FusedNorm norm;
  SUBCASE("it has a kernel") { AddKernels({"_FusedBatchNormEx"}); }
  SUBCASE("it may be fetched") { norm.item.nodes_to_preserve = {"f"}; }
  SUBCASE("another activation") { norm.f.SetAttr("activation_mode", "Elu"); }
  norm.Run();
  CHECK(norm.f.op() == "_FusedBatchNormEx");
  CHECK(norm.user.input(0) == Output(norm.f, 0));
}

TEST_CASE("an op without a formula moves to the CPU") {
  OneNode tile("Tile", 2);
  tile.f.SetAttr("_class", std::string("loc:@x"));
  AddKernels({"Mul"});
  tile.Run();
  CHECK(tile.f.op() == "Tile");
  CHECK(tile.f.device() == kCpu);
  CHECK(!tile.f.HasAttr("_class"));
}

TEST_CASE("nodes on other devices and without a device do not change") {
  for (const char* device : {"", kCpu}) {
    OneNode sum("AddN", 2);
    AddKernels({"AddV2"});
    sum.f.SetDevice(device);
    sum.Run();
    CHECK(sum.f.op() == "AddN");
    CHECK(sum.f.device() == device);
  }
}

TEST_CASE("TensorFlow has kernels for int32, and for tensor lists") {
  for (const DataType type : {DataType::kInt32, DataType::kVariant}) {
    OneNode sum("AddN", 2, type);
    AddKernels({"AddV2"});
    sum.Run();
    CHECK(sum.f.op() == "AddN");
    CHECK(sum.f.device() == kDevice);
  }
}

TEST_CASE("constants have the type of the node") {
  for (const DataType type :
       {DataType::kHalf, DataType::kBfloat16, DataType::kInt8,
        DataType::kUint64, DataType::kComplex64, DataType::kComplex128}) {
    CHECK(passes_internal::EncodeNumber(1, type).size() == DataTypeSize(type));
  }
  CHECK(passes_internal::EncodeNumber(1, DataType::kHalf) ==
        std::string("\0\x3c", 2));
  CHECK(passes_internal::EncodeNumber(-1, DataType::kInt16) == "\xff\xff");
  CHECK(passes_internal::EncodeNumber(1, DataType::kString).empty());
}

TEST_CASE("the pass is among the default passes") {
  for (const bool is_on : {true, false}) {
    OptimizerSettings settings;
    settings.keep_to_own_kernels = is_on;
    std::vector<graph_internal::PassEntry> entries;
    passes_internal::AppendFirstPasses("SIM", settings, entries);
    CHECK(std::any_of(entries.begin(), entries.end(),
                      [](const graph_internal::PassEntry& entry) {
                        return absl::EndsWith(entry.name, "KeepToOwnKernels");
                      }) == is_on);
  }
}

}  // namespace
}  // namespace tfplug::keep_to_own_kernels_test
