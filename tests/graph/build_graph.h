// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_GRAPH_BUILD_GRAPH_H_
#define TFPLUG_TESTS_GRAPH_BUILD_GRAPH_H_

#include <doctest/doctest.h>
#include <tfplug/graph/graph.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "print_lines.h"

// Builds small graphs, and describes them with one line per node.
namespace tfplug {

inline constexpr char kSimDevice[] =
    "/job:localhost/replica:0/task:0/device:SIM:0";
inline constexpr char kCpuDevice[] =
    "/job:localhost/replica:0/task:0/device:CPU:0";

// Adds a node with inputs "x", "x:1" or "^x", whose nodes must exist.
inline Node Add(Graph& graph, const std::string& name, const std::string& op,
                std::initializer_list<std::string> inputs = {},
                const char* device = kSimDevice) {
  const Node node = graph.AddNode(name, op).value();
  node.SetDevice(device);
  for (const std::string& input : inputs) {
    if (input[0] == '^') {
      REQUIRE(node.AddControl(graph.FindNode(input.substr(1))).ok());
      continue;
    }
    const size_t colon = input.find(':');
    const int port =
        colon == input.npos ? 0 : std::stoi(input.substr(colon + 1));
    REQUIRE(node.AddInput({graph.FindNode(input.substr(0, colon)), port}).ok());
  }
  return node;
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

// Returns "name = Op(x, y:1, ^z)", with sorted control inputs.
inline std::string TextOf(Node node) {
  std::vector<std::string> inputs, controls;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Output input = node.input(i);
    inputs.push_back(absl::StrCat(input.node.name()));
    if (input.port != 0) absl::StrAppend(&inputs.back(), ":", input.port);
  }
  for (int i = 0; i < node.num_controls(); ++i) {
    controls.push_back(absl::StrCat("^", node.control(i).name()));
  }
  std::sort(controls.begin(), controls.end());
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  std::string text = absl::StrCat(node.name(), " = ", node.op(), "(");
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", inputs[i]);
  }
  return text + ")";
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
