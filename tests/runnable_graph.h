// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_RUNNABLE_GRAPH_H_
#define TFPLUG_TESTS_RUNNABLE_GRAPH_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/ops/nn.h"
#include "tfplug/testing/graph_text.h"
#include "tfplug/testing/internal/executor_nodes.h"

namespace tfplug {

TFPLUG_REGISTER_DEVICE(minimal::Platform);

// A kernel of the library's author, which passes leave alone.
struct OwnElu : Kernel {
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    return context.SetOutput(0, x);
  }
};
TFPLUG_REGISTER_KERNEL(OwnElu, ops::Elu().T<float>());

// A graph that can be run with the kernels of the test, node by node. Tensors
// of int32 are in host memory.
class RunnableGraph {
 public:
  using Tensors = std::vector<capi::TF_Tensor>;

  RunnableGraph() { testing::KernelRegistry::Get().Refill(&TF_InitKernel); }
  ~RunnableGraph() {
    Reset();
    testing::KernelRegistry::Get().Clear();
    testing::RegisteredOps().clear();
  }

  // Removes all nodes and values.
  void Reset() {
    values.clear();
    kernels.clear();
    feeds.clear();
    order.clear();
    graph = Graph();
  }

  // Adds nodes (graph_text.h) on the device, of a type if a line has no other
  // one. Returns the last node.
  Node Add(const std::string& text, const std::string& type = "float") {
    const auto node = testing::AddNodes(graph, text, Options(type));
    REQUIRE_MESSAGE(node.ok(), node.status().ToString());
    return *node;
  }
  // Sets values that are written like constants, "x, y: float[2] = [1, 2]", and
  // forgets those computed before. Adds a Placeholder if there is no such node.
  void Feed(const std::string& text) {
    values.clear();
    Graph constants;
    const auto last = testing::AddNodes(constants, text);
    REQUIRE_MESSAGE(last.ok(), last.status().ToString());
    for (const Node constant : constants.nodes()) {
      const std::string name(constant.name());
      if (!graph.FindNode(name)) {
        const auto type = constant.GetAttr<DataType>("dtype");
        Add(name + " = Placeholder()", DataTypeName(*type));
      }
      feeds.insert_or_assign(name, ValueOf(constant));
    }
  }
  Node operator[](const std::string& name) { return graph.FindNode(name); }
  // Returns how the graph differs from a text.
  std::string Compare(const std::string& text) {
    return testing::CompareGraph(graph, text, Options("float"));
  }

  // Runs a pass, and forgets the values computed before.
  template <class Pass>
  void Run() {
    values.clear();
    context.emplace("MINIMAL", "", &item);
    const absl::Status status = Pass().Run(graph, *context);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
    REQUIRE(graph.TopologicalOrder().ok());
  }

  // Returns the shape and the bytes of an output, or the error.
  std::string Result(const std::string& name) {
    const absl::Status status = Compute(graph.FindNode(name));
    if (!status.ok()) return std::string(status.message());
    const capi::TF_Tensor& tensor = values[name][0];
    const auto bytes =
        testing::ReadTensor<char>(DeviceOf(tensor), tensor)->elements;
    return absl::StrCat(absl::StrJoin(tensor.dims, ","), ":",
                        std::string(bytes.begin(), bytes.end()));
  }
  // Returns the results of all nodes whose names begin with "out".
  std::map<std::string, std::string> Results() {
    std::map<std::string, std::string> results;
    for (const Node node : graph.nodes()) {
      const std::string name(node.name());
      if (!absl::StartsWith(name, "out")) continue;
      const absl::Status status = Compute(node);
      REQUIRE_MESSAGE(status.ok(), name, ": ", status.ToString());
      results[name] = Result(name);
    }
    return results;
  }
  void CheckResults(const std::map<std::string, std::string>& expected) {
    auto results = Results();
    for (const auto& entry : expected) {
      CHECK_MESSAGE(results[entry.first] == entry.second, entry.first);
    }
  }
  // Computes a node's outputs, and what it depends on.
  absl::Status Compute(Node node) {
    const std::string name(node.name());
    if (values.count(name) > 0) return absl::OkStatus();
    for (const Input& input : node.inputs()) {
      TFPLUG_RETURN_IF_ERROR(Compute(input.from.node));
    }
    for (const Node control : node.controls()) {
      TFPLUG_RETURN_IF_ERROR(Compute(control));
    }
    order.push_back(name);
    Tensors inputs;
    for (const Input& input : node.inputs()) {
      inputs.push_back(values[std::string(input.from.node.name())]
                             [static_cast<size_t>(input.from.port)]);
    }
    TFPLUG_ASSIGN_OR_RETURN(values[name], OutputsOf(node, inputs));
    return absl::OkStatus();
  }

  // Returns a new kernel of a node.
  absl::StatusOr<std::unique_ptr<testing::FakeKernel>> MakeKernel(Node node) {
    testing::Node description;
    description.op = std::string(node.op());
    description.name = std::string(node.name());
    for (const auto& [attr, bytes] : node.GetAttrs()) {
      // An empty list does not show its type.
      const auto value =
          absl::StartsWith(attr, "T")
              ? testing::DecodeAttrAs<DataType, std::vector<DataType>>(bytes)
              : testing::DecodeAttrAs<bool, int64_t, float, DataType,
                                      std::string, std::vector<int64_t>>(bytes);
      if (value.has_value()) description.attrs[std::string(attr)] = *value;
    }
    return testing::FakeKernel::Create(description, "MINIMAL");
  }

  Fixture<minimal::Platform> fixture;
  Graph graph;
  testing::TF_GrapplerItem item;
  std::optional<PassContext> context;  // of the last Run()
  std::map<std::string, capi::TF_Tensor> feeds;
  std::map<std::string, Tensors> values;  // by node; also of variables
  std::vector<std::string> order;         // in which nodes ran
  std::map<std::string, std::unique_ptr<testing::FakeKernel>> kernels;

 private:
  testing::GraphTextOptions Options(const std::string& type) {
    return {"MINIMAL",
            "Tidx=int32, Tperm=int32, Tshape=int32, Tdim=int32, "
            "out_type=int32, keep_dims=false, squeeze_dims=[], "
            "transpose_a=false, transpose_b=false, dtype=" +
                type + ", T=" + type,
            &item};
  }
  testing::FakeDevice* DeviceOf(const capi::TF_Tensor& tensor) {
    return tensor.dtype == capi::TF_INT32 ? nullptr : &fixture.device();
  }
  capi::TF_Tensor ValueOf(Node constant) {
    capi::TF_Tensor value = testing::ToTensor(*Constant::Read(constant));
    const auto bytes = testing::ReadTensor<uint8_t>(nullptr, value)->elements;
    const auto size = static_cast<int64_t>(bytes.size());
    value.buffer =
        testing::MakeDeviceTensor<uint8_t>(DeviceOf(value), {{size}, bytes})
            ->buffer;
    return value;
  }

  absl::StatusOr<Tensors> OutputsOf(Node node, const Tensors& inputs) {
    const std::string name(node.name());
    const absl::string_view op = node.op();
    if (feeds.count(name) > 0) return Tensors{feeds.at(name)};
    if (op == "Const") return Tensors{ValueOf(node)};
    if (op == "NoOp") return Tensors();
    if (op == "ReadVariableOp") return inputs;
    if (op == "AssignVariableOp") {
      values[std::string(node.input(0).node.name())] = {inputs[1]};
      return Tensors();
    }
    std::unique_ptr<testing::FakeKernel>& kernel = kernels[name];
    if (kernel == nullptr) {
      auto made = MakeKernel(node);
      if (absl::IsNotFound(made.status())) {
        return RunWithoutKernel(node, inputs);
      }
      TFPLUG_RETURN_IF_ERROR(made.status());
      kernel = *std::move(made);
    }
    testing::KernelRun run(*kernel, &fixture.device());
    for (const capi::TF_Tensor& input : inputs) {
      run.AddInput(testing::InputSlot(input, DeviceOf(input) == nullptr));
    }
    const std::vector<DataType> types = OutputTypes(node);
    for (const DataType type : types) {
      run.AddOutput(type, type == DataType::kInt32);
    }
    TFPLUG_RETURN_IF_ERROR(run.Run());
    Tensors outputs;
    for (size_t k = 0; k < types.size(); ++k) {
      outputs.push_back(*run.output(static_cast<int>(k)));
    }
    return outputs;
  }
  static std::vector<DataType> OutputTypes(Node node) {
    for (const char* op : {"Less", "Equal", "LogicalNot", "All"}) {
      if (node.op() == op) return {DataType::kBool};
    }
    if (node.op() == "Cast") return {*node.GetAttr<DataType>("DstT")};
    if (!node.HasAttr("Tout")) return {*node.GetAttr<DataType>("T")};
    auto types = *node.GetAttr<std::vector<DataType>>("Tout");
    if (node.HasAttr("Thost_out")) {
      const auto on_host = *node.GetAttr<std::vector<DataType>>("Thost_out");
      types.insert(types.end(), on_host.begin(), on_host.end());
    }
    return types;
  }
  // Plays TensorFlow's kernels of Identity, Shape and so on, and that of
  // Maximum for vectors in host memory: the fake describes no ops to
  // TF_InitKernel, which leaves it out.
  absl::StatusOr<Tensors> RunWithoutKernel(Node node, const Tensors& inputs) {
    if (node.op() == "Maximum") {
      auto a = testing::ReadTensor<int32_t>(nullptr, inputs[0])->elements;
      const auto b = testing::ReadTensor<int32_t>(nullptr, inputs[1])->elements;
      for (size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
      return Tensors{testing::MakeTensor<int32_t>(inputs[0].dims, a)};
    }
    if (testing::BuiltinInputs(node.op()) < 1) {
      return absl::NotFoundError(absl::StrCat("no kernel for ", node.op()));
    }
    std::vector<testing::Located> located;
    for (const capi::TF_Tensor& input : inputs) located.push_back({input});
    TFPLUG_ASSIGN_OR_RETURN(
        const auto output,
        testing::RunBuiltin({std::string(node.op()), "", {}, {}}, located));
    return Tensors{*output.tensor};
  }
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_RUNNABLE_GRAPH_H_
