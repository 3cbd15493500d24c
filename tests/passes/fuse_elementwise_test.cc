// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/fuse_elementwise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/fused_map.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/reference_backend.h"
#include "tfplug/backend/register.h"
#include "tfplug/graph/constant.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/default_passes.h"

namespace tfplug {
namespace {

int num_maps = 0, num_reductions = 0, num_products = 0;

class Backend : public ReferenceBackend<minimal::Stream> {
 public:
  absl::Status Map(minimal::Stream& stream, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    ++num_maps;
    return ReferenceBackend::Map(stream, expression, inputs, outputs);
  }
  absl::Status Reduce(minimal::Stream& stream, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    ++num_reductions;
    return ReferenceBackend::Reduce(stream, reduction, inputs, outputs);
  }
  absl::Status MatMulMap(minimal::Stream& stream, Launcher& launcher,
                         const Operand& a, const Operand& b,
                         const Expression& expression, Operands inputs,
                         Operands outputs) override {
    ++num_products;
    return ReferenceBackend::MatMulMap(stream, launcher, a, b, expression,
                                       inputs, outputs);
  }
};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, ActivationOps, ConvertOps, FusedMapOps,
                        MathOps, MatMulOps, ReductionOps);

// A kernel of the library's author.
struct OwnElu : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(OwnElu, ops::Elu().T<float>());

constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:MINIMAL:0";
constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// A graph that can be run on the reference backend, node by node.
struct Fusion {
  Fusion() { testing::KernelRegistry::Get().Refill(&TF_InitKernel); }
  ~Fusion() {
    values.clear();
    testing::KernelRegistry::Get().Clear();
    testing::RegisteredOps().clear();
  }

  // Adds a node on the device. Inputs are "name", "name:1" or "^name".
  Node Add(const std::string& name, const std::string& op,
           const std::vector<std::string>& inputs,
           DataType type = DataType::kFloat) {
    const Node node = graph.AddNode(name, op).value();
    node.SetDevice(kDevice);
    node.SetAttr(op == "Cast" ? "DstT" : "T", type);
    for (const std::string& input : inputs) {
      if (input[0] == '^') {
        REQUIRE(node.AddControl(graph.FindNode(input.substr(1))).ok());
        continue;
      }
      const size_t colon = input.find(':');
      const Node from = graph.FindNode(input.substr(0, colon));
      REQUIRE_MESSAGE(from, input);
      const int port =
          colon == input.npos ? 0 : std::stoi(input.substr(colon + 1));
      REQUIRE(node.AddInput({from, port}).ok());
    }
    return node;
  }
  template <class T = float>
  Node Feed(const std::string& name, std::vector<int64_t> dims,
            const std::vector<T>& elements) {
    const Node node = graph.AddNode(name, "Placeholder").value();
    node.SetDevice(kDevice);
    auto tensor = testing::MakeDeviceTensor<T>(&fixture.device(),
                                               {std::move(dims), elements});
    feeds.emplace(name, *std::move(tensor));
    return node;
  }
  Node MatMul(const std::string& name, const std::vector<std::string>& inputs,
              DataType type = DataType::kFloat) {
    const Node node = Add(name, "MatMul", inputs, type);
    node.SetAttr("transpose_a", false);
    node.SetAttr("transpose_b", false);
    return node;
  }
  // Adds a reduction of `input`.
  Node Reduce(const std::string& name, const std::string& op,
              const std::string& input, const std::vector<int32_t>& axes,
              bool keep_dims = false) {
    const Node indices =
        graph.AddNode(absl::StrCat(name, "/axes"), "Const").value();
    Constant::Of<int32_t>({static_cast<int64_t>(axes.size())}, axes)
        .Write(indices);
    feeds.emplace(indices.name(),
                  testing::MakeTensor<int32_t>(
                      {static_cast<int64_t>(axes.size())}, axes));
    const Node node = Add(name, op, {input, std::string(indices.name())});
    if (op == "All" || op == "Any") node.RemoveAttr("T");
    node.SetAttr("keep_dims", keep_dims);
    return node;
  }
  Node Scalar(const std::string& name, float value) {
    const Node node = graph.AddNode(name, "Const").value();
    node.SetDevice(kDevice);
    Constant::Of<float>({}, {value}).Write(node);
    return node;
  }
  // Sets the shape that TensorFlow infers for a node.
  void State(const std::string& node, const PartialShape& shape) {
    item.outputs[node] = {{capi::TF_FLOAT, shape, ""}};
  }
  Node operator[](const std::string& name) { return graph.FindNode(name); }

  void Fuse() {
    const PassContext context("MINIMAL", "", &item);
    const absl::Status status = FuseElementwise().Run(graph, context);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
    REQUIRE(graph.TopologicalOrder().ok());
  }
  // Returns the ops of the graph, except for those that compute nothing.
  std::string Ops() {
    std::multiset<std::string> ops;
    for (const Node node : graph.nodes()) {
      if (node.op() == "Placeholder" || node.op() == "Const") continue;
      ops.insert(std::string(node.op()));
    }
    return absl::StrJoin(ops, " ");
  }
  std::string Steps(const std::string& node) {
    return absl::StrJoin(
        graph.FindNode(node).GetAttr<std::vector<std::string>>("steps").value(),
        "; ");
  }

  // Computes a node's output, and what it depends on.
  absl::Status Compute(const Node& node) {
    const std::string name(node.name());
    if (values.count(name) > 0) return absl::OkStatus();
    if (feeds.count(name) > 0) {
      values[name] = {feeds.at(name)};
      return absl::OkStatus();
    }
    for (const Input& input : node.inputs()) {
      TFPLUG_RETURN_IF_ERROR(Compute(input.from.node));
    }
    const auto input = [&](int i) {
      const Output from = node.input(i);
      return values[std::string(from.node.name())]
                   [static_cast<size_t>(from.port)];
    };
    if (node.op() == "Const") {
      values[name] = {*testing::MakeDeviceTensor<float>(
          &fixture.device(),
          {{}, *Constant::Read(node)->GetElements<float>()})};
      return absl::OkStatus();
    }
    if (node.op() == "Identity") {
      values[name] = {input(0)};
      return absl::OkStatus();
    }
    testing::Node description;
    description.op = std::string(node.op());
    description.name = name;
    for (const char* attr : {"T", "SrcT", "DstT"}) {
      if (node.HasAttr(attr)) {
        description.attrs[attr] = node.GetAttr<DataType>(attr).value();
      }
    }
    std::vector<DataType> types;
    for (const char* attr : {"keep_dims", "transpose_a", "transpose_b", "adj_x",
                             "adj_y", "is_batch"}) {
      if (node.HasAttr(attr)) {
        description.attrs[attr] = node.GetAttr<bool>(attr).value();
      }
    }
    if (node.op() == kFusedReduceOp) {
      types = {node.GetAttr<DataType>("T").value()};
      description.attrs["reduce"] = node.GetAttr<std::string>("reduce").value();
      description.attrs["Tin"] =
          node.GetAttr<std::vector<DataType>>("Tin").value();
      description.attrs["steps"] =
          node.GetAttr<std::vector<std::string>>("steps").value();
      description.attrs["results"] =
          node.GetAttr<std::vector<int64_t>>("results").value();
    } else if (node.op() != kFusedMapOp && node.op() != kFusedMatMulOp) {
      types = {OutputType(node)};
    } else {
      types = node.GetAttr<std::vector<DataType>>("Tout").value();
      description.attrs["Tin"] =
          node.GetAttr<std::vector<DataType>>("Tin").value();
      description.attrs["Tout"] = types;
      description.attrs["steps"] =
          node.GetAttr<std::vector<std::string>>("steps").value();
      description.attrs["results"] =
          node.GetAttr<std::vector<int64_t>>("results").value();
    }
    if (node.HasAttr("alpha")) {
      description.attrs["alpha"] = node.GetAttr<float>("alpha").value();
    }
    auto kernel = testing::FakeKernel::Create(description, "MINIMAL");
    if (!kernel.ok()) return kernel.status();
    testing::KernelRun run(**kernel, &fixture.device());
    for (int i = 0; i < node.num_inputs(); ++i) {
      run.AddInput(testing::InputSlot(
          input(i), /*on_host=*/input(i).dtype == capi::TF_INT32));
    }
    for (DataType type : types) run.AddOutput(type);
    TFPLUG_RETURN_IF_ERROR(run.Run());
    for (int k = 0; k < static_cast<int>(types.size()); ++k) {
      values[name].push_back(*run.output(k));
    }
    return absl::OkStatus();
  }
  // Returns the shape and the bytes of a node's output.
  std::string Result(const std::string& name) {
    const absl::Status status = Compute(graph.FindNode(name));
    if (!status.ok()) return std::string(status.message());
    const auto& tensor = values[name][0];
    const auto bytes =
        testing::ReadTensor<uint8_t>(&fixture.device(), tensor)->elements;
    return absl::StrCat(absl::StrJoin(tensor.dims, ","), ":",
                        std::string(bytes.begin(), bytes.end()));
  }
  static DataType OutputType(const Node& node) {
    const std::string op(node.op());
    if (op == "Cast") return node.GetAttr<DataType>("DstT").value();
    const std::set<std::string> bools = {"Less", "Equal", "LogicalNot", "All",
                                         "Any"};
    return bools.count(op) > 0 ? DataType::kBool
                               : node.GetAttr<DataType>("T").value();
  }

  Fixture<minimal::Platform> fixture;
  Graph graph;
  testing::TF_GrapplerItem item;
  std::map<std::string, capi::TF_Tensor> feeds;
  std::map<std::string, std::vector<capi::TF_Tensor>> values;
};

TEST_CASE("a chain becomes one op, whose result is the same") {
  Fusion f;
  f.Feed("x", {2, 2}, {-1, 0, 1, 2});
  f.Feed("row", {2}, {3, 4});
  f.Scalar("half", 0.5);
  f.Add("mul", "Mul", {"x", "half"});
  f.Add("sum", "AddV2", {"mul", "row"});
  f.Add("leaky", "LeakyRelu", {"sum"}).SetAttr("alpha", 0.25f);
  f.Add("out", "Identity", {"leaky"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
  CHECK(f.Steps("leaky/fused") ==
        "Const:float =4602678819172646912; Mul:float 0 2; AddV2:float 3 1; "
        "LeakyRelu:float 4 =4598175219545276416");
  num_maps = 0;
  CHECK(f.Result("out") == expected);
  CHECK(num_maps == 1);
  f.Fuse();  // nothing is left to do
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
}

TEST_CASE("a value with other uses becomes an output") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("exp", "Exp", {"tanh"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"exp"});
  const std::string tanh = f.Result("out1"), exp = f.Result("out2");
  f.values.clear();
  f.Fuse();
  CHECK(f["out1"].input(0) == Output(f["exp/fused"], 0));
  CHECK(f["out2"].input(0) == Output(f["exp/fused"], 1));
  num_maps = 0;
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == exp);
  CHECK(num_maps == 1);
}

TEST_CASE("a product and the ops after it become one op") {
  for (const DataType type : {DataType::kFloat, DataType::kHalf,
                              DataType::kBfloat16, DataType::kDouble}) {
    for (const bool is_batch : {false, true}) {
      for (const bool is_one_op : {false, true}) {
        CAPTURE(static_cast<int>(type));
        CAPTURE(is_batch);
        CAPTURE(is_one_op);
        Fusion f;
        const int64_t batch = is_batch ? 2 : 1;
        f.Feed("x", {batch, 3, 2}, std::vector<float>(size_t(batch) * 6, 1.3f));
        f.Feed("w", {1, 4, 3}, {-1, 0, 1, .3f, 2, 3, -2, 1, 1, 4, .7f, 2});
        f.Feed("matrix", {3, 2}, {-1, 0.1f, 1, 2, -3, 4});
        f.Feed("weights", {4, 3}, {-1, 0, 1, .3f, 2, 3, -2, 1, 1, 4, .7f, 2});
        f.Feed("row", {4}, {1.1f, -7, 2, 1});
        for (const char* name : {"x", "w", "matrix", "weights", "row"}) {
          f.Add(absl::StrCat(name, "/cast"), "Cast", {name}, type)
              .SetAttr("SrcT", DataType::kFloat);
        }
        const char* const attrs[] = {is_batch ? "adj_x" : "transpose_a",
                                     is_batch ? "adj_y" : "transpose_b"};
        const Node product =
            f.Add("product", is_batch ? "BatchMatMulV2" : "MatMul",
                  {is_batch ? "x/cast" : "matrix/cast",
                   is_batch ? "w/cast" : "weights/cast"},
                  type);
        product.SetAttr(attrs[0], true);
        product.SetAttr(attrs[1], true);
        f.Add("end", "BiasAdd", {"product", "row/cast"}, type);
        if (!is_one_op) {
          f.Add("tanh", "Tanh", {"end"}, type);
          f.Add("last", "Mul", {"row/cast", "tanh"}, type);
          f.Add("out2", "Identity", {"end"}, type);
        }
        f.Add("out", "Identity", {is_one_op ? "end" : "last"}, type);
        const std::string expected = f.Result("out");
        const std::string biased = is_one_op ? "" : f.Result("out2");
        f.values.clear();
        f.Fuse();
        CHECK(absl::StrContains(f.Ops(), kFusedMatMulOp));
        CHECK(!absl::StrContains(f.Ops(), "BiasAdd"));
        CHECK(!f["product"]);
        num_products = 0;
        CHECK(f.Result("out") == expected);
        if (!is_one_op) CHECK(f.Result("out2") == biased);
        CHECK(num_products == 1);
      }
    }
  }
}

TEST_CASE("a product is the second input of the op after it") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Feed("y", {2, 2}, {5, 6, 7, 9});
  f.MatMul("product", {"x", "y"});
  f.Add("difference", "Sub", {"y", "product"});
  f.Add("last", "Mul", {"difference", "product"});
  f.Add("out", "Identity", {"last"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMatMulOp));
  CHECK(f.Steps("last/fused/matmul") == "Sub:float 1 0; Mul:float 2 0");
  CHECK(f.Result("out") == expected);
}

TEST_CASE("an op may have another shape than the product") {
  Fusion f;
  std::vector<float> y = {5, 6, 7, 9};
  SUBCASE("the product is broadcast") {
    f.Feed("x", {1, 2}, {1, 2});
    f.Feed("z", {3, 2}, {1, 2, 3, 4, 5, 6});
  }
  SUBCASE("the product is empty") {
    f.Feed("x", {0, 2}, {});
    f.Feed("z", {1, 2}, {1, 2});
  }
  SUBCASE("the sum of no products") {
    f.Feed("x", {3, 0}, {});
    f.Feed("z", {3, 2}, {1, 2, 3, 4, 5, 6});
    y.clear();
  }
  f.Feed("y", {static_cast<int64_t>(y.size()) / 2, 2}, y);
  f.MatMul("product", {"x", "y"});
  f.Add("tanh", "Tanh", {"product"});
  f.Add("sum", "AddV2", {"tanh", "z"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"sum"});
  const std::string tanh = f.Result("out1"), sum = f.Result("out2");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMatMulOp));
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == sum);
}

TEST_CASE("one of two products is fused") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Feed("h", {2, 2}, {5, 6, 7, 9});
  f.MatMul("first", {"x", "x"});
  f.MatMul("second", {"h", "x"});
  f.Add("sum", "AddV2", {"first", "second"});
  f.Add("tanh", "Tanh", {"sum"});
  f.Add("out", "Identity", {"tanh"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity MatMul ", kFusedMatMulOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("products that stay apart") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  DataType type = DataType::kFloat;
  std::string device = kDevice;
  SUBCASE("with another user") {
    f.MatMul("product", {"x", "x"});
    f.Add("out2", "Identity", {"product"});
  }
  SUBCASE("with a control user") {
    f.MatMul("product", {"x", "x"});
    f.Add("after", "NoOp", {"^product"});
  }
  SUBCASE("that are preserved") {
    f.MatMul("product", {"x", "x"});
    f.item.nodes_to_preserve = {"product"};
  }
  SUBCASE("with the label of a kernel") {
    f.MatMul("product", {"x", "x"}).SetAttr("_kernel", "label");
  }
  SUBCASE("on another device") {
    f.MatMul("product", {"x", "x"}).SetDevice(kCpu);
  }
  SUBCASE("of integers") {
    type = DataType::kInt64;
    f.MatMul("product", {"x", "x"}, type);
  }
  SUBCASE("that are known to be broadcast") {
    f.MatMul("product", {"x", "x"});
    f.State("product", Shape{1, 2});
    f.State("tanh", Shape{3, 2});
  }
  SUBCASE("in a branch") {
    f.MatMul("whole", {"x", "x"});
    f.Feed<bool>("p", {}, {true});
    f.Add("product", "Switch", {"whole", "p"});
  }
  f.Add("tanh", "Neg", {"product"}, type);
  f.Add("out", "Identity", {"tanh"}, type);
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), "Tfplug"));
}

TEST_CASE("a product keeps control edges") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.Add("before", "NoOp", {});
  f.MatMul("product", {"x", "x", "^before"});
  f.Add("early", "NoOp", {});
  f.Add("tanh", "Tanh", {"product", "^early"});
  f.Add("after", "NoOp", {"^tanh"});
  f.Add("out", "Identity", {"tanh"});
  f.Fuse();
  const Node fused = f["tanh/fused/matmul"];
  REQUIRE(fused);
  CHECK(fused.num_controls() == 2);
  CHECK(f["after"].control(0) == fused);
}

TEST_CASE("a reduction wins over a product") {
  Fusion f;
  f.Feed("x", {2, 2}, {1, 2, 3, 4});
  f.MatMul("product", {"x", "x"});
  f.Add("square", "Square", {"product"});
  f.Reduce("sum", "Sum", "square", {-1});
  f.Add("out", "Identity", {"sum"});
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity MatMul ", kFusedReduceOp));
}

TEST_CASE("a reduction computes its input") {
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    for (const DataType type :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
      for (const bool is_one_op : {false, true}) {
        for (const std::vector<int32_t>& axes :
             std::vector<std::vector<int32_t>>{{0}, {-1}, {0, 1}, {}}) {
          CAPTURE(op);
          CAPTURE(static_cast<int>(type));
          CAPTURE(is_one_op);
          CAPTURE(axes.size());
          Fusion f;
          f.Feed("x", {2, 3}, {-1.5, 0, 1, 2.25, -3, 4});
          f.Feed("y", {2, 3}, {1, 7, -2, 1.125, 3, -5});
          std::string input = "x";
          if (type != DataType::kFloat) {
            f.Add("narrow", "Cast", {"x"}, type)
                .SetAttr("SrcT", DataType::kFloat);
            input = "narrow";
          }
          if (is_one_op) {
            f.Add("end", "Square", {input}, type);
          } else {
            f.Add("square", "Square", {input}, type);
            f.Add("end", "Mul", {"square", input}, type);
          }
          f.Reduce("reduce", op, "end", axes, is_one_op).SetAttr("T", type);
          f.Add("out", "Identity", {"reduce"}, type);
          f.State("end", PartialShape(Shape({2, 3})));
          const std::string expected = f.Result("out");
          f.values.clear();
          f.Fuse();
          const bool reduces_last = !axes.empty() && axes.back() != 0;
          CHECK((f.Ops() == absl::StrCat("Identity ", kFusedReduceOp)) ==
                reduces_last);
          num_maps = num_reductions = 0;
          CHECK(f.Result("out") == expected);
          CHECK(num_maps == (reduces_last ? 0 : 1));
          CHECK(num_reductions == 1);
        }
      }
    }
  }
}

TEST_CASE("a reduction broadcasts the inputs of what it reduces") {
  Fusion f;
  f.Feed("x", {2, 3}, {-1, 0, 1, 2, -3, 4});
  f.Feed("row", {3}, {1, 2, 3});
  f.Feed("column", {2, 1}, {5, 6});
  f.Add("product", "Mul", {"row", "column"});
  f.Add("difference", "Sub", {"product", "x"});
  f.Reduce("sum", "Sum", "difference", {-1}, true);
  f.Add("less", "Less", {"x", "sum"});
  f.Reduce("all", "All", "less", {0, -1});
  f.Add("out", "Identity", {"all"}, DataType::kBool);
  f.Fuse();
  CHECK(f.Ops() ==
        absl::StrCat("Identity ", kFusedReduceOp, " ", kFusedReduceOp));
  const std::string sums = f.Result("sum/fused");
  REQUIRE(sums.substr(0, 4) == "2,1:");
  float values[2];
  std::memcpy(values, sums.data() + 4, sizeof(values));
  CHECK(values[0] == 30);
  CHECK(values[1] == 33);
  CHECK(f.Result("out") == absl::StrCat(":", std::string(1, 1)));
}

TEST_CASE("what a reduction does not compute") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("used", "Exp", {"x"});
  f.Reduce("sum1", "Sum", "used", {-1});
  f.Add("out1", "Identity", {"used"});
  f.Add("first", "Exp", {"x"});
  f.Reduce("sum2", "Sum", "first", {-1});
  f.Add("out2", "Identity", {"sum2", "^first"});
  f.Add("other", "Exp", {"x"}).SetDevice(kCpu);
  f.Reduce("sum3", "Sum", "other", {-1});
  f.Add("kept", "Exp", {"x"});
  f.Reduce("sum4", "Sum", "kept", {-1});
  f.Add("label", "Exp", {"x"});
  f.Reduce("sum5", "Sum", "label", {-1})
      .SetAttr("_kernel", std::string("mine"));
  f.Reduce("sum6", "Sum", "x", {-1});
  f.Add("unknown", "Exp", {"x"});
  f.Reduce("sum7", "Sum", "unknown", {0});
  f.item.nodes_to_preserve = {"sum4"};
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), "Tfplug"));
}

TEST_CASE("a reduction keeps control edges") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("before", "NoOp", {});
  f.Add("first", "Exp", {"x", "^before"});
  f.Reduce("sum", "Sum", "first", {-1});
  REQUIRE(f["sum"].AddControl(f["before"]).ok());
  f.Add("after", "NoOp", {"^sum"});
  f.Fuse();
  REQUIRE(f["sum/fused"]);
  const auto controls = [&](const char* name) {
    std::vector<std::string> names;
    for (const Node from : f[name].controls()) {
      names.emplace_back(from.name());
    }
    return absl::StrJoin(names, " ");
  };
  CHECK(controls("sum/fused") == "before");
  CHECK(controls("after") == "sum/fused");
}

TEST_CASE("outputs may turn out to have different shapes") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2, 3}, {1, 2, 3, 4, 5, 6});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("sum", "AddV2", {"tanh", "y"});
  f.Add("out1", "Identity", {"tanh"});
  f.Add("out2", "Identity", {"sum"});
  const std::string tanh = f.Result("out1"), sum = f.Result("out2");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMapOp));
  num_maps = 0;
  CHECK(f.Result("out1") == tanh);
  CHECK(f.Result("out2") == sum);
  CHECK(num_maps == 2);
}

TEST_CASE("what is known to be broadcast stays apart") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2, 3}, {1, 2, 3, 4, 5, 6});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("sum", "AddV2", {"tanh", "y"});
  f.State("tanh", Shape{3});
  f.State("sum", Shape{-2, 3});
  f.Fuse();
  CHECK(f.Ops() == "AddV2 Tanh");
}

TEST_CASE("equal unknown dimensions are fused") {
  Fusion f;
  f.Feed<bool>("p", {3}, {true, false, true});
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("tanh", "Tanh", {"x"});
  // The condition of Select may be a vector that chooses rows.
  f.Add("select", "Select", {"p", "tanh", "x"});
  f.Add("out", "Identity", {"select"});
  f.Fuse();
  CHECK(f.Ops() == "Identity Select Tanh");
  const PartialShape shape(Shape{-5, 3}), other(Shape{-6, 3});
  f.item.inputs["select"] = {{capi::TF_BOOL, other, ""},
                             {capi::TF_FLOAT, shape, ""},
                             {capi::TF_FLOAT, shape, ""}};
  f.Fuse();
  CHECK(f.Ops() == "Identity Select Tanh");
  f.item.inputs["select"][0].shape = shape;
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
}

TEST_CASE("gradients check at run time that shapes are equal") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("dy", {3}, {1, 1, 1});
  f.Feed("wrong", {1, 3}, {1, 1, 1});
  f.Add("tanh", "Tanh", {"x"});
  f.Add("relu", "ReluGrad", {"dy", "tanh"});
  f.Add("out", "Identity", {"relu"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
  f.values.clear();
  f.feeds.at("dy") = f.feeds.at("wrong");
  CHECK(absl::StrContains(f.Result("out"),
                          "all inputs must have the same shape"));
}

TEST_CASE("no cycle is created") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("other", "Identity", {"a"});
  f.Add("b", "Exp", {"a"});
  f.Add("c", "Mul", {"b", "other"});
  f.Add("d", "Neg", {"c"});
  f.Add("out", "Identity", {"d"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity Tanh ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("control edges are kept") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Feed("before", {}, {0});
  f.Feed("scalar_before", {}, {0});
  REQUIRE(f.Scalar("two", 2).AddControl(f["scalar_before"]).ok());
  f.Add("a", "Tanh", {"x", "^before"});
  f.Add("b", "Mul", {"a", "two"});
  f.Add("out", "Identity", {"b"});
  f.Add("after", "Identity", {"x", "^a"});
  f.Fuse();
  const Node fused = f["b/fused"];
  REQUIRE(fused);
  CHECK(fused.num_controls() == 2);
  CHECK(f["after"].control(0) == fused);
}

TEST_CASE("a value that only a control edge uses") {
  Fusion f;
  f.Feed("c", {1, 3}, {5, 6, 7});
  f.Feed("a", {3}, {-1, 0, 1});
  f.Feed("b", {3}, {1, 2, 3});
  f.Add("used", "AddV2", {"a", "b"});
  std::vector<std::string> inputs = {"used", "c"};
  SUBCASE("with an input of its own after the others") {}
  SUBCASE("with an input of its own before the others") {
    std::swap(inputs[0], inputs[1]);
  }
  f.Add("unused", "Mul", inputs);
  f.Add("out", "Identity", {"used"});
  f.Add("after", "Identity", {"a", "^unused"});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.Ops() == absl::StrCat("Identity Identity ", kFusedMapOp));
  CHECK(f.Result("out") == expected);
}

TEST_CASE("a control edge between two ops keeps them apart") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("b", "Exp", {"a", "^a"});
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(f.Ops() == "Exp Identity Tanh");
}

TEST_CASE("some ops are left out") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  SUBCASE("on another device") {
    f.Add("a", "Tanh", {"x"}).SetDevice(kCpu);
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("without a device, as in a function's body") {
    f.Add("a", "Tanh", {"x"}).SetDevice("");
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("with a kernel of the author") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Elu", {"a"});
  }
  SUBCASE("with the label of a kernel") {
    f.Add("a", "Tanh", {"x"}).SetAttr("_kernel", "label");
    f.Add("b", "Exp", {"a"});
  }
  SUBCASE("on the host") {
    f.Add("a", "Neg", {"x"}, DataType::kInt32);
    f.Add("b", "Abs", {"a"}, DataType::kInt32);
  }
  SUBCASE("preserved") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Exp", {"a"});
    f.item.nodes_to_preserve = {"a"};
  }
  SUBCASE("with a result for shapes that do not fit") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Equal", {"a", "x"}).SetAttr("incompatible_shape_error", false);
  }
  SUBCASE("that nothing uses") {
    f.Add("a", "Tanh", {"x"});
    f.Add("b", "Exp", {"a"});
    f.Add("out", "Identity", {"x"});
    f.Fuse();
    CHECK(f.Ops() == "Exp Identity Tanh");
    return;
  }
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(!absl::StrContains(f.Ops(), kFusedMapOp));
}

TEST_CASE("branches and loops") {
  Fusion f;
  f.Feed("x", {2}, {1, 2});
  f.Feed<bool>("p", {}, {true});
  f.Add("a", "Tanh", {"x"});
  f.Add("switch1", "Switch", {"a", "p"});
  f.Add("switch2", "Switch", {"x", "p"});
  SUBCASE("one branch") {
    f.Add("b", "Exp", {"switch1:1"});
    f.Add("c", "Mul", {"b", "switch2:1"});
    f.Add("out1", "Identity", {"b"});
    f.Add("out2", "Identity", {"c"});
    f.Fuse();
    CHECK(f["c/fused"]);
  }
  SUBCASE("a node outside of the branch") {
    f.Add("late", "Identity", {"a"});
    f.Add("later", "Identity", {"late"});
    f.Add("b", "Exp", {"later"});
    f.Add("c", "Mul", {"b", "switch2:1"});
    f.Add("out1", "Identity", {"b"});  // also where c does not run
    f.Add("out2", "Identity", {"c"});
    f.Fuse();
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("after both branches") {
    f.Add("b", "Exp", {"switch1:0"});
    f.Add("c", "Neg", {"switch1:1"});
    f.Add("merge", "Merge", {"b", "c"});
    f.Add("d", "Tanh", {"merge"});
    f.Add("e", "Exp", {"x"});
    f.Add("sum", "AddV2", {"d", "e"});
    f.Add("out1", "Identity", {"e"});
    f.Add("out2", "Identity", {"sum"});
    f.Fuse();
    CHECK(f["sum/fused"]);
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("a loop") {
    f.Add("enter", "Enter", {"x"}).SetAttr("frame_name", "loop");
    f.Add("constant", "Enter", {"x"}).SetAttr("frame_name", "loop");
    f.Add("merge", "Merge", {"enter"});
    f.Add("limit", "LoopCond", {"merge"});
    f.Add("switch", "Switch", {"merge", "limit"});
    f.Add("b", "Exp", {"switch:1"});
    f.Add("c", "Mul", {"b", "constant"});
    f.Add("side", "Identity", {"b"});
    f.Add("next", "NextIteration", {"c"});
    REQUIRE(f["merge"].AddInput(f["next"]).ok());
    f.Add("exit", "Exit", {"switch:0"});
    f.Add("d", "Tanh", {"exit"});
    f.Add("e", "AddV2", {"d", "a"});
    f.Add("out1", "Identity", {"d"});
    f.Add("out2", "Identity", {"e"});
    f.Fuse();
    CHECK(f["c/fused"]);
    CHECK(f["e/fused"].num_inputs() == 2);
  }
}

TEST_CASE("a large cluster is divided") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("n", i);
    f.Feed("y" + name, {3}, {1, 2, 3});
    f.Add(name, i % 2 == 0 ? "AddV2" : "Mul", {last, "y" + name});
    last = name;
  }
  f.Add("out", "Identity", {last});
  const std::string expected = f.Result("out");
  f.values.clear();
  f.Fuse();
  CHECK(f.graph.nodes(kFusedMapOp).begin() != nullptr);
  for (const Node node : f.graph.nodes(kFusedMapOp)) {
    CHECK(node.num_inputs() <= 16);
  }
  CHECK(f.Result("out") == expected);
}

TEST_CASE("errors name the shapes") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Feed("y", {2}, {1, 2});
  f.Add("a", "Tanh", {"x"});
  f.Add("b", "AddV2", {"a", "y"});
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  CHECK(absl::StrContains(f.Result("out"), "Incompatible shapes: [3] vs. [2]"));
}

TEST_CASE("a malformed op is an error") {
  Fusion f;
  f.Feed("x", {3}, {-1, 0, 1});
  f.Add("a", "Tanh", {"x"});
  f.Add("b", "Exp", {"a"});
  f.Add("out", "Identity", {"b"});
  f.Fuse();
  std::vector<std::string> steps = {"Tanh:float 0", "Exp:float 1"};
  std::vector<int64_t> results = {2};
  std::string expected;
  SUBCASE("not a step") {
    steps[0] = "Tanh 0";
    expected = "is no step of a fused op";
  }
  SUBCASE("an unknown op") {
    steps[0] = "MatMul:float 0 0";
    expected = "which this library does not compute";
  }
  SUBCASE("a later value") {
    steps[0] = "Tanh:float 2";
    expected = "does not precede it";
  }
  SUBCASE("no such value") {
    results[0] = 7;
    expected = "does not precede it";
  }
  f["b/fused"].SetAttr("steps", steps);
  f["b/fused"].SetAttr("results", results);
  const std::string result = f.Result("out");
  CHECK_MESSAGE(absl::StrContains(result, expected), result);
}

// Builds a graph of random ops, types and shapes.
class RandomGraph {
 public:
  RandomGraph(Fusion& f, unsigned seed) : f_(f), random_(seed) {
    const std::vector<std::vector<int64_t>> shapes = {
        {4, 3}, {4, 3}, {4, 3}, {3}, {4, 1}, {1, 3}, {}};
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<float> elements(Shape(shapes[i]).num_elements());
      for (float& x : elements) x = Real();
      const std::string name = absl::StrCat("x", i);
      f_.Feed(name, shapes[i], elements);
      of_[DataType::kFloat].push_back(name);
    }
    f_.Scalar("c", Real());
    of_[DataType::kFloat].emplace_back("c");
    for (int i = 0; i < 40; ++i) AddOp();
    int outputs = 0;
    for (const auto& [type, names] : of_) {
      for (const std::string& name : names) {
        if (f_[name].num_uses() > 0 && random_() % 4 != 0) continue;
        outputs_.push_back(absl::StrCat("out", outputs++));
        f_.Add(outputs_.back(), "Identity", {name}, type);
      }
    }
  }
  const std::vector<std::string>& outputs() const { return outputs_; }

 private:
  float Real() { return std::normal_distribution<float>()(random_); }
  std::string Pick(DataType type) {
    const auto& names = of_[type];
    return names[random_() % names.size()];
  }
  void AddOp() {
    const std::string name = absl::StrCat("n", count_++);
    DataType type = DataType::kFloat;
    for (DataType other : {DataType::kHalf, DataType::kBfloat16,
                           DataType::kInt64, DataType::kInt8}) {
      if (!of_[other].empty() && random_() % 8 == 0) type = other;
    }
    DataType out = type;
    Node node;
    switch (random_() % 8) {
      case 0: {
        const DataType all[] = {DataType::kHalf, DataType::kBfloat16,
                                DataType::kInt64, DataType::kInt8,
                                DataType::kFloat};
        out = all[random_() % 5];
        if (out == type) out = DataType::kDouble;
        node = f_.Add(name, "Cast", {Pick(type)}, out);
        node.SetAttr("SrcT", type);
        break;
      }
      case 1:
        node = f_.Add(name, "Less", {Pick(type), Pick(type)}, type);
        out = DataType::kBool;
        break;
      case 2:
        if (of_[DataType::kBool].empty()) return;
        node = f_.Add(name, "SelectV2",
                      {Pick(DataType::kBool), Pick(type), Pick(type)}, type);
        break;
      case 3:
        node = f_.Add(name, random_() % 2 == 0 ? "Identity" : "Neg",
                      {Pick(type)}, type);
        break;
      case 4: {
        const char* const floats[] = {"Tanh", "Exp", "Sigmoid", "Relu"};
        const char* const numbers[] = {"Abs", "Sign", "Square", "Neg"};
        const size_t i = random_() % 4;
        node = f_.Add(name, IsFloat(type) ? floats[i] : numbers[i],
                      {Pick(type)}, type);
        break;
      }
      default: {
        const char* const ops[] = {"AddV2", "Mul", "Sub", "Maximum"};
        node = f_.Add(name, ops[random_() % 4], {Pick(type), Pick(type)}, type);
      }
    }
    of_[out].push_back(name);
  }

  Fusion& f_;
  std::mt19937 random_;
  int count_ = 0;
  std::map<DataType, std::vector<std::string>> of_;  // names of nodes
  std::vector<std::string> outputs_;
};

TEST_CASE("random graphs have the same results, bit by bit") {
  size_t num_fused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Fusion f;
    const RandomGraph random(f, seed);
    std::map<std::string, std::string> expected;
    for (const std::string& name : random.outputs()) {
      expected[name] = f.Result(name);
    }
    // TensorFlow knows the shapes of some nodes.
    for (const auto& [name, tensors] : f.values) {
      if (seed % 3 != 0 && (seed % 3 == 1 || name.size() % 2 == 0)) {
        f.State(name, PartialShape(Shape(tensors[0].dims)));
      }
    }
    f.values.clear();
    f.Fuse();
    for (const Node node : f.graph.nodes(kFusedMapOp)) {
      static_cast<void>(node);
      ++num_fused;
    }
    for (const std::string& name : random.outputs()) {
      CHECK_MESSAGE(f.Result(name) == expected[name], "seed ", seed, " ", name);
    }
  }
  CHECK(num_fused > 100);
}

TEST_CASE("the pass is among the default passes") {
  const auto is_last = [] {
    std::vector<internal::PassEntry> entries;
    internal::AppendLastPasses("SIM", OptimizerSettings(), entries);
    return !entries.empty() &&
           absl::EndsWith(entries[0].name, "FuseElementwise");
  };
  CHECK(is_last());
  setenv("TFPLUG_FUSION", "0", 1);
  CHECK_FALSE(is_last());
  unsetenv("TFPLUG_FUSION");
}

}  // namespace
}  // namespace tfplug
