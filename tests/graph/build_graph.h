// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_GRAPH_BUILD_GRAPH_H_
#define TFPLUG_TESTS_GRAPH_BUILD_GRAPH_H_

#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>
#include <tfplug/testing/graph_text.h>

#include <algorithm>
#include <string>
#include <vector>

#include "print_lines.h"

// Builds small graphs, and describes them with one line per node.
namespace tfplug {

// Adds nodes, which are written as in testing/graph_text.h. Returns the last one.
inline Node Add(Graph& graph, const std::string& text) {
  const absl::StatusOr<Node> last = testing::AddNodes(graph, text);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  return *last;
}

// Return a serialized NodeDef with these fields, and a serialized GraphDef of
// such nodes.
inline std::string NodeDef(const std::string& name, const std::string& op,
                           const std::vector<std::string>& inputs = {}) {
  std::string node;
  internal::AppendField(node, 1, name);
  internal::AppendField(node, 2, op);
  for (const std::string& input : inputs) internal::AppendField(node, 3, input);
  return node;
}
inline std::string InGraph(const std::vector<std::string>& nodes) {
  std::string graph;
  for (const std::string& node : nodes) internal::AppendField(graph, 1, node);
  return graph;
}

// Returns the text of a node without its device and attributes.
inline std::string TextOf(Node node) {
  const std::string text = testing::PrintNode(node);
  return text.substr(0, std::min(text.find(" @"), text.find(" {")));
}

// Returns a line for each node, sorted.
inline std::vector<std::string> TextOf(Graph& graph) {
  std::vector<std::string> lines;
  for (Node node : graph.nodes()) lines.push_back(TextOf(node));
  std::sort(lines.begin(), lines.end());
  return lines;
}
inline std::vector<std::string> TextOf(const std::string& graph_def) {
  auto graph = Graph::Parse(graph_def);
  REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
  return TextOf(*graph);
}

using Lines = std::vector<std::string>;

}  // namespace tfplug

#endif  // TFPLUG_TESTS_GRAPH_BUILD_GRAPH_H_
