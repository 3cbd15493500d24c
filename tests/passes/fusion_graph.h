// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_
#define TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/graph/constant.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/convert.h"
#include "tfplug/op_kernels/fused_map.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/fuse_elementwise.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug {

// The calls of the backend's primitives.
inline int num_maps = 0, num_reductions = 0, num_products = 0;

class CountedBackend : public ReferenceBackend<minimal::Stream> {
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
TFPLUG_REGISTER_BACKEND(CountedBackend, ActivationOps, ConvertOps, FusedMapOps,
                        MathOps, MatMulOps, ReductionOps);

// A kernel of the library's author.
struct OwnElu : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(OwnElu, ops::Elu().T<float>());

inline constexpr char kDevice[] =
    "/job:localhost/replica:0/task:0/device:MINIMAL:0";
inline constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

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
    const std::string attr = op == "Cast" ? "DstT" : "T";
    const auto node = testing::AddNodes(
        graph,
        absl::StrCat(name, " = ", op, "(", absl::StrJoin(inputs, ", "), ")"),
        {kDevice, attr + "=" + DataTypeName(type), nullptr});
    REQUIRE_MESSAGE(node.ok(), node.status().ToString());
    return *node;
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
    return *testing::AddNodes(graph, absl::StrCat(name, ": float = ", value),
                              {kDevice, "", nullptr});
  }
  // Sets the shape that TensorFlow infers for a node.
  void State(const std::string& node, const PartialShape& shape) {
    item.outputs[node] = {{capi::TF_FLOAT, shape, ""}};
  }
  // Returns the shape of a node's first output, as later passes find it.
  std::string ShapeAfter(const std::string& node) {
    const auto outputs = context->properties().GetOutputs(node);
    return outputs.ok() ? (*outputs)[0].shape.ToString()
                        : std::string(outputs.status().message());
  }
  Node operator[](const std::string& name) { return graph.FindNode(name); }

  // Fuses the graph, and forgets the values computed before.
  void Fuse() {
    values.clear();
    context.emplace("MINIMAL", "", &item);
    const absl::Status status = FuseElementwise().Run(graph, *context);
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
  std::string ExpressionOf(const std::string& node) {
    return graph.FindNode(node).GetAttr<std::string>("expression").value();
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
    for (const auto& [attr, bytes] : node.GetAttrs()) {
      if (const auto value = testing::DecodeAttr(bytes); value.has_value()) {
        description.attrs[std::string(attr)] = *value;
      }
    }
    // An empty list does not show its type.
    for (const char* attr : {"checks", "after_checks"}) {
      if (!node.HasAttr(attr)) continue;
      description.attrs[attr] =
          node.GetAttr<std::vector<int64_t>>(attr).value();
    }
    std::vector<DataType> types;
    for (const char* attr : {"Tin", "Tafter", "Tout"}) {
      if (!node.HasAttr(attr)) continue;
      types = node.GetAttr<std::vector<DataType>>(attr).value();
      description.attrs[attr] = types;
    }
    if (!node.HasAttr("Tout")) types = {OutputType(node)};
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
    const std::set<absl::string_view> bools = {"Less", "Equal", "LogicalNot",
                                               "All", "Any"};
    if (bools.count(node.op()) > 0) return DataType::kBool;
    return node.GetAttr<DataType>(node.op() == "Cast" ? "DstT" : "T")
        .value_or(DataType::kFloat);
  }

  Fixture<minimal::Platform> fixture;
  Graph graph;
  testing::TF_GrapplerItem item;
  std::optional<PassContext> context;  // of the last Fuse()
  std::map<std::string, capi::TF_Tensor> feeds;
  std::map<std::string, std::vector<capi::TF_Tensor>> values;
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_
