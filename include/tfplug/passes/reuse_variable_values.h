// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_REUSE_VARIABLE_VALUES_H_
#define TFPLUG_PASSES_REUSE_VARIABLE_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Reads each variable once, so that FuseElementwise, which runs next, fuses the
// whole update of a variable. Keras' optimizers read a variable in each formula
// and again after each assignment.
//
// A read whose only control input is the assignment of the same variable
// becomes the assigned value: nothing else is ordered between the two. Nodes
// that computed with the read, or after it, still run after the assignment,
// except for element-wise ops, whose users do.
//
// Reads with the same inputs and control inputs are merged: nothing can be
// ordered between them, and they run in the same branches and iterations. So are
// constants and element-wise ops that are equal then, such as the step size that
// Adam computes for each variable.
//
// Values that leave a branch or an iteration, nodes that are fed or fetched, and
// graphs in which an op changes its input are left alone. In the body of a
// function, TensorFlow preserves each read because its op has a state: those
// become NoOps of the same name. Runs under the same conditions as
// FuseElementwise.
class ReuseVariableValues : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasKernel(kFusedMapOp) || !graph.has_op("ReadVariableOp")) {
      return absl::OkStatus();
    }
    // Equal values may become different ones.
    for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"}) {
      if (graph.has_op(op)) return absl::OkStatus();
    }
    const passes_internal::FusableNodes fusable(graph, context);
    const bool is_function = graph.has_op("_Retval") || graph.has_op("_Arg");
    TFPLUG_ASSIGN_OR_RETURN(const NodeList nodes, graph.TopologicalOrder());
    const passes_internal::Regions branches(graph, nodes);
    std::vector<Node> order;
    for (const Node node : nodes) order.push_back(node);
    std::unordered_map<std::string, Node> first;
    for (const Node node : order) {
      const bool is_read = node.op() == "ReadVariableOp";
      if ((!is_read && node.op() != "Const" && !fusable.Has(node)) ||
          !context.IsOnDevice(node.device())) {
        continue;
      }
      const bool is_preserved = context.IsPreserved(node.name());
      // Functions are not fed, and return what their _Retval nodes get.
      if (is_preserved && !(is_read && is_function)) continue;
      if (is_read && IsAssigned(node)) {
        Uses uses;
        if (uses.Find(node, fusable, branches)) {
          TFPLUG_RETURN_IF_ERROR(Forward(node, uses));
          TFPLUG_RETURN_IF_ERROR(Remove(graph, node, is_preserved));
          continue;
        }
      }
      const std::string key = KeyOf(node);
      if (key.empty()) continue;
      const auto [it, is_new] = first.emplace(key, node);
      if (is_new) continue;
      TFPLUG_RETURN_IF_ERROR(graph.ReplaceNode(node, it->second));
      TFPLUG_RETURN_IF_ERROR(Remove(graph, node, is_preserved));
    }
    return absl::OkStatus();
  }

 private:
  // The nodes that depend on a read.
  struct Uses {
    std::set<Node> direct;  // that have it as a data input
    std::set<Node> ends;    // the first ones that must run after the assignment

    // Returns false if there are too many, if the assignment, the read and all of
    // them are not in the same branches and loops, or if the function returns one:
    // inlining drops the control inputs of _Retval.
    bool Find(Node read, const passes_internal::FusableNodes& fusable,
              const passes_internal::Regions& branches) {
      constexpr size_t kMaxNodes = 256;
      const int branch = branches.of(read);
      if (branches.of(read.control(0)) != branch) return false;
      std::set<Node> passed;
      std::vector<Node> pending = {read};
      while (!pending.empty()) {
        const Node node = pending.back();
        pending.pop_back();
        for (const Use& use : node.uses()) {
          if (branches.of(use.node) != branch ||
              passes_internal::Regions::IsControlFlow(use.node) ||
              use.node.op() == "_Retval") {
            return false;
          }
          if (!use.is_control() && node == read) direct.insert(use.node);
          if (use.is_control() || !fusable.Has(use.node)) {
            ends.insert(use.node);
          } else if (passed.insert(use.node).second) {
            pending.push_back(use.node);
          }
        }
        if (passed.size() + ends.size() > kMaxNodes) return false;
      }
      return true;
    }
  };

  // Returns whether the read gives what its control input has assigned.
  static bool IsAssigned(Node read) {
    if (read.num_controls() != 1 || read.num_inputs() != 1) return false;
    const Node assign = read.control(0);
    const Output handle = read.input(0);
    return assign && assign.op() == "AssignVariableOp" &&
           assign.num_inputs() == 2 && handle && handle == assign.input(0) &&
           assign.device() == read.device() && assign.input(1) &&
           assign.HasAttr("dtype") &&
           assign.RawAttr("dtype") == read.RawAttr("dtype");
  }

  // Removes a node that nothing uses.
  static absl::Status Remove(Graph& graph, Node node, bool is_preserved) {
    if (!is_preserved) return graph.RemoveNode(node);
    for (const auto& [name, value] : node.GetAttrs()) {
      node.RemoveAttr(std::string(name));
    }
    node.SetOp("NoOp");
    return node.SetInputs({});
  }

  static absl::Status Forward(Node read, const Uses& uses) {
    const Node assign = read.control(0);
    const Output value = assign.input(1);
    for (const Node end : uses.ends) {
      TFPLUG_RETURN_IF_ERROR(end.AddControl(assign));
      TFPLUG_RETURN_IF_ERROR(end.RemoveControl(read));
    }
    for (const Node user : uses.direct) {
      for (int i = 0; i < user.num_inputs(); ++i) {
        if (user.input(i).node != read) continue;
        TFPLUG_RETURN_IF_ERROR(user.SetInput(i, value));
      }
    }
    return absl::OkStatus();
  }

  // Returns a text that only equal nodes have; "" if it would be long.
  static std::string KeyOf(Node node) {
    constexpr size_t kMaxBytes = 2048;
    std::string key = absl::StrCat(node.op(), "\n", node.device());
    for (const Input& input : node.inputs()) {
      if (!input.from) return "";
      absl::StrAppend(&key, "\n", input.from.node.id(), ":", input.from.port);
    }
    std::vector<uint32_t> controls;
    for (const Node control : node.controls()) {
      if (!control) return "";
      controls.push_back(control.id());
    }
    std::sort(controls.begin(), controls.end());
    for (const uint32_t control : controls) {
      absl::StrAppend(&key, "\n^", control);
    }
    auto attrs = node.GetAttrs();
    std::sort(attrs.begin(), attrs.end());
    for (const auto& [name, value] : attrs) {
      if (value.size() > kMaxBytes) return "";
      absl::StrAppend(&key, "\n", name, " ", value.size(), " ", value);
    }
    return key.size() > kMaxBytes ? "" : key;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_REUSE_VARIABLE_VALUES_H_
