// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_REGION_NODES_H_
#define TFPLUG_PASSES_INTERNAL_REGION_NODES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/runtime/node_ports.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Finds the nodes of a graph that can be in a region: those whose kernel
// is made from primitives, and whose results depend on their inputs only.
class RegionNodes {
 public:
  RegionNodes(Graph& graph, const PassContext& context)
      : context_(context), nodes_(graph.max_id()) {
    for (const Node node : graph.nodes()) {
      if (!context.IsOnDevice(node.device())) continue;
      nodes_[node.id()].why_not = Examine(node);
      has_any_ |= Has(node);
    }
  }

  bool has_any() const { return has_any_; }
  bool Has(Node node) const {
    return node.id() < nodes_.size() && nodes_[node.id()].why_not.empty();
  }
  // Returns why a node on the device is in no region; "" if it can be in one.
  const std::string& WhyNot(Node node) const {
    return nodes_[node.id()].why_not;
  }
  const runtime::NodePorts& ports(Node node) const {
    return nodes_[node.id()].ports;
  }
  void SetBranches(const Regions* branches) { branches_ = branches; }

  // Leaves out nodes of loops that need values in host memory from elsewhere,
  // such as the loop's counter: a record would hold for one iteration. Takes
  // the nodes in topological order.
  void LeaveOutVarying(const NodeList& order) {
    for (const Node node : order) {
      if (!Has(node) || !branches_->IsInLoop(node)) continue;
      for (const Input& input : node.inputs()) {
        const auto i = static_cast<size_t>(input.index);
        if (!ports(node).inputs[i].on_host || Has(input.from.node) ||
            IsInlined(input.from, node, input.index)) {
          continue;
        }
        nodes_[node.id()].why_not =
            "a value in host memory differs from iteration to iteration";
        break;
      }
    }
  }

  // Returns whether the nodes of an edge can be in one region; the port may be
  // kControl.
  bool CanJoin(const Output& from, Node to) const {
    return from && Has(from.node) && Has(to) &&
           from.node.device() == to.device() &&
           branches_->of(from.node) == branches_->of(to) &&
           (from.port == kControl || HaveSameMemory(from, to));
  }

  // Returns whether the input is a constant that becomes part of the region.
  bool IsInlined(const Output& from, Node to, int input) const {
    const auto& port = ports(to).inputs[static_cast<size_t>(input)];
    if (!port.on_host || from.node.op() != "Const" || from.port != 0) {
      return false;
    }
    const auto shape = context_.ReadConstantShape(from.node);
    if (!shape.ok()) return false;
    const int64_t size = shape->num_elements();
    if (size < 0 || static_cast<uint64_t>(size) * DataTypeSize(port.type) >
                        kMaxRegionConstant) {
      return false;
    }
    const auto constant = context_.ReadConstant(from.node);
    return constant.ok() && constant->dtype() == port.type;
  }

 private:
  struct Examined {
    std::string why_not = "it is not on the device";
    runtime::NodePorts ports;
  };

  std::string Examine(Node node) {
    if (node.op() == kRegionOp) return "it is a region";
    if (context_.IsPreserved(node.name())) {
      return "it must be preserved, because it is fed or fetched, or has a "
             "side effect";
    }
    const auto op = context_.functions().GetSignature(node.op());
    if (!op.ok()) return "TensorFlow does not describe its op";
    if ((*op)->is_stateful) return "its op has a state";
    const auto* const kernel = runtime::FindKernel(node, **op);
    if (kernel == nullptr) {
      if (Regions::IsControlFlow(node)) return "it is control flow";
      if (node.op() == "Const") return "TensorFlow keeps constants by itself";
      return "no synchronous kernel for it is made from the backend's "
             "primitives";
    }
    auto ports = runtime::PortsOf(node, **op, kernel->def);
    if (!ports.ok()) return std::string(ports.status().message());
    if (static_cast<size_t>(node.num_inputs()) != ports->inputs.size()) {
      return "it does not have the inputs of its op";
    }
    for (const Input& input : node.inputs()) {
      if (!input.from) return "the graph lacks an input";
    }
    for (const Use& use : node.uses()) {
      if (!use.is_control() &&
          static_cast<size_t>(use.node.input(use.input).port) >=
              ports->outputs.size()) {
        return "another node uses an output that its op does not have";
      }
    }
    nodes_[node.id()].ports = *std::move(ports);
    return "";
  }

  // Returns whether an output of one node and the inputs of the other that
  // come from it are in the same kind of memory.
  bool HaveSameMemory(const Output& from, Node to) const {
    const auto& outputs = ports(from.node).outputs;
    if (static_cast<size_t>(from.port) >= outputs.size()) return false;
    for (const Input& input : to.inputs()) {
      if (input.from == from &&
          !(ports(to).inputs[static_cast<size_t>(input.index)] ==
            outputs[static_cast<size_t>(from.port)])) {
        return false;
      }
    }
    return true;
  }

  const PassContext& context_;
  std::vector<Examined> nodes_;  // by node
  const Regions* branches_ = nullptr;
  bool has_any_ = false;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_REGION_NODES_H_
