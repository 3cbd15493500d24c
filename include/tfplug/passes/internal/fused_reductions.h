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
#include "tfplug/kernel/fused_map.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/fused_cluster.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/passes/internal/replace_pair.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The reductions of element-wise ops whose value nothing else uses. No cycle
// can be created: all paths from such an op lead through the reduction.
//
// The last dimension must be among the reduced ones. On a CPU, other reductions
// traverse memory in large steps, which takes longer if they read all inputs of
// the op than if they read its value.
class FusedReductions {
 public:
  // Finds the reductions before the graph is changed.
  FusedReductions(Graph& graph, const PassContext& context,
                  const FusableNodes& nodes, const Regions& regions)
      : graph_(graph), context_(context), nodes_(nodes) {
    if (!context.HasKernel(kFusedReduceOp)) return;
    const KernelSet kernels(context.device_type());
    for (const char* op : kOps) {
      if (!graph.has_op(op)) continue;
      for (const Node node : graph.nodes(op)) {
        if (CanFuse(node, kernels, regions)) reductions_.push_back(node);
      }
    }
  }

  // Whether the graph has a reduction.
  static bool MayBeIn(const Graph& graph) {
    return std::any_of(std::begin(kOps), std::end(kOps),
                       [&](const char* op) { return graph.has_op(op); });
  }

  // Replaces them, after the clusters were replaced. Calls log(node) for each
  // new node.
  template <class Log>
  absl::Status Replace(Log log) {
    for (const Node reduction : reductions_) {
      Node map = reduction.input(0).node;
      if (map.op() != kFusedMapOp) {  // a cluster of one op
        TFPLUG_ASSIGN_OR_RETURN(
            map, FusedCluster(graph_, context_, nodes_, {map}).Replace());
      }
      if (!map || !IsOnlyUse(map) || !HasOneResult(map)) continue;
      TFPLUG_ASSIGN_OR_RETURN(const Node fused, Fuse(map, reduction));
      log(fused);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kOps[] = {"Sum", "Mean", "Prod", "Max",
                                         "Min", "All",  "Any"};

  static bool IsOnlyUse(Node node) {
    int count = 0;
    for (const Use& use : node.uses()) count += use.is_control() ? 2 : 1;
    return count == 1;
  }

  static bool ReducesLast(Node reduction, const PartialShape& shape) {
    const Node axes = reduction.input(1).node;
    if (!axes || axes.op() != "Const") return false;
    const auto constant = Constant::Read(axes);
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

  bool CanFuse(Node node, const KernelSet& kernels,
               const Regions& regions) const {
    const Output from = node.input(0);
    if (!from || !nodes_.Has(from.node) || !IsOnlyUse(from.node) ||
        from.node.device() != node.device() ||
        regions.of(from.node) != regions.of(node) ||
        context_.IsPreserved(node.name()) || node.HasAttr("_kernel") ||
        !ReducesLast(node, nodes_.ShapeOf(from.node))) {
      return false;
    }
    // The author's kernel wins over the one made from primitives.
    const TypeAttr type("T", nodes_.OutputType(from.node));
    return !kernels.HasAuthors(
        node.op(), absl::MakeConstSpan(&type, node.HasAttr("T") ? 1 : 0));
  }

  // Whether the op has one result, which depends on an input.
  static bool HasOneResult(Node map) {
    const auto types = map.GetAttr<std::vector<DataType>>("Tin");
    const auto steps = map.GetAttr<std::vector<std::string>>("steps");
    const auto results = map.GetAttr<std::vector<int64_t>>("results");
    if (!types.ok() || !steps.ok() || !results.ok() || results->size() != 1) {
      return false;
    }
    const auto first = static_cast<int64_t>(types->size());
    std::vector<int64_t> needed = {(*results)[0]};
    while (!needed.empty()) {
      const int64_t value = needed.back();
      needed.pop_back();
      if (value < first) return true;
      const auto step =
          FusedMap::ParseStep((*steps)[static_cast<size_t>(value - first)]);
      if (!step.ok()) return false;
      needed.insert(needed.end(), step->args.begin(), step->args.end());
    }
    return false;
  }

  absl::StatusOr<Node> Fuse(Node map, Node reduction) {
    TFPLUG_ASSIGN_OR_RETURN(const Node fused,
                            graph_.AddNode(graph_.UniqueName(absl::StrCat(
                                               reduction.name(), "/fused")),
                                           kFusedReduceOp));
    fused.SetDevice(reduction.device());
    std::vector<Output> inputs;
    for (const Input& input : map.inputs()) inputs.push_back(input.from);
    inputs.push_back(reduction.input(1));
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs));
    fused.SetAttr("Tin", *map.GetAttr<std::vector<DataType>>("Tin"));
    fused.SetAttr("steps", *map.GetAttr<std::vector<std::string>>("steps"));
    fused.SetAttr("results", *map.GetAttr<std::vector<int64_t>>("results"));
    fused.SetAttr("reduce", std::string(reduction.op()));
    fused.SetAttr("T", (*map.GetAttr<std::vector<DataType>>("Tout"))[0]);
    fused.SetAttr(
        "Tidx", reduction.GetAttr<DataType>("Tidx").value_or(DataType::kInt32));
    fused.SetAttr("keep_dims",
                  reduction.GetAttr<bool>("keep_dims").value_or(false));
    TFPLUG_RETURN_IF_ERROR(
        ReplacePair(graph_, context_, map, reduction, fused));
    TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(map));
    return fused;
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
  std::vector<Node> reductions_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_REDUCTIONS_H_
