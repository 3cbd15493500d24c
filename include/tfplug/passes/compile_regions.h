// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_COMPILE_REGIONS_H_
#define TFPLUG_PASSES_COMPILE_REGIONS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/passes/internal/clusters.h"
#include "tfplug/passes/internal/region_builder.h"
#include "tfplug/passes/internal/region_nodes.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Collapses nodes on the device into regions: each is one op, whose kernel
// runs the nodes' kernels one after the other, without TensorFlow's executor.
// Results are the same, bit by bit.
//
// In a region are nodes whose kernel tfplug makes from the backend's
// primitives, or an author's that is a BackendKernel (op_kernels/op_run.h), and
// whose results depend on their inputs only. They run in the
// same branches and iterations of loops; the order of control edges is kept. A
// region is as large as possible: nodes that are not connected are in it, too,
// if no path leads from it through another node back into it. Constants in host
// memory, such as axes, become a part of it. Left out are nodes that must be
// preserved, variables, ops with a state, kernels of the library's author,
// asynchronous kernels, strings, lists, and ops that a loop's counter reaches.
//
// Errors and profiles name the nodes. Runs last for each device type of a
// plug-in whose backend has RegionOps, if the environment variable
// TFPLUG_REGIONS is on. If TFPLUG_LOG_REGIONS is, too, the pass logs each region,
// the nodes at which it ends, and why others are in none (LogRegions).
class CompileRegions : public GraphPass {
 public:
  static bool IsEnabled() { return AreRegionsEnabled(); }

  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasKernel(kRegionOp)) return absl::OkStatus();
    passes_internal::RegionNodes nodes(graph, context);
    std::vector<std::vector<Node>> regions;
    if (nodes.has_any()) {
      TFPLUG_ASSIGN_OR_RETURN(regions, Find(graph, context, nodes));
    }
    std::vector<Node> made;
    for (std::vector<Node>& members : regions) {
      const size_t size = members.size();
      TFPLUG_ASSIGN_OR_RETURN(const Node region,
                              passes_internal::RegionBuilder(
                                  graph, context, nodes, std::move(members))
                                  .Replace());
      if (!region) continue;
      made.push_back(region);
      if (AreRegionsLogged()) {
        LogRegions(absl::StrCat("the region '", region.name(), "' runs ", size,
                                " nodes (", region.num_inputs(), " inputs)"));
      }
    }
    if (AreRegionsLogged()) {
      LogEnds(graph, made);
      LogLeftOut(graph, context, nodes);
    }
    return absl::OkStatus();
  }

 private:
  // Returns the members of each region, in topological order.
  static absl::StatusOr<std::vector<std::vector<Node>>> Find(
      Graph& graph, const PassContext& context,
      passes_internal::RegionNodes& nodes) {
    std::vector<std::vector<Node>> regions;
    const auto order = graph.TopologicalOrder();
    // A graph with a cycle is left to TensorFlow.
    if (!order.ok()) return regions;
    const passes_internal::Regions branches(graph, *order);
    for (const Node node : *order) {
      if (node.op() != "Const" || context.IsPreserved(node.name())) continue;
      TFPLUG_RETURN_IF_ERROR(MoveControls(node, nodes, branches));
    }
    nodes.SetBranches(&branches);
    nodes.LeaveOutVarying(*order);
    const auto can_join = [&](const Output& from, Node to) {
      return nodes.CanJoin(from, to);
    };
    const passes_internal::Clusters<decltype(can_join), true> stages(
        graph, *order, branches, can_join);
    // The members so far, by stage, branch, what they wait for, and device.
    std::map<std::tuple<int, int, int, absl::string_view>, std::vector<Node>>
        all;
    for (const Node node : *order) {
      if (!nodes.Has(node)) continue;
      auto& members = all[{stages.stage(node), branches.of(node),
                           branches.waits(node), node.device()}];
      members.push_back(node);
      // No edge leads back from the nodes that follow.
      if (members.size() == kMaxMembers) {
        regions.push_back(std::exchange(members, {}));
      }
    }
    nodes.SetBranches(nullptr);
    for (auto& [key, members] : all) {
      if (members.size() > 1) regions.push_back(std::move(members));
    }
    return regions;
  }
  // Moves the control inputs of a constant to its users: TensorFlow's rewriters
  // order a constant that they compute after what it depended on, and a path
  // through it would divide a region. The order of all other nodes is the same.
  static absl::Status MoveControls(Node constant,
                                   const passes_internal::RegionNodes& nodes,
                                   const passes_internal::Regions& branches) {
    std::vector<Node> controls, users;
    bool divides = false;
    for (const Node control : constant.controls()) {
      if (!control) return absl::OkStatus();
      controls.push_back(control);
      divides |= nodes.Has(control);
    }
    if (!divides || branches.of(constant) != branches.kAlways) {
      return absl::OkStatus();
    }
    for (const Use& use : constant.uses()) {
      if (branches.of(use.node) != branches.kAlways ||
          branches.IsControlFlow(use.node) || use.node.op() == "_Retval") {
        return absl::OkStatus();
      }
      users.push_back(use.node);
    }
    constexpr size_t kMostEdges = 256;
    if (controls.size() * users.size() > kMostEdges) return absl::OkStatus();
    for (const Node control : controls) {
      for (const Node user : users) {
        TFPLUG_RETURN_IF_ERROR(user.AddControl(control));
      }
      TFPLUG_RETURN_IF_ERROR(constant.RemoveControl(control));
    }
    return absl::OkStatus();
  }

  // Leaves room for arguments and results below kMaxRegionNodes.
  static constexpr size_t kMaxMembers = 1000;

  // Logs the nodes after a region whose results another region needs: the two
  // would be one without them.
  static void LogEnds(Graph& graph, const std::vector<Node>& regions) {
    const auto order = graph.TopologicalOrder();
    if (!order.ok()) return;
    // The nodes on which a region depends.
    std::vector<bool> is_needed(graph.max_id());
    for (size_t i = order->size(); i-- > 0;) {
      const Node node = (*order)[i];
      for (const Use& use : node.uses()) {
        if (use.node.op() == kRegionOp || is_needed[use.node.id()]) {
          is_needed[node.id()] = true;
        }
      }
    }
    for (const Node region : regions) {
      std::map<std::string, std::set<std::string>> ends;  // by op
      for (const Use& use : region.uses()) {
        if (use.node.op() == kRegionOp || !is_needed[use.node.id()]) continue;
        ends[std::string(use.node.op())].emplace(use.node.name());
      }
      for (const auto& [op, names] : ends) {
        LogRegions(absl::StrCat("the region '", region.name(), "' ends at '",
                                *names.begin(), "' (", op, ") and ",
                                names.size() - 1,
                                " others, which another region needs"));
      }
    }
  }
  static void LogLeftOut(const Graph& graph, const PassContext& context,
                         const passes_internal::RegionNodes& nodes) {
    for (const Node node : graph.nodes()) {
      // Nodes that compute nothing need no reason.
      if (!context.IsOnDevice(node.device()) || node.op() == kRegionOp ||
          node.op() == "_Arg" || node.op() == "_Retval" ||
          node.op() == "NoOp") {
        continue;
      }
      LogRegions(absl::StrCat(
          "'", node.name(), "' (", node.op(), ") is in no region: ",
          nodes.Has(node) ? "no other node can be in a region with it"
                          : nodes.WhyNot(node)));
    }
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_COMPILE_REGIONS_H_
