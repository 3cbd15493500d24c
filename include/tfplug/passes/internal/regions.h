// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_REGIONS_H_
#define TFPLUG_PASSES_INTERNAL_REGIONS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/graph.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Numbers such that nodes with the same number run equally often: in the same
// iterations of the same loops, and in the same branches. Nodes with different
// numbers may still do so.
//
// A region is a set of conditions: outputs of Switch nodes that must be taken,
// and loops. A node adds the conditions of its inputs up; a Merge removes those
// that its inputs do not share.
class Regions {
 public:
  Regions(Graph& graph, const NodeList& order)
      : regions_(graph.max_id()), frames_(graph.max_id()) {
    Intern({});
    loops_.push_back({});  // no loop
    bool any_waits = false;
    for (Node node : order) {
      Visit(node);
      any_waits |= MayWait(node);
    }
    if (!any_waits) return;
    waits_.resize(graph.max_id());
    for (Node node : order) SetWaits(node);
  }

  int of(Node node) const { return regions_[node.id()]; }
  // Returns a number such that nodes with the same number depend on the same nodes
  // that wait for others without an edge: locks, queues and collectives. One node
  // instead of two with different numbers could wait for what needs its own results.
  int waits(Node node) const { return waits_.empty() ? 0 : waits_[node.id()]; }
  // The region that every graph has, outside of loops and branches.
  static constexpr int kAlways = 0;
  // Returns the innermost loop that the node is in, which an Enter node is and an
  // Exit node is not; 0 if there is none.
  uint32_t loop(Node node) const { return frames_[node.id()]; }
  // Returns whether the node is in a loop, and may run often in a step.
  bool IsInLoop(Node node) const { return loop(node) != 0; }
  static bool IsEnter(Node node) { return Is(node, "Enter"); }
  static bool IsExit(Node node) { return Is(node, "Exit"); }
  // Returns whether the node begins or ends a branch or a loop.
  static bool IsControlFlow(Node node) {
    return Is(node, "Switch") || node.op() == "_SwitchN" || Is(node, "Merge") ||
           Is(node, "Enter") || Is(node, "Exit") || Is(node, "NextIteration");
  }

 private:
  // Kind, node or loop, port.
  using Condition = std::tuple<char, uint32_t, int>;
  using Set = std::vector<Condition>;  // sorted
  struct Loop {
    std::string name;
    uint32_t outer = 0;      // the loop around it
    int outer_region = 0;    // of the inputs of its Enter nodes
    bool is_regular = true;  // whether these agree
  };

  int Intern(Set set) {
    const auto [it, is_new] =
        numbers_.emplace(std::move(set), static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(&it->first);
    return it->second;
  }
  const Set& SetOf(int region) const {
    return *sets_[static_cast<size_t>(region)];
  }
  int Union(int a, int b) {
    if (a == b || b == kAlways) return a;
    if (a == kAlways) return b;
    Set all;
    std::set_union(SetOf(a).begin(), SetOf(a).end(), SetOf(b).begin(),
                   SetOf(b).end(), std::back_inserter(all));
    return Intern(std::move(all));
  }
  int With(int region, const Condition& condition) {
    return Union(region, Intern({condition}));
  }

  static bool Is(Node node, absl::string_view op) {
    const absl::string_view name = node.op();
    return name == op || (name.substr(0, 3) == "Ref" && name.substr(3) == op);
  }

  static bool MayWait(Node node) {
    const absl::string_view op = node.op();
    for (const absl::string_view prefix :
         {"Barrier", "Collective", "EagerPyFunc", "Horovod", "MapStage",
          "MapUnstage", "MutexLock", "Nccl", "OrderedMap", "PyFunc",
          "ReaderRead", "Recv", "Stage", "Unstage", "_HostRecv", "_Recv"}) {
      if (absl::StartsWith(op, prefix)) return true;
    }
    return absl::StrContains(op, "AccumulatorTakeGradient") ||
           absl::StrContains(op, "QueueDequeue") ||
           absl::StrContains(op, "QueueEnqueue");
  }
  // A function that is called in a graph with locks may have some, too.
  static bool CallsFunction(Node node) {
    const absl::string_view op = node.op();
    return absl::EndsWith(op, "PartitionedCall") || op == "RemoteCall" ||
           op == "SymbolicGradient" || absl::EndsWith(op, "If") ||
           absl::EndsWith(op, "Case") || absl::EndsWith(op, "While");
  }
  void SetWaits(Node node) {
    int waits = 0;
    for (const Input& input : node.inputs()) {
      if (input.from) waits = Union(waits, waits_[input.from.node.id()]);
    }
    for (Node from : node.controls()) {
      if (from) waits = Union(waits, waits_[from.id()]);
    }
    if (MayWait(node) || CallsFunction(node)) {
      waits = With(waits, {'w', node.id(), 0});
    }
    waits_[node.id()] = waits;
  }

  // Returns the region in which an output of a node is not dead.
  int RegionOf(const Output& output) {
    const Node node = output.node;
    const int region = regions_[node.id()];
    if (!Is(node, "Switch") && node.op() != "_SwitchN") return region;
    const Output choice = node.input(1);
    if (!choice) return region;
    // Switch nodes with the same predicate take the same branch.
    const Condition key = {'p', choice.node.id(), choice.port};
    const auto id = static_cast<uint32_t>(Intern({key}));
    return With(region, {'s', id, output.port});
  }

  void Visit(Node node) {
    int region = kAlways;
    uint32_t loop = 0;
    const auto join = [&](Node from, int source) {
      region = Union(region, source);
      loop = std::max(loop, frames_[from.id()]);
    };
    if (Is(node, "Merge")) return VisitMerge(node);
    for (const Input& input : node.inputs()) {
      if (input.from) join(input.from.node, RegionOf(input.from));
    }
    for (Node from : node.controls()) {
      if (from) join(from, regions_[from.id()]);
    }
    if (Is(node, "Enter")) {
      const uint32_t outer = loop;
      loop = LoopOf(node, outer, region);
      region = With(region, {'l', loop, 0});
    } else if (Is(node, "Exit")) {
      const Loop& left = loops_[loop];
      region = loop != 0 && left.is_regular
                   ? left.outer_region
                   : With(kAlways, {'x', node.id(), 0});
      loop = left.outer;
    }
    regions_[node.id()] = region;
    frames_[node.id()] = loop;
  }

  uint32_t LoopOf(Node enter, uint32_t outer, int region) {
    const std::string name =
        enter.GetAttr<std::string>("frame_name").value_or("");
    for (uint32_t i = 1; i < loops_.size(); ++i) {
      if (loops_[i].name != name || loops_[i].outer != outer) continue;
      loops_[i].is_regular &= loops_[i].outer_region == region;
      return i;
    }
    loops_.push_back({name, outer, region});
    return static_cast<uint32_t>(loops_.size()) - 1;
  }

  void VisitMerge(Node node) {
    std::vector<int> sources;
    bool is_loop = false;
    uint32_t loop = 0;
    for (const Input& input : node.inputs()) {
      if (!input.from) continue;
      const Node from = input.from.node;
      is_loop |= Is(from, "Enter") || Is(from, "NextIteration");
      if (Is(from, "NextIteration")) continue;  // visited later
      sources.push_back(RegionOf(input.from));
      loop = std::max(loop, frames_[from.id()]);
    }
    frames_[node.id()] = loop;
    int& region = regions_[node.id()];
    region = With(kAlways, {'m', node.id(), 0});
    if (is_loop && sources.size() == 1) region = sources[0];
    if (is_loop || sources.size() != 2) return;
    Set different, shared;
    const Set &a = SetOf(sources[0]), &b = SetOf(sources[1]);
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                  std::back_inserter(different));
    // Both branches of one condition.
    if (different.size() != 2 || std::get<0>(different[0]) != 's' ||
        std::get<1>(different[0]) != std::get<1>(different[1])) {
      return;
    }
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                          std::back_inserter(shared));
    region = Intern(std::move(shared));
  }

  std::vector<int> regions_;      // by node
  std::vector<int> waits_;        // by node; empty if no node waits
  std::vector<uint32_t> frames_;  // by node: the innermost loop
  std::vector<Loop> loops_;
  std::map<Set, int> numbers_;
  std::vector<const Set*> sets_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_REGIONS_H_
