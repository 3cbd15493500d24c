// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_CLUSTERS_H_
#define TFPLUG_PASSES_INTERNAL_CLUSTERS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tfplug/graph/graph.h"
#include "tfplug/passes/internal/disjoint_sets.h"
#include "tfplug/passes/internal/regions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Partitions nodes into clusters that can each become one node without creating
// a cycle.
//
// Each node gets a stage, which does not decrease along an edge, and increases
// along an edge that cannot be inside of a cluster, and from what enters a loop to
// what leaves it. A cluster is a set of nodes
// of one stage that are connected by the other edges. A path that leaves a
// cluster thus never returns to it.
template <class CanJoin, bool kJoinsControls = false>
class Clusters {
 public:
  // Finds the clusters. bool can_join(Output from, Node to) tells whether an edge
  // can be inside of one. If kJoinsControls, it is called for control edges, too,
  // with the port kControl; otherwise they never are.
  Clusters(Graph& graph, const NodeList& order, const Regions& regions,
           CanJoin can_join)
      : order_(order),
        regions_(regions),
        can_join_(std::move(can_join)),
        stages_(graph.max_id()),
        sets_(graph.max_id()) {
    if (!SetStages()) {
      // No node can join another one.
      for (size_t i = 0; i < order_.size(); ++i) {
        StageOf(order_[i]) = static_cast<int>(i);
      }
      return;
    }
    for (size_t i = order_.size(); i-- > 0;) MoveToUsers(order_[i]);
    for (Node node : order_) Join(node);
  }

  // Returns the clusters of two and more nodes, each in topological order.
  std::vector<std::vector<Node>> Find() {
    std::map<size_t, size_t> indices;
    std::vector<std::vector<Node>> all, clusters;
    for (Node node : order_) {
      const auto [it, is_new] =
          indices.emplace(sets_.RootOf(node.id()), all.size());
      if (is_new) all.emplace_back();
      all[it->second].push_back(node);
    }
    for (auto& cluster : all) {
      if (cluster.size() > 1) clusters.push_back(std::move(cluster));
    }
    return clusters;
  }

  // Returns the stage of a node. All nodes of one stage could become one node,
  // connected or not.
  int stage(Node node) const { return stages_[node.id()]; }

 private:
  static bool ClosesLoop(Node from, Node to) {
    return (from.op() == "NextIteration" || from.op() == "RefNextIteration") &&
           (to.op() == "Merge" || to.op() == "RefMerge");
  }
  int& StageOf(Node node) { return stages_[node.id()]; }
  bool Joins(const Output& from, Node to) {
    return regions_.waits(from.node) == regions_.waits(to) &&
           can_join_(from, to);
  }
  bool JoinsControl(Node from, Node to) {
    return kJoinsControls && Joins({from, kControl}, to);
  }

  // Sets the first stage of each node. What leaves a loop comes after all that
  // enters it, from which it may come in a later iteration: the edges that close
  // loops are not in the order. Returns false if a loop enters itself.
  bool SetStages() {
    std::map<uint32_t, int> entered;  // the last stage of an Enter, by loop
    for (size_t round = 0; round <= entered.size() + 1; ++round) {
      bool is_last = true;
      for (Node node : order_) {
        SetStage(node);
        if (Regions::IsExit(node) && node.input(0)) {
          const auto it = entered.find(regions_.loop(node.input(0).node));
          if (it == entered.end()) continue;
          StageOf(node) = std::max(StageOf(node), it->second + 1);
        } else if (Regions::IsEnter(node)) {
          const auto [it, is_new] = entered.emplace(regions_.loop(node), -1);
          if (it->second >= StageOf(node)) continue;
          it->second = StageOf(node);
          is_last = false;
        }
      }
      if (is_last) return true;
    }
    return false;
  }
  // Sets the first stage in which the node can be.
  void SetStage(Node node) {
    int stage = 0;
    for (const Input& input : node.inputs()) {
      const Node from = input.from.node;
      if (!from || ClosesLoop(from, node)) continue;
      // A constant has no data inputs, and its control inputs add a step.
      const bool joins = from.op() == "Const" || Joins(input.from, node);
      const int step = joins ? 0 : 1;
      stage = std::max(stage, StageOf(from) + step);
    }
    for (Node from : node.controls()) {
      if (!from) continue;
      const int step = JoinsControl(from, node) ? 0 : 1;
      stage = std::max(stage, StageOf(from) + step);
    }
    StageOf(node) = stage;
  }

  // Moves a node to the stage of its users if it can join one of them there.
  void MoveToUsers(Node node) {
    constexpr int kNone = std::numeric_limits<int>::max();
    int last = kNone;  // the last stage in which the node can be
    bool joins_last = false;
    for (const Use& use : node.uses()) {
      if (ClosesLoop(node, use.node)) return;
      const bool joins = use.is_control()
                             ? JoinsControl(node, use.node)
                             : Joins({node, PortOf(use)}, use.node);
      const int stage = StageOf(use.node) - (joins ? 0 : 1);
      if (stage < last) joins_last = false;
      if (stage <= last) joins_last |= joins;
      last = std::min(last, stage);
    }
    if (joins_last && last > StageOf(node)) StageOf(node) = last;
  }
  static int PortOf(const Use& use) { return use.node.input(use.input).port; }

  void Join(Node node) {
    for (const Input& input : node.inputs()) {
      const Node from = input.from.node;
      if (!from || StageOf(from) != StageOf(node) || !Joins(input.from, node)) {
        continue;
      }
      sets_.Join(from.id(), node.id());
    }
  }

  const NodeList& order_;
  const Regions& regions_;
  CanJoin can_join_;
  std::vector<int> stages_;  // by node
  DisjointSets sets_;        // of node ids: the clusters
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_CLUSTERS_H_
