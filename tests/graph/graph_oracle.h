// SPDX-License-Identifier: Apache-2.0
// Compares Graph with protobuf messages: parses a graph with both, applies
// random edits to both, and reports differences. Needs protobuf; for tests and
// fuzzers.
#ifndef TFPLUG_TESTS_GRAPH_GRAPH_ORACLE_H_
#define TFPLUG_TESTS_GRAPH_GRAPH_ORACLE_H_

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/graph_messages.h"
#include "graph/random_edits.h"
#include "graph/wire_tree.h"
#include "tfplug/graph/graph.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug::testing {

// A Graph and a message of the same graph, to which the same edits are applied.
class GraphOracle {
 public:
  // Both must be parsed from the same bytes.
  GraphOracle(Graph& graph, proto::GraphDef& message)
      : graph_(graph), message_(message) {
    // sound_: names are unique and inputs refer to existing nodes, so that
    // Graph::status() is OK. usual_: names and ports can be compared and
    // edited.
    std::map<std::string, int> names;
    for (const proto::NodeDef& node : message.node()) ++names[node.name()];
    for (const auto& [name, count] : names) {
      sound_ = sound_ && count == 1;
      // TensorFlow rejects names such as "a:1", to which no input can refer.
      usual_ = usual_ && !name.empty() && name[0] != '^' &&
               name.find(':') == std::string::npos;
    }
    for (const proto::NodeDef& node : message.node()) {
      for (const std::string& input : node.input()) {
        const Reference from(input);
        sound_ = sound_ && names.count(from.name) > 0;
        usual_ = usual_ && from.port < 1000;
      }
    }
  }

  // Returns the first difference, or "".
  std::string Compare() {
    if (graph_.num_nodes() != message_.node_size()) {
      return absl::StrCat(graph_.num_nodes(), " nodes, not ",
                          message_.node_size());
    }
    int i = 0;
    for (Node node : graph_.nodes()) {
      std::string problem = CompareNode(node, message_.node(i++));
      if (problem.empty() && sound_ && usual_)
        problem = CompareEdges(node, i - 1);
      if (!problem.empty()) {
        return absl::StrCat("node ", i - 1, ": ", problem);
      }
    }
    if (graph_.status().ok() != sound_) {
      return "status(): " + graph_.status().ToString();
    }
    const std::string bytes = graph_.ToString();
    proto::GraphDef written;
    if (!written.ParseFromString(bytes)) return "the written bytes are invalid";
    // A node with edited inputs has its control inputs last.
    if (Deterministic(WithControlsLast(written)) !=
        Deterministic(WithControlsLast(message_))) {
      return "the written graph differs";
    }
    if (bytes.size() != graph_.ByteSize()) return "ByteSize()";
    return "";
  }

  // Applies a random edit to both, of edges only if sound_ and usual_. Returns
  // a description of the problem, or "".
  std::string Edit(Random& random) {
    return RandomEdits(graph_, message_, sound_)
        .Apply(random, sound_ && usual_);
  }

  // Compares the bodies of functions. If `edit`, also edits a node in each
  // body.
  std::string Functions(Random& random, bool edit) {
    auto& functions = graph_.GetFunctions();
    if (message_.library().function().empty()) {
      return functions.empty() ? "" : "functions in a graph that has none";
    }
    auto& defs = *message_.mutable_library()->mutable_function();
    if (static_cast<int>(functions.size()) != defs.size()) {
      return absl::StrCat(functions.size(), " functions, not ", defs.size());
    }
    for (int i = 0; i < defs.size(); ++i) {
      proto::FunctionDef& def = defs[i];
      GraphFunction& function = functions[i];
      if (function.name != def.signature().name()) return "a function's name";
      int k = 0;
      // Arguments and results come after the nodes.
      for (Node node : function.body.nodes()) {
        if (k == def.node_def_size()) break;
        std::string problem = CompareNode(node, def.node_def(k++));
        if (!problem.empty()) return absl::StrCat("in a function: ", problem);
      }
      if (k < def.node_def_size()) return "missing nodes in a function";
      if (!edit || k == 0) continue;
      const int at = static_cast<int>(Below(random, k));
      proto::NodeDef& node_def = *def.mutable_node_def(at);
      Node node = At(function.body, at);
      node.SetDevice("/device:SIM:7");
      node_def.set_device("/device:SIM:7");
      node.SetAttr("N", 7);
      proto::AttrValue& value = (*node_def.mutable_attr())["N"];
      value.Clear();
      value.set_i(7);
    }
    return edit ? Compare() : "";
  }

  bool sound() const { return sound_; }

 private:
  std::string CompareEdges(Node node, int number) {
    const proto::NodeDef& def = message_.node(number);
    int inputs = 0, controls = 0;
    for (const std::string& text : def.input()) {
      const Reference from(text);
      if (from.port < 0) {
        const Node control = node.control(controls++);
        if (!control || control.name() != from.name) return "control " + text;
      } else {
        const Output output = node.input(inputs++);
        if (!output.node || output.node.name() != from.name ||
            output.port != from.port) {
          return "input " + text;
        }
      }
    }
    if (inputs != node.num_inputs() || controls != node.num_controls()) {
      return "the number of inputs";
    }
    // Counts the uses without Graph's lists.
    int uses = 0;
    for (const proto::NodeDef& user : message_.node()) {
      for (const std::string& text : user.input()) {
        uses += Reference(text).name == def.name();
      }
    }
    int found = 0;
    for (Use use : node.uses()) {
      ++found;
      if (!use.is_control() && use.node.input(use.input).node != node) {
        return "a use that does not refer to the node";
      }
    }
    if (found != uses || node.num_uses() != uses) return "the number of uses";
    return graph_.FindNode(def.name()) == node ? "" : "FindNode";
  }

  Graph& graph_;
  proto::GraphDef& message_;
  bool sound_ = true;
  bool usual_ = true;
};

// Reads all parts of a graph from arbitrary bytes, and writes it. If protobuf
// accepts the bytes, also compares Graph with protobuf, before and after
// `edits` random edits. Returns a description of the problem, or "".
inline std::string CheckGraph(absl::string_view bytes, uint32_t seed,
                              int edits) {
  proto::GraphDef message;
  const bool parsed = ParseGraphDef(bytes, &message);
  absl::StatusOr<Graph> graph = Graph::Parse(bytes);
  if (!graph.ok()) {
    if (!parsed) return "";
    return "Graph rejects bytes that protobuf accepts: " +
           graph.status().ToString();
  }
  if (graph->ToString() != bytes)
    return "a graph without edits is written differently";
  for (Node node : graph->nodes()) {
    node.GetAttr<Shape>("shape").IgnoreError();
    node.GetAttr<std::vector<float>>("T").IgnoreError();
    node.GetAttr<std::vector<std::string>>("_class").IgnoreError();
    for (int i = node.num_inputs(); i >= 0; --i) node.input(i);
    for (int i = node.num_controls(); i >= 0; --i) node.control(i);
    for (Use use : node.uses()) use.node.name();
    for (const auto& [name, value] : node.GetAttrs()) {
      node.GetAttr<DataType>(name).IgnoreError();
    }
    graph->FindNode(node.name());
    if (!graph->has_op(node.op())) return "has_op";
  }
  graph->TopologicalOrder().IgnoreError();
  for (GraphFunction& function : graph->GetFunctions()) {
    for (Node node : function.body.nodes()) {
      for (int i = node.num_inputs() - 1; i >= 0; --i) node.input(i);
      for (Use use : node.uses()) use.node.name();
    }
    function.body.TopologicalOrder().IgnoreError();
  }
  if (graph->changed()) return "changed() is true without edits";
  if (!parsed) return "";
  GraphOracle oracle(*graph, message);
  std::string problem = oracle.Compare();
  Random random(seed);
  for (int i = 0; i < edits && problem.empty(); ++i) {
    problem = oracle.Edit(random);
    if (problem.empty()) problem = oracle.Compare();
    if (!problem.empty()) problem = absl::StrCat("edit ", i, ": ", problem);
  }
  if (problem.empty()) problem = oracle.Functions(random, edits > 0);
  return problem;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_GRAPH_GRAPH_ORACLE_H_
