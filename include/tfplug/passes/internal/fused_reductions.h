// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_REDUCTIONS_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_REDUCTIONS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/ir/value.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/fused_cluster.h"
#include "tfplug/passes/internal/fused_users.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/passes/internal/replace_pair.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Fuses reductions with the element-wise ops before them, whose value nothing
// else uses, or with the only cluster that uses them. No cycle can be created: all paths from
// the ops before a reduction lead through it.
//
// A reduction after a cluster must reduce the last dimension. On a CPU, other
// reductions traverse memory in large steps, which takes longer if they
// read all inputs of the op than if they read its value.
class FusedReductions {
 public:
  // Finds the reductions before the graph is changed. Calls log(reduction,
  // user, reason) for each that could be fused with its users but for the
  // reason.
  template <class Log>
  FusedReductions(Graph& graph, const PassContext& context,
                  const FusableNodes& nodes, const Regions& regions, Log log)
      : graph_(graph),
        context_(context),
        nodes_(nodes),
        users_(graph, context, nodes) {
    if (!context.HasKernel(kFusedReduceOp)) return;
    const kernel_internal::KernelSet kernels(context.device_type());
    for (const char* op : kOps) {
      if (!graph.has_op(op)) continue;
      for (const Node node : graph.nodes(op)) {
        if (!IsFusable(node, kernels)) continue;
        if (HasOwnInput(node, regions)) before_.push_back(node);
        const Node user = users_.Any(node);
        if (!user) continue;
        const char* const reason = users_.WhyNot(node, regions);
        if (reason == nullptr) {
          after_.push_back(node);
        } else {
          log(node, user, reason);
        }
      }
    }
  }

  // Returns whether the graph has a reduction.
  static bool MayBeIn(const Graph& graph) {
    return std::any_of(std::begin(kOps), std::end(kOps),
                       [&](const char* op) { return graph.has_op(op); });
  }

  // Replaces them, after the clusters were replaced. Calls log(reduction, user,
  // reason) for each that is not fused with its users, and log_fused(new node,
  // "before" or "after") for each new node.
  template <class Log, class LogFused>
  absl::Status Replace(Log log, LogFused log_fused) {
    for (const Node reduction : before_) {
      Node map = reduction.input(0).node;
      if (map.op() != kFusedMapOp) {  // a cluster of one op
        TFPLUG_ASSIGN_OR_RETURN(
            map, FusedCluster(graph_, context_, nodes_, {map}).Replace());
      }
      if (!map || !IsOnlyUse(map) || NumOutputs(map) != 1) continue;
      TFPLUG_ASSIGN_OR_RETURN(const Node fused, FuseBefore(map, reduction));
      for (Node& node : after_) {
        if (node == reduction) node = fused;
      }
      log_fused(fused, "before");
    }
    for (const Node reduction : after_) {
      TFPLUG_ASSIGN_OR_RETURN(const Node map, users_.Find(reduction, log));
      if (!map) continue;
      if (reduction.num_inputs() + map.num_inputs() + NumOutputs(map) >
          kMaxOperands) {
        log(reduction, map, "one op would have too many operands");
        continue;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node fused, FuseAfter(reduction, map));
      log_fused(fused, "after");
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kOps[] = {"Sum", "Mean", "Prod", "Max",
                                         "Min", "All",  "Any"};
  static constexpr int kMaxOperands = 16;

  static bool IsOnlyUse(Node node) {
    int count = 0;
    for (const Use& use : node.uses()) count += use.is_control() ? 2 : 1;
    return count == 1;
  }

  bool ReducesLast(Node reduction, const PartialShape& shape) const {
    const Node axes = reduction.input(1).node;
    if (!axes || axes.op() != "Const") return false;
    const auto constant = context_.ReadConstant(axes);
    if (!constant.ok()) return false;
    const auto has_last = [&](const auto& list) {
      return list.ok() &&
             std::any_of(list->begin(), list->end(), [&](int64_t axis) {
               return axis == -1 ||
                      (shape.has_rank() && axis == shape.rank() - 1);
             });
    };
    return constant->dtype() == DataType::kInt64
               ? has_last(constant->GetElements<int64_t>())
               : has_last(constant->GetElements<int32_t>());
  }

  // Returns whether the kernel of the reduction is made from primitives, because
  // the author has registered none.
  bool IsFusable(Node node, const kernel_internal::KernelSet& kernels) const {
    if (!context_.IsOnDevice(node.device()) || node.HasAttr("_kernel")) {
      return false;
    }
    const kernel_internal::TypeAttr type("T", TypeOf(node));
    return !kernels.HasAuthors(
        node.op(), absl::MakeConstSpan(&type, node.HasAttr("T") ? 1 : 0));
  }
  // Returns whether nothing else uses the element-wise op that is reduced.
  bool HasOwnInput(Node node, const Regions& regions) const {
    const Output from = node.input(0);
    return from && nodes_.Has(from.node) && IsOnlyUse(from.node) &&
           from.node.device() == node.device() &&
           regions.of(from.node) == regions.of(node) &&
           !context_.IsPreserved(node.name()) &&
           ReducesLast(node, nodes_.ShapeOf(from.node));
  }
  static int NumOutputs(Node map) {
    return static_cast<int>(map.GetAttr<std::vector<DataType>>("Tout")->size());
  }
  static DataType TypeOf(Node reduction) {
    return reduction.GetAttr<DataType>("T").value_or(DataType::kBool);
  }

  absl::StatusOr<Node> AddFused(Node named_like, const char* suffix) {
    TFPLUG_ASSIGN_OR_RETURN(const Node fused,
                            graph_.AddNode(graph_.UniqueName(absl::StrCat(
                                               named_like.name(), suffix)),
                                           kFusedReduceOp));
    fused.SetDevice(named_like.device());
    return fused;
  }
  static void CopyMap(Node from, Node fused) {
    fused.SetAttr("Tin", *from.GetAttr<std::vector<DataType>>("Tin"));
    fused.SetAttr("expression", *from.GetAttr<std::string>("expression"));
    fused.SetAttr("checks", *from.GetAttr<std::vector<int64_t>>("checks"));
  }
  // Sets the attributes of a cluster that only copies its input.
  static absl::Status SetCopy(DataType type, Node fused,
                              const FusedMapAttrs& names) {
    TFPLUG_ASSIGN_OR_RETURN(const Expression copy, CastExpression(type, type));
    fused.SetAttr(names.expression, Serialize(copy));
    fused.SetAttr(names.checks, std::vector<int64_t>());
    return absl::OkStatus();
  }
  static void SetReduction(Node reduction, Node fused) {
    fused.SetAttr("reduce", reduction.GetAttr<std::string>("reduce").value_or(
                                std::string(reduction.op())));
    fused.SetAttr("T", TypeOf(reduction));
    fused.SetAttr(
        "Tidx", reduction.GetAttr<DataType>("Tidx").value_or(DataType::kInt32));
    fused.SetAttr("keep_dims",
                  reduction.GetAttr<bool>("keep_dims").value_or(false));
  }

  // Return an op in the place of the reduction and of the ops before it, which
  // have been removed, or of those after it.
  absl::StatusOr<Node> FuseBefore(Node map, Node reduction) {
    TFPLUG_ASSIGN_OR_RETURN(const Node fused, AddFused(reduction, "/fused"));
    std::vector<Output> inputs;
    for (const Input& input : map.inputs()) inputs.push_back(input.from);
    inputs.push_back(reduction.input(1));
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs));
    SetReduction(reduction, fused);
    CopyMap(map, fused);
    fused.SetAttr("Tout", std::vector<DataType>{TypeOf(reduction)});
    fused.SetAttr(kAfterReduceAttrs.types, std::vector<DataType>());
    TFPLUG_RETURN_IF_ERROR(
        SetCopy(TypeOf(reduction), fused, kAfterReduceAttrs));
    TFPLUG_RETURN_IF_ERROR(
        ReplacePair(graph_, context_, map, reduction, fused));
    TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(map));
    return fused;
  }
  absl::StatusOr<Node> FuseAfter(Node reduction, Node map) {
    TFPLUG_ASSIGN_OR_RETURN(const Node fused, AddFused(map, "/reduce"));
    std::vector<Output> inputs;
    for (const Input& input : reduction.inputs()) inputs.push_back(input.from);
    SetReduction(reduction, fused);
    if (reduction.op() == kFusedReduceOp) {
      CopyMap(reduction, fused);
    } else {
      fused.SetAttr("Tin", std::vector<DataType>{TypeOf(reduction)});
      TFPLUG_RETURN_IF_ERROR(SetCopy(TypeOf(reduction), fused, kFusedMapAttrs));
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const std::vector<Output> others,
        FusedUsers::SetCluster(FusedUsers::IndexOf(reduction, map), map, fused,
                               kAfterReduceAttrs));
    inputs.insert(inputs.end(), others.begin(), others.end());
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs));
    TFPLUG_RETURN_IF_ERROR(
        ReplacePair(graph_, context_, reduction, map, fused));
    TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(reduction));
    return fused;
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
  const FusedUsers users_;
  std::vector<Node> before_, after_;  // a node can be in both
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_REDUCTIONS_H_
