// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_SUBGRAPH_H_
#define TFPLUG_RUNTIME_SUBGRAPH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/function_library.h"
#include "tfplug/graph/graph.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/kernel/tensor.h"
#include "tfplug/runtime/handles.h"
#include "tfplug/runtime/node_ports.h"

#pragma GCC visibility push(hidden)

namespace tfplug::runtime {

// A tensor that flows through a subgraph. At most one of input and output is
// set.
struct SubValue {
  Port port;
  int input = -1;   // the input of the region that it is
  int output = -1;  // the output of the region that it becomes
  int uses = 0;     // inputs of nodes that it is
  Tensor constant;
};

// A node of a subgraph, with its kernel.
struct SubNode {
  std::string name, op;
  std::vector<int> inputs;  // indices of values
  int first_output = 0;
  int num_outputs = 0;
  void* kernel = nullptr;
  const kernel_internal::KernelFunctions* functions = nullptr;
};

// The subgraph of a region (kernel/region_op.h) and its kernels, which it
// constructs and destroys. Runs of it share it.
class Subgraph {
 public:
  Subgraph() = default;
  Subgraph(const Subgraph&) = delete;
  Subgraph& operator=(const Subgraph&) = delete;
  ~Subgraph() {
    for (const SubNode& node : nodes_) {
      if (node.functions != nullptr) node.functions->delete_func(node.kernel);
    }
  }

  // Reads a serialized GraphDef for a region with these inputs and outputs, and
  // constructs the kernels. INVALID_ARGUMENT, naming the node, if anything does
  // not fit; otherwise the error of a kernel's construction.
  absl::Status Init(absl::string_view graph_def, std::vector<Port> inputs,
                    std::vector<Port> outputs) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
    output_values_.assign(outputs_.size(), -1);
    if (graph_def.size() > kMaxRegionBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the attribute 'graph' has more than ", kMaxRegionBytes, " bytes"));
    }
    TFPLUG_ASSIGN_OR_RETURN(Graph graph, Graph::Parse(graph_def));
    TFPLUG_RETURN_IF_ERROR(graph.Check());
    std::vector<absl::string_view> node_defs;
    for (internal::WireReader field(graph_def); field.Next();) {
      if (field.Is(1, internal::kBytesType)) node_defs.push_back(field.bytes());
    }
    if (node_defs.size() > kMaxRegionNodes ||
        static_cast<int64_t>(node_defs.size()) != graph.num_nodes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the attribute 'graph' has ", node_defs.size(),
                       " nodes; at most ", kMaxRegionNodes, " are allowed"));
    }
    const FunctionLibrary ops{absl::string_view()};
    size_t i = 0;
    for (const Node node : graph.nodes()) {
      absl::Status status = Add(node, node_defs[i++], ops);
      if (status.ok()) continue;
      return absl::Status(status.code(),
                          absl::StrCat("node '", node.name(), "' (", node.op(),
                                       ") of the region: ", status.message()));
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (output_values_[k] >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the region has no _Retval for its output ", k));
    }
    return absl::OkStatus();
  }

  const std::vector<SubNode>& nodes() const { return nodes_; }
  const std::deque<SubValue>& values() const { return values_; }
  const SubValue& value(int i) const { return values_[static_cast<size_t>(i)]; }
  const std::vector<Port>& inputs() const { return inputs_; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }

 private:
  // Returns the index of the value, or an error.
  absl::StatusOr<int> ValueOf(const Output& output) const {
    const auto first = output.node ? first_values_.find(output.node.id())
                                   : first_values_.end();
    if (first == first_values_.end() || output.port < 0 ||
        output.port >= first->second.second) {
      return absl::InvalidArgumentError(
          "an input comes from no output of an earlier node");
    }
    return first->second.first + output.port;
  }
  SubValue& AddValue(Node node, Port port) {
    const auto [it, is_new] = first_values_.emplace(
        node.id(), std::make_pair(static_cast<int>(values_.size()), 0));
    ++it->second.second;
    values_.emplace_back();
    values_.back().port = port;
    return values_.back();
  }
  // Returns the attribute `index` of an _Arg or a _Retval.
  static absl::StatusOr<size_t> IndexOf(Node node, size_t size) {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t index,
                            node.GetAttr<int64_t>("index"));
    if (index < 0 || static_cast<size_t>(index) >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("the region has no input or output ", index));
    }
    return static_cast<size_t>(index);
  }

  absl::Status Add(Node node, absl::string_view node_def,
                   const FunctionLibrary& ops) {
    if (node.op() == "_Arg") {
      TFPLUG_ASSIGN_OR_RETURN(const size_t index,
                              IndexOf(node, inputs_.size()));
      AddValue(node, inputs_[index]).input = static_cast<int>(index);
      return absl::OkStatus();
    }
    if (node.op() == "_Retval") return AddResult(node);
    if (node.op() == "Const") return AddConstant(node);
    return AddKernel(node, node_def, ops);
  }

  absl::Status AddResult(Node node) {
    TFPLUG_ASSIGN_OR_RETURN(const size_t index, IndexOf(node, outputs_.size()));
    TFPLUG_ASSIGN_OR_RETURN(const int i, ValueOf(node.input(0)));
    SubValue& value = values_[static_cast<size_t>(i)];
    if (!(value.port == outputs_[index]) || value.input >= 0 ||
        value.output >= 0 || value.constant || output_values_[index] >= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", index, " of the region is not one output of a kernel ",
          "with its type and memory"));
    }
    value.output = static_cast<int>(index);
    output_values_[index] = i;
    return absl::OkStatus();
  }

  absl::Status AddConstant(Node node) {
    TFPLUG_ASSIGN_OR_RETURN(const Constant constant, Constant::Read(node));
    const std::string bytes = constant.GetBytes();
    if (bytes.size() > kMaxRegionConstant) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a constant has more than ", kMaxRegionConstant, " bytes"));
    }
    Tensor tensor(internal::tensorflow.TF_AllocateTensor(
        static_cast<capi::TF_DataType>(constant.dtype()),
        constant.shape().dims().data(), constant.shape().rank(), bytes.size()));
    if (!tensor) {
      return absl::ResourceExhaustedError("TensorFlow allocated no tensor");
    }
    if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
    AddValue(node, {constant.dtype(), true}).constant = std::move(tensor);
    return absl::OkStatus();
  }

  absl::Status AddKernel(Node node, absl::string_view node_def,
                         const FunctionLibrary& ops) {
    TFPLUG_ASSIGN_OR_RETURN(const OpSignature* const op,
                            ops.GetSignature(node.op()));
    const auto* const kernel = FindKernel(node, *op);
    if (op->is_stateful || kernel == nullptr) {
      return absl::InvalidArgumentError(
          "a region may contain only stateless ops with a kernel that is made "
          "from the backend's primitives");
    }
    TFPLUG_ASSIGN_OR_RETURN(const NodePorts ports,
                            PortsOf(node, *op, kernel->def));
    if (static_cast<size_t>(node.num_inputs()) != ports.inputs.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", node.num_inputs(), " inputs, but its op has ",
                       ports.inputs.size()));
    }
    SubNode added;
    added.name = std::string(node.name());
    added.op = std::string(node.op());
    added.num_outputs = static_cast<int>(ports.outputs.size());
    for (const Input& input : node.inputs()) {
      TFPLUG_ASSIGN_OR_RETURN(const int i, ValueOf(input.from));
      SubValue& value = values_[static_cast<size_t>(i)];
      if (!(value.port == ports.inputs[static_cast<size_t>(input.index)])) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input ", input.index, " has another type or kind of memory"));
      }
      ++value.uses;
      added.inputs.push_back(i);
    }
    added.first_output = static_cast<int>(values_.size());
    for (const Port& port : ports.outputs) AddValue(node, port);
    NodeConstruction construction(added.name, node_def);
    added.kernel = kernel->functions.create_func(construction.handle());
    // As in TensorFlow, kernels that failed are deleted, too.
    added.functions = &kernel->functions;
    nodes_.push_back(std::move(added));
    return construction.failure;
  }

  std::vector<Port> inputs_, outputs_;
  std::vector<int> output_values_;
  std::vector<SubNode> nodes_;
  std::deque<SubValue> values_;
  // The first value of each node, by its id, and the number of its values.
  std::map<uint32_t, std::pair<int, int>> first_values_;
};

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_SUBGRAPH_H_
