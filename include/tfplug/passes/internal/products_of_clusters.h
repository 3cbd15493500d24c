// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_PRODUCTS_OF_CLUSTERS_H_
#define TFPLUG_PASSES_INTERNAL_PRODUCTS_OF_CLUSTERS_H_

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/fused_users.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/passes/internal/replace_pair.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// The matrix products that only the ops of one cluster use.
class FusedMatMuls {
 public:
  // Finds the products before the graph is changed. Calls log(product, user,
  // reason) for each that could be fused but for the reason.
  template <class Log>
  FusedMatMuls(Graph& graph, const PassContext& context,
               const FusableNodes& nodes, const Regions& regions, Log log)
      : graph_(graph), context_(context), users_(graph, context, nodes) {
    if (!context.HasKernel(kFusedMatMulOp)) return;
    const kernel_internal::KernelSet kernels(context.device_type());
    for (const char* op : kOps) {
      if (!graph.has_op(op)) continue;
      for (const Node node : graph.nodes(op)) {
        const Node user = users_.Any(node);
        if (!user || !context.IsOnDevice(node.device())) continue;
        const char* const reason = WhyNot(node, kernels, regions);
        if (reason == nullptr) {
          products_.push_back(node);
        } else {
          log(node, user, reason);
        }
      }
    }
  }

  // Returns whether the graph has a product.
  static bool MayBeIn(const Graph& graph) {
    return std::any_of(std::begin(kOps), std::end(kOps),
                       [&](const char* op) { return graph.has_op(op); });
  }

  // Replaces the products, after the clusters and reductions were replaced.
  // Calls log(product, user, reason) for each that is not fused, and
  // log_fused(new node, product) for each other one, before it is removed.
  template <class Log, class LogFused>
  absl::Status Replace(Log log, LogFused log_fused) {
    for (const Node product : products_) {
      TFPLUG_ASSIGN_OR_RETURN(const Node map, users_.Find(product, log));
      if (!map) continue;
      TFPLUG_ASSIGN_OR_RETURN(const Node fused, Fuse(product, map));
      log_fused(fused, product);
      TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(product));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kOps[] = {"MatMul", "BatchMatMulV2"};

  // Returns null if the product can be fused with its users, and otherwise the
  // reason.
  const char* WhyNot(Node node, const kernel_internal::KernelSet& kernels,
                     const Regions& regions) const {
    const DataType type = node.GetAttr<DataType>("T").value_or(DataType(0));
    if (type != DataType::kFloat && type != DataType::kHalf &&
        type != DataType::kBfloat16 && type != DataType::kDouble) {
      return "it is not of real numbers";
    }
    // The author's kernel wins over the one made from primitives.
    const kernel_internal::TypeAttr attr("T", type);
    if (node.HasAttr("_kernel") ||
        kernels.HasAuthors(node.op(), absl::MakeConstSpan(&attr, 1))) {
      return "it has a kernel of its own";
    }
    return users_.WhyNot(node, regions);
  }

  // Replaces the map.
  absl::StatusOr<Node> Fuse(Node product, Node map) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Node fused,
        graph_.AddNode(graph_.UniqueName(absl::StrCat(map.name(), "/matmul")),
                       kFusedMatMulOp));
    fused.SetDevice(map.device());
    TFPLUG_ASSIGN_OR_RETURN(
        const std::vector<Output> others,
        FusedUsers::SetCluster(FusedUsers::IndexOf(product, map), map, fused,
                               kFusedMapAttrs));
    std::vector<Output> inputs = {product.input(0), product.input(1)};
    inputs.insert(inputs.end(), others.begin(), others.end());
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs));
    const bool is_batch = product.op() != "MatMul";
    const auto get = [&](const char* name) {
      return product.GetAttr<bool>(name).value_or(false);
    };
    fused.SetAttr("T", *product.GetAttr<DataType>("T"));
    fused.SetAttr("is_batch", is_batch);
    fused.SetAttr("transpose_a", get(is_batch ? "adj_x" : "transpose_a"));
    fused.SetAttr("transpose_b", get(is_batch ? "adj_y" : "transpose_b"));
    TFPLUG_RETURN_IF_ERROR(ReplacePair(graph_, context_, product, map, fused));
    return fused;
  }

  Graph& graph_;
  const PassContext& context_;
  const FusedUsers users_;
  std::vector<Node> products_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PRODUCTS_OF_CLUSTERS_H_
