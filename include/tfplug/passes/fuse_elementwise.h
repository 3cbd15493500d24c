// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSE_ELEMENTWISE_H_
#define TFPLUG_PASSES_FUSE_ELEMENTWISE_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/passes/internal/clusters.h"
#include "tfplug/passes/internal/disjoint_sets.h"
#include "tfplug/passes/internal/fusable_nodes.h"
#include "tfplug/passes/internal/fused_cluster.h"
#include "tfplug/passes/internal/fused_reductions.h"
#include "tfplug/passes/internal/products_of_clusters.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Replaces each cluster of element-wise ops on the device by one op, which the
// backend computes in one Map (op_kernels/fused_map.h). Results are the same:
// half, bfloat16 and narrow integers are rounded after each op, as in kernels
// of their own.
//
// A cluster, or a single op, whose only user is a reduction (Sum, Mean, Prod,
// Max, Min, All, Any) of at least the last dimension becomes a part of it. If
// it broadcasts an input, a sum or a product may be computed in another order,
// and differ in the last bits. A reduction that only the ops of one cluster, or
// a single op, use becomes one op with them: the backend computes the ops
// before and after it in the same Reduce.
//
// A matrix product (MatMul, BatchMatMulV2 of real numbers) that only the ops of
// one cluster, or a single op, use becomes a part of them: the backend computes
// both in one MatMulMap. Rules of the author's passes, such as FusionRules
// (passes/fusion_rules.h), run before and win.
//
// Two ops that are connected join a cluster if they are on the same device and
// run in the same branches and loops, and if nothing is known about their
// shapes that makes one of them smaller than the other. Intermediate values
// that other nodes use become outputs of the cluster. Left out are ops for
// which the library's author has registered a kernel, nodes that select a
// kernel by its label, ops that must be preserved, and ops on the host, such as
// most of int32.
//
// Runs for each device type of a plug-in that registers FusedMapOps, after the
// passes that replace ops and before CompileRegions, if
// OptimizerSettings::fuse_elementwise is true, the default. The environment
// variable TFPLUG_FUSION overrides the setting: off if it begins with 0, on
// otherwise.
// If TFPLUG_LOG_FUSION is set and does not begin with 0, the pass logs its
// decisions on stderr.
class FuseElementwise : public GraphPass {
 public:
  static bool IsEnabled(bool setting) {
    return internal::IsTurnedOn("TFPLUG_FUSION", setting);
  }

  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasKernel(kFusedMapOp)) return absl::OkStatus();
    passes_internal::FusableNodes nodes(graph, context);
    if (!nodes.has_edges() &&
        !passes_internal::FusedReductions::MayBeIn(graph) &&
        !passes_internal::FusedMatMuls::MayBeIn(graph)) {
      return absl::OkStatus();
    }
    std::vector<std::vector<Node>> clusters;
    std::optional<passes_internal::FusedReductions> reductions;
    std::optional<passes_internal::FusedMatMuls> products;
    {
      TFPLUG_ASSIGN_OR_RETURN(const NodeList order, graph.TopologicalOrder());
      passes_internal::Regions regions(graph, order);
      nodes.SetRegions(&regions);
      const auto can_join = [&](const Output& from, Node to) {
        return nodes.WhyNotJoined(from, to) == nullptr;
      };
      passes_internal::Clusters<decltype(can_join)> found(graph, order, regions,
                                                          can_join);
      for (const auto& cluster : found.Find()) {
        Split(graph, context, nodes, cluster, clusters);
      }
      reductions.emplace(graph, context, nodes, regions, LogNotFused);
      products.emplace(graph, context, nodes, regions, LogNotFused);
      if (internal::IsFusionLogged()) LogAlone(graph, nodes, clusters);
      nodes.SetRegions(nullptr);
    }
    for (const auto& cluster : clusters) {
      passes_internal::FusedCluster fused(graph, context, nodes, cluster);
      const std::string ops = internal::IsFusionLogged() ? OpsOf(cluster) : "";
      TFPLUG_ASSIGN_OR_RETURN(const Node node, fused.Replace());
      if (node && internal::IsFusionLogged()) Log(node, cluster.size(), ops);
    }
    TFPLUG_RETURN_IF_ERROR(reductions->Replace(LogNotFused, LogReduction));
    return products->Replace(LogNotFused, LogProduct);
  }

 private:
  // Appends a cluster, in parts that are not too large for one launch.
  static void Split(Graph& graph, const PassContext& context,
                    const passes_internal::FusableNodes& nodes,
                    const std::vector<Node>& cluster,
                    std::vector<std::vector<Node>>& to) {
    constexpr size_t kMaxOps = 64, kMaxOperands = 16;
    if (cluster.size() < 2) return;
    if (cluster.size() <= kMaxOps &&
        passes_internal::FusedCluster(graph, context, nodes, cluster)
                .num_operands() <= kMaxOperands) {
      to.push_back(cluster);
      return;
    }
    // No edge leads from the second half, in topological order, to the first.
    const auto middle = cluster.begin() + static_cast<int>(cluster.size() / 2);
    for (const auto& [begin, end] : {std::make_pair(cluster.begin(), middle),
                                     std::make_pair(middle, cluster.end())}) {
      for (const auto& part : Connected(nodes, std::vector<Node>(begin, end))) {
        Split(graph, context, nodes, part, to);
      }
    }
  }

  // Divides nodes, in topological order, into sets that are connected.
  static std::vector<std::vector<Node>> Connected(
      const passes_internal::FusableNodes& nodes,
      const std::vector<Node>& all) {
    std::map<uint32_t, size_t> indices;  // by node
    passes_internal::DisjointSets sets(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      indices[all[i].id()] = i;
      for (const Input& input : all[i].inputs()) {
        const auto from = indices.find(input.from.node.id());
        if (from != indices.end() &&
            nodes.WhyNotJoined(input.from, all[i]) == nullptr) {
          sets.Join(from->second, i);
        }
      }
    }
    std::map<size_t, std::vector<Node>> parts;
    for (size_t i = 0; i < all.size(); ++i) {
      parts[sets.RootOf(i)].push_back(all[i]);
    }
    std::vector<std::vector<Node>> result;
    result.reserve(parts.size());
    for (auto& [root, part] : parts) result.push_back(std::move(part));
    return result;
  }

  static std::string OpsOf(const std::vector<Node>& nodes) {
    std::string ops;
    for (const Node node : nodes) {
      absl::StrAppend(&ops, ops.empty() ? "" : ", ", node.op());
    }
    return ops;
  }
  static void Log(Node node, size_t num_ops, const std::string& ops) {
    const size_t num_outputs =
        node.GetAttr<std::vector<DataType>>("Tout")->size();
    std::fprintf(stderr,
                 "tfplug: fused %zu ops into '%s' (%d inputs, %zu outputs): "
                 "%s\n",
                 num_ops, std::string(node.name()).c_str(), node.num_inputs(),
                 num_outputs, ops.c_str());
  }

  static void LogReduction(Node node, const char* where) {
    if (!internal::IsFusionLogged()) return;
    std::fprintf(stderr,
                 "tfplug: fused a reduction (%s) and the ops %s it into '%s'\n",
                 node.GetAttr<std::string>("reduce").value_or("").c_str(),
                 where, std::string(node.name()).c_str());
  }

  static void LogProduct(Node node, Node product) {
    if (!internal::IsFusionLogged()) return;
    std::fprintf(
        stderr, "tfplug: fused '%s' (%s) and the ops after it into '%s'\n",
        std::string(product.name()).c_str(), std::string(product.op()).c_str(),
        std::string(node.name()).c_str());
  }

  // Logs why a node is not fused with its input.
  static void LogNotFused(Node from, Node to, const char* reason) {
    if (!internal::IsFusionLogged()) return;
    std::fprintf(stderr, "tfplug: '%s' (%s) is not fused with '%s' (%s): %s\n",
                 std::string(to.name()).c_str(), std::string(to.op()).c_str(),
                 std::string(from.name()).c_str(),
                 std::string(from.op()).c_str(), reason);
  }

  // Logs why nodes that could be fused are not fused with their inputs.
  static void LogAlone(Graph& graph, const passes_internal::FusableNodes& nodes,
                       const std::vector<std::vector<Node>>& clusters) {
    std::vector<size_t> cluster_of(graph.max_id(), clusters.size());
    for (size_t i = 0; i < clusters.size(); ++i) {
      for (Node node : clusters[i]) cluster_of[node.id()] = i;
    }
    for (const Node node : graph.nodes()) {
      if (!nodes.Has(node)) continue;
      for (const Input& input : node.inputs()) {
        const Node from = input.from.node;
        const size_t cluster = cluster_of[node.id()];
        if (!from || !nodes.Has(from) ||
            (cluster < clusters.size() && cluster == cluster_of[from.id()])) {
          continue;
        }
        const char* reason = nodes.WhyNotJoined(input.from, node);
        if (reason == nullptr) {
          reason =
              "a node between them cannot be fused, or the cluster would have "
              "too many operands";
        }
        LogNotFused(from, node, reason);
      }
    }
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FUSE_ELEMENTWISE_H_
