// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_REGION_BUILDER_H_
#define TFPLUG_PASSES_INTERNAL_REGION_BUILDER_H_

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/passes/internal/region_nodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Replaces some nodes, in topological order, by one region.
class RegionBuilder {
 public:
  RegionBuilder(Graph& graph, const PassContext& context,
                const RegionNodes& nodes, std::vector<Node> members)
      : graph_(graph),
        context_(context),
        nodes_(nodes),
        members_(std::move(members)),
        is_member_(members_.begin(), members_.end()) {}

  // Returns the region's node; a null node, and changes nothing, if no other
  // node uses an output of the members, or if the region would be too large.
  absl::StatusOr<Node> Replace() {
    FindEdges();
    if (outputs_.empty()) return Node();
    TFPLUG_ASSIGN_OR_RETURN(const std::string subgraph, WriteSubgraph());
    if (subgraph.size() > kMaxRegionBytes) return Node();
    TFPLUG_ASSIGN_OR_RETURN(
        const Node region,
        graph_.AddNode(
            graph_.UniqueName(absl::StrCat(members_.back().name(), "/region")),
            kRegionOp));
    region.SetDevice(members_.back().device());
    TFPLUG_RETURN_IF_ERROR(region.SetInputs(Sources(inputs_)));
    for (Node control : controls_) {
      TFPLUG_RETURN_IF_ERROR(region.AddControl(control));
    }
    SetTypes(region, inputs_, "Tin", "Thost_in");
    SetTypes(region, outputs_, "Tout", "Thost_out");
    region.SetAttr("graph", subgraph);
    GraphProperties::List properties;
    for (const auto& [output, port] : outputs_) {
      const auto known = context_.properties().GetOutputs(output.node.name());
      const auto i = static_cast<size_t>(output.port);
      properties.push_back({port.type, known.ok() && i < known->size()
                                           ? (*known)[i].shape
                                           : PartialShape()});
    }
    context_.properties().SetOutputs(region.name(), properties);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceUses(
          outputs_[k].first, Output(region, static_cast<int>(k))));
    }
    for (size_t i = members_.size(); i-- > 0;) {
      // The uses that are left are control inputs.
      TFPLUG_RETURN_IF_ERROR(graph_.ReplaceNode(members_[i], region));
      TFPLUG_RETURN_IF_ERROR(graph_.RemoveNode(members_[i]));
    }
    return region;
  }

 private:
  using Edge = std::pair<Output, runtime::Port>;

  bool IsMember(Node node) const { return is_member_.count(node) > 0; }

  // Finds the inputs and outputs, with those in host memory at the end, and the
  // control inputs.
  void FindEdges() {
    for (const Node member : members_) {
      for (const Input& input : member.inputs()) {
        const Output& from = input.from;
        if (IsMember(from.node)) continue;
        if (nodes_.IsInlined(from, member, input.index)) {
          inlined_.emplace(member, input.index);
          // A constant in a branch or loop runs when these run.
          for (Node control : from.node.controls()) AddControl(control);
          continue;
        }
        AddEdge(inputs_, from,
                nodes_.ports(member).inputs[static_cast<size_t>(input.index)]);
      }
      for (Node control : member.controls()) AddControl(control);
      const auto& outputs = nodes_.ports(member).outputs;
      for (const Use& use : member.uses()) {
        if (use.is_control() || IsMember(use.node)) continue;
        const int port = use.node.input(use.input).port;
        AddEdge(outputs_, Output(member, port),
                outputs[static_cast<size_t>(port)]);
      }
    }
    for (auto* edges : {&inputs_, &outputs_}) {
      std::stable_partition(edges->begin(), edges->end(), [](const Edge& edge) {
        return !edge.second.on_host;
      });
    }
  }
  static void AddEdge(std::vector<Edge>& edges, Output output,
                      runtime::Port port) {
    const Edge edge(output, port);
    if (std::find(edges.begin(), edges.end(), edge) == edges.end()) {
      edges.push_back(edge);
    }
  }
  void AddControl(Node control) {
    if (!control || IsMember(control)) return;
    if (std::find(controls_.begin(), controls_.end(), control) ==
        controls_.end()) {
      controls_.push_back(control);
    }
  }

  static std::vector<Output> Sources(const std::vector<Edge>& edges) {
    std::vector<Output> outputs;
    for (const Edge& edge : edges) outputs.push_back(edge.first);
    return outputs;
  }
  static void SetTypes(Node region, const std::vector<Edge>& edges,
                       const char* on_device, const char* on_host) {
    std::vector<DataType> types[2];
    for (const Edge& edge : edges) {
      types[edge.second.on_host ? 1 : 0].push_back(edge.second.type);
    }
    region.SetAttr(on_device, types[0]);
    region.SetAttr(on_host, types[1]);
  }

  // Writes the attribute `graph`. Names of nodes are kept, for errors and
  // profiles.
  absl::StatusOr<std::string> WriteSubgraph() const {
    Graph sorted;
    std::map<std::pair<Node, int>, Output> sources;
    int count = 0;
    const auto add_other = [&](const char* op) {
      std::string name;
      do {
        name = absl::StrCat(op, "_", count++);
      } while (graph_.FindNode(name));
      return sorted.AddNode(name, op);
    };
    const auto source_of = [&](Node member,
                               const Input& input) -> absl::StatusOr<Output> {
      const Output& from = input.from;
      if (IsMember(from.node)) {
        return Output(sorted.FindNode(from.node.name()), from.port);
      }
      const auto port =
          nodes_.ports(member).inputs[static_cast<size_t>(input.index)];
      // One output may be needed in both kinds of memory.
      Output& source =
          sources[{from.node, 2 * from.port + (port.on_host ? 1 : 0)}];
      if (source) return source;
      if (inlined_.count({member, input.index}) > 0) {
        TFPLUG_ASSIGN_OR_RETURN(const Node constant, add_other("Const"));
        TFPLUG_RETURN_IF_ERROR(constant.CopyAttr(from.node, "dtype"));
        TFPLUG_RETURN_IF_ERROR(constant.CopyAttr(from.node, "value"));
        return source = constant;
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node arg, add_other("_Arg"));
      const auto found =
          std::find(inputs_.begin(), inputs_.end(), Edge(from, port));
      arg.SetAttr("index", static_cast<int64_t>(found - inputs_.begin()));
      return source = arg;
    };
    for (const Node member : members_) {
      std::vector<Output> inputs;
      for (const Input& input : member.inputs()) {
        TFPLUG_ASSIGN_OR_RETURN(const Output source, source_of(member, input));
        inputs.push_back(source);
      }
      TFPLUG_ASSIGN_OR_RETURN(const Node node,
                              sorted.AddNode(member.name(), member.op()));
      node.CopyAttrs(member);
      for (const char* const attr : {"_class", "_output_shapes"}) {
        node.RemoveAttr(attr);
      }
      TFPLUG_RETURN_IF_ERROR(node.SetInputs(inputs));
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(const Node result, add_other("_Retval"));
      const Output& output = outputs_[k].first;
      TFPLUG_RETURN_IF_ERROR(
          result.AddInput({sorted.FindNode(output.node.name()), output.port}));
      result.SetAttr("index", static_cast<int64_t>(k));
    }
    return sorted.ToString();
  }

  Graph& graph_;
  const PassContext& context_;
  const RegionNodes& nodes_;
  const std::vector<Node> members_;
  const std::set<Node> is_member_;
  std::vector<Edge> inputs_, outputs_;
  std::vector<Node> controls_;
  std::set<std::pair<Node, int>> inlined_;  // inputs that are constants
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_REGION_BUILDER_H_
