// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_MATMULS_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_MATMULS_H_

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
#include "tfplug/base/status_macros.h"
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

// The matrix products that only the ops of one cluster use. No cycle can be
// created: all paths from the product lead through the cluster.
class FusedMatMuls {
 public:
  // Finds the products before the graph is changed. Calls log(product, user,
  // reason) for each that could be fused but for the reason.
  template <class Log>
  FusedMatMuls(Graph& graph, const PassContext& context,
               const FusableNodes& nodes, const Regions& regions, Log log)
      : graph_(graph), context_(context), nodes_(nodes) {
    if (!context.HasKernel(kFusedMatMulOp)) return;
    const KernelSet kernels(context.device_type());
    for (const char* op : kOps) {
      if (!graph.has_op(op)) continue;
      for (const Node node : graph.nodes(op)) {
        Node user;
        for (const Use& use : node.uses()) {
          if (!use.is_control() && nodes.Has(use.node)) user = use.node;
        }
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

  // Whether the graph has a product.
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
      Node user;
      bool is_one = true;
      for (const Use& use : product.uses()) {
        is_one = is_one && (!user || user == use.node);
        user = use.node;
      }
      if (!is_one) {
        log(product, user, "it has several users, which are not one cluster");
        continue;
      }
      if (IsFusable(user)) {  // a cluster of one op
        const std::vector<Node> members = {user};
        TFPLUG_ASSIGN_OR_RETURN(
            const Node map,
            FusedCluster(graph_, context_, nodes_, members).Replace());
        if (!map) continue;  // nothing uses it
        user = map;
      }
      if (user.op() != kFusedMapOp) {
        log(product, user, "its user is fused with something else");
        continue;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node fused, Fuse(product, user));
      log_fused(fused, product);
      TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(product));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr const char* kOps[] = {"MatMul", "BatchMatMulV2"};

  // Returns null if the product can be fused with its users, and otherwise the
  // reason.
  const char* WhyNot(Node node, const KernelSet& kernels,
                     const Regions& regions) const {
    const DataType type = node.GetAttr<DataType>("T").value_or(DataType(0));
    if (type != DataType::kFloat && type != DataType::kHalf &&
        type != DataType::kBfloat16 && type != DataType::kDouble) {
      return "it is not of real numbers";
    }
    // The author's kernel wins over the one made from primitives.
    const TypeAttr attr("T", type);
    if (node.HasAttr("_kernel") ||
        kernels.HasAuthors(node.op(), absl::MakeConstSpan(&attr, 1))) {
      return "it has a kernel of its own";
    }
    if (context_.IsPreserved(node.name())) return "its value is fetched";
    for (const Use& use : node.uses()) {
      if (use.is_control() || !nodes_.Has(use.node)) {
        return "other nodes use it as well";
      }
      if (use.node.device() != node.device()) return "they are on two devices";
      if (regions.of(use.node) != regions.of(node)) {
        return "they run in different branches or loops";
      }
      if (AreDifferent(nodes_.ShapeOf(node), nodes_.ShapeOf(use.node))) {
        return "its input is broadcast";
      }
    }
    return nullptr;
  }

  // Whether the node is one of the fusable ones. New nodes may have the ids of
  // those that were replaced.
  bool IsFusable(Node node) const {
    return nodes_.Has(node) && node.op() == nodes_.row(node).op;
  }

  // Replaces the map.
  absl::StatusOr<Node> Fuse(Node product, Node map) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Node fused,
        graph_.AddNode(graph_.UniqueName(absl::StrCat(map.name(), "/matmul")),
                       kFusedMatMulOp));
    fused.SetDevice(map.device());
    auto types = *map.GetAttr<std::vector<DataType>>("Tin");
    std::vector<Output> inputs = {product.input(0), product.input(1)};
    int64_t position = 0;
    for (const Input& input : map.inputs()) {
      if (input.from.node == product) {
        position = input.index;
      } else {
        inputs.push_back(input.from);
      }
    }
    types.erase(types.begin() + position);
    TFPLUG_RETURN_IF_ERROR(fused.SetInputs(inputs));
    TFPLUG_RETURN_IF_ERROR(SetSteps(map, position, fused));
    const bool is_batch = product.op() != "MatMul";
    const auto get = [&](const char* name) {
      return product.GetAttr<bool>(name).value_or(false);
    };
    fused.SetAttr("T", *product.GetAttr<DataType>("T"));
    fused.SetAttr("Tin", types);
    fused.SetAttr("Tout", *map.GetAttr<std::vector<DataType>>("Tout"));
    fused.SetAttr("is_batch", is_batch);
    fused.SetAttr("transpose_a", get(is_batch ? "adj_x" : "transpose_a"));
    fused.SetAttr("transpose_b", get(is_batch ? "adj_y" : "transpose_b"));
    TFPLUG_RETURN_IF_ERROR(ReplacePair(graph_, context_, product, map, fused));
    return fused;
  }

  // Sets the map's steps and results, whose input `position` becomes the first.
  static absl::Status SetSteps(Node map, int64_t position, Node fused) {
    const auto moved = [&](int64_t value) {
      return value == position ? 0 : value < position ? value + 1 : value;
    };
    auto steps = *map.GetAttr<std::vector<std::string>>("steps");
    for (std::string& text : steps) {
      TFPLUG_ASSIGN_OR_RETURN(FusedMap::Step step, FusedMap::ParseStep(text));
      for (int& arg : step.args) arg = static_cast<int>(moved(arg));
      text = FusedMap::ToText(step);
    }
    auto results = *map.GetAttr<std::vector<int64_t>>("results");
    for (int64_t& result : results) result = moved(result);
    fused.SetAttr("steps", steps);
    fused.SetAttr("results", results);
    return absl::OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  const FusableNodes& nodes_;
  std::vector<Node> products_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_MATMULS_H_
