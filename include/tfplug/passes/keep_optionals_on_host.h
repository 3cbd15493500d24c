// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_KEEP_OPTIONALS_ON_HOST_H_
#define TFPLUG_PASSES_KEEP_OPTIONALS_ON_HOST_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/stream_copy_ops.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/variant_values.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Keeps loops over datasets, such as Keras' with `steps_per_execution`, from
// waiting for the device in each iteration. The ops of iterators and optionals
// run on the CPU, but TensorFlow places what carries an optional to the next
// iteration or into a branch on the loop's device. Each optional that is read
// is then copied to the CPU, and for each control edge from the device to the
// CPU TensorFlow copies an empty constant; a copy waits for all kernels before
// it.
//
// * Nodes that only carry optionals (Enter, Merge, Switch, Identity, Exit,
//   NextIteration) move to the CPU, if all ops that make or read these
//   optionals run there. Arguments and results of the graph stay.
// * In a graph with optionals, a control edge from the CPU to the device
//   becomes the copy of an int32, which TensorFlow has in host memory on every
//   device. So does one from the device to the CPU if it only carries an
//   optional there or comes from a value in host memory, such as the condition
//   of a branch: others may be there to wait for kernels.
//
// Does not run in TensorFlow 2.17: see KeepConditionsOnHost.
class KeepOptionalsOnHost : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    const auto all = VariantValues::OnOptionals(graph);
    if (all.empty()) return absl::OkStatus();
    for (const auto& optionals : all) {
      if (std::all_of(optionals.others.begin(), optionals.others.end(),
                      [](Node node) {
                        return passes_internal::IsOnCpu(node) ||
                               node.op() == "_Arg" || node.op() == "_Retval";
                      })) {
        for (Node node : optionals.carriers) {
          if (context.IsOnDevice(node.device()) &&
              !context.IsPreserved(node.name())) {
            passes_internal::MoveToCpu(node);
          }
        }
      }
    }
    std::map<std::pair<Node, std::string>, std::vector<Node>> users_of;
    for (Node user : graph.nodes()) {
      for (int i = 0; i < user.num_controls(); ++i) {
        const Node from = user.control(i);
        if (!IsOrderOfHost(from, user, context)) continue;
        users_of[{from, std::string(user.device())}].push_back(user);
      }
    }
    for (const auto& [edge, users] : users_of) {
      TFPLUG_RETURN_IF_ERROR(OrderOnHost(graph, edge.first, users));
    }
    return absl::OkStatus();
  }

 private:
  using VariantValues = passes_internal::VariantValues;

  // NoOps and constants that TensorFlow may leave between a node and the one
  // that shows where it belongs.
  static constexpr int kMaxDepth = 3;

  static bool IsOrderOfHost(Node from, Node user, const PassContext& context) {
    if (passes_internal::IsOnCpu(from))
      return context.IsOnDevice(user.device());
    return context.IsOnDevice(from.device()) &&
           passes_internal::IsOnCpu(user) &&
           (OnlyCarriesVariants(user, kMaxDepth, context) ||
            IsInHostMemory(from, kMaxDepth));
  }
  static bool OnlyCarriesVariants(Node node, int depth,
                                  const PassContext& context) {
    if (VariantValues::Forwards(node.op())) {
      return TypeOf(node) == DataType::kVariant;
    }
    if (node.op() != "NoOp" || depth == 0 || node.num_uses() == 0 ||
        context.IsPreserved(node.name())) {
      return false;
    }
    for (const Use& use : node.uses()) {
      if (!OnlyCarriesVariants(use.node, depth - 1, context)) return false;
    }
    return true;
  }
  static bool IsInHostMemory(Node node, int depth) {
    if (node.op() == "Const" && depth > 0) {
      for (int i = 0; i < node.num_controls(); ++i) {
        if (!IsInHostMemory(node.control(i), depth - 1)) return false;
      }
      return true;
    }
    if (!VariantValues::Forwards(node.op())) return false;
    if (TypeOf(node) == DataType::kInt32) return true;
    // The condition of a branch, which tells that the branch was taken. A run of
    // CopyOnStream before may have put a copy between.
    const Output from = node.input(0);
    if (node.op() != "Identity" || !from || from.node.op() != "Switch") {
      return false;
    }
    const Output data = from.node.input(0), condition = from.node.input(1);
    return data == condition || (data && data.node.op() == kToDeviceOp &&
                                 data.node.input(0) == condition);
  }

  // Makes `users`, which are on one device, run after `from`, which is on
  // another one, by means of a value in host memory.
  static absl::Status OrderOnHost(Graph& graph, Node from,
                                  const std::vector<Node>& users) {
    const std::string name(from.name());
    TFPLUG_ASSIGN_OR_RETURN(
        Node done, graph.AddNode(graph.UniqueName(name + "/done"), "Const"));
    done.SetDevice(from.device());
    Constant::Of<int32_t>(Shape{}, {0}).Write(done);
    TFPLUG_RETURN_IF_ERROR(done.AddControl(from));
    TFPLUG_ASSIGN_OR_RETURN(
        Node seen, graph.AddNode(graph.UniqueName(name + "/seen"), "Identity"));
    seen.SetDevice(users.front().device());
    seen.SetAttr("T", DataType::kInt32);
    TFPLUG_RETURN_IF_ERROR(seen.AddInput(done));
    for (Node user : users) {
      TFPLUG_RETURN_IF_ERROR(user.RemoveControl(from));
      TFPLUG_RETURN_IF_ERROR(user.AddControl(seen));
    }
    return absl::OkStatus();
  }

  // Returns the type of what a node forwards; float if it has none.
  static DataType TypeOf(Node node) {
    return node.GetAttr<DataType>("T").value_or(DataType::kFloat);
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_KEEP_OPTIONALS_ON_HOST_H_
