// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_PLACED_GRAPH_H_
#define TFPLUG_TESTING_INTERNAL_PLACED_GRAPH_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tfplug/graph/graph.h"
#include "tfplug/testing/internal/executor_nodes.h"
#include "tfplug/testing/process.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The nodes of a graph on the devices of a process, with their kernels.
class PlacedGraph {
 public:
  // Places the nodes in the order of the graph; those that name no device are on
  // the default one. Errors name the node.
  absl::Status Init(Process& process, const Graph& graph,
                    const std::string& default_device);

  const std::vector<std::unique_ptr<PlacedNode>>& nodes() const {
    return nodes_;
  }
  // Returns the output with a name, "x" or "x:1"; NOT_FOUND without its node.
  absl::StatusOr<Source> ParseSource(const std::string& name) const;

 private:
  std::vector<std::unique_ptr<PlacedNode>> nodes_;
  std::map<std::string, size_t> indices_;
};

inline absl::Status PlacedGraph::Init(Process& process, const Graph& graph,
                                      const std::string& default_device) {
  if (absl::Status status = graph.status(); !status.ok()) return status;
  for (const tfplug::Node node : graph.nodes()) {
    indices_.emplace(node.name(), indices_.size());
  }
  for (const tfplug::Node node : graph.nodes()) {
    auto placed = PlaceNode(process, node, default_device);
    if (!placed.ok()) {
      return absl::Status(placed.status().code(),
                          absl::StrCat("node '", node.name(), "' (", node.op(),
                                       "): ", placed.status().message()));
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output from = node.input(i);
      if (!from.node || from.port < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("node '", node.name(), "' has an input from no node"));
      }
      (*placed)->inputs.push_back(
          {indices_.at(std::string(from.node.name())), from.port});
    }
    for (int i = 0; i < node.num_controls(); ++i) {
      if (!node.control(i)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node '", node.name(), "' has a control input from no node"));
      }
      (*placed)->controls.push_back(
          indices_.at(std::string(node.control(i).name())));
    }
    nodes_.push_back(*std::move(placed));
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const Source& from : nodes_[i]->inputs) {
      nodes_[from.node]->successors.push_back(i);
    }
    for (const size_t from : nodes_[i]->controls) {
      nodes_[from]->successors.push_back(i);
    }
  }
  return absl::OkStatus();
}

inline absl::StatusOr<Source> PlacedGraph::ParseSource(
    const std::string& name) const {
  const size_t colon = name.find(':');
  int port = 0;
  if (colon != std::string::npos &&
      !absl::SimpleAtoi(name.substr(colon + 1), &port)) {
    port = -1;
  }
  const auto found = indices_.find(name.substr(0, colon));
  if (found == indices_.end() || port < 0) {
    return absl::NotFoundError(
        absl::StrCat("the graph has no node for '", name,
                     "'; name an output as NODE or NODE:1"));
  }
  return Source{found->second, port};
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_PLACED_GRAPH_H_
