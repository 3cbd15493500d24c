// SPDX-License-Identifier: Apache-2.0
// Compares Graph with protobuf messages: parses a graph with both, applies
// random edits to both, and reports differences. Needs protobuf; for tests and
// fuzzers.
#ifndef TFPLUG_TESTS_GRAPH_GRAPH_ORACLE_H_
#define TFPLUG_TESTS_GRAPH_GRAPH_ORACLE_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/wire_tree.h"
#include "tfplug/graph/graph.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug::testing {

inline std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream string(&bytes);
  google::protobuf::io::CodedOutputStream stream(&string);
  stream.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&stream);
  stream.Trim();
  return bytes;
}

// An input as TensorFlow parses it: "name:digits", or else "^name" for a
// control edge (port -1), or else a name.
struct Reference {
  std::string name;
  int port;

  explicit Reference(const std::string& text) : name(text), port(0) {
    size_t digits = text.size();
    while (digits > 1 && text[digits - 1] >= '0' && text[digits - 1] <= '9') {
      --digits;
    }
    // TensorFlow does not parse more than 31 digits as a port.
    const size_t count = text.size() - digits;
    if (digits > 1 && count > 0 && count < 32 && text[digits - 1] == ':') {
      name = text.substr(0, digits - 1);
      uint32_t number = 0;
      for (; digits < text.size(); ++digits) {
        number = number * 10 + static_cast<uint32_t>(text[digits] - '0');
      }
      port = static_cast<int>(number);
    } else if (!text.empty() && text[0] == '^') {
      name = text.substr(1);
      port = -1;
    }
  }
};

inline proto::GraphDef WithControlsLast(proto::GraphDef graph) {
  for (proto::NodeDef& node : *graph.mutable_node()) {
    auto& inputs = *node.mutable_input();
    std::stable_partition(
        inputs.begin(), inputs.end(),
        [](const std::string& text) { return Reference(text).port != -1; });
  }
  return graph;
}

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

  // Applies a random edit to both. Edits edges only if sound_ and usual_.
  // Returns a description of the problem, or "".
  std::string Edit(Random& random) {
    const int count = message_.node_size();
    const int at = static_cast<int>(Below(random, count));
    const int other = static_cast<int>(Below(random, count));
    const uint32_t kind = Below(random, sound_ && usual_ ? 17 : 6);
    if (kind >= 15 || count == 0) return AddNode(random);
    Node node = At(at);
    proto::NodeDef& def = *message_.mutable_node(at);
    const std::string attr = Pick(random, {"T", "N", "new", "_class", "a"});
    switch (kind) {
      case 0: {
        const std::string op = Pick(random, {"Relu", "Const", "New", ""});
        node.SetOp(op);
        def.set_op(op);
        return "";
      }
      case 1: {
        const std::string device = Pick(random, {"/device:CPU:0", "", "d"});
        node.SetDevice(device);
        def.set_device(device);
        return "";
      }
      case 2:
        node.RemoveAttr(attr);
        def.mutable_attr()->erase(attr);
        return "";
      case 3:
        return CopyAttr(node, At(other), def, message_.node(other), attr);
      case 4:
      case 5:
        SetAttr(random, node, def, attr);
        return "";
      case 6:
        return Remove(node, at);
      case 7:
        return Rename(node, at, Pick(random, {"a", "renamed", "x/y"}));
      case 8:
        return AddInput(node, def, At(other),
                        static_cast<int>(Below(random, 3)));
      case 9:
        return SetInput(random, node, def, At(other));
      case 10:
        return RemoveInput(random, node, def);
      case 11:
        return Control(random, node, def, At(other));
      case 12:
        return SetInputs(random, node, def, At(other));
      case 13:
        return ReplaceUses(random, at, other);
      default:
        return ReplaceNode(at, other);
    }
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
  static std::string Pick(Random& random, std::vector<std::string> from) {
    return from[Below(random, static_cast<uint32_t>(from.size()))];
  }

  Node At(int i) { return At(graph_, i); }
  static Node At(Graph& graph, int i) {
    for (Node node : graph.nodes()) {
      if (i-- == 0) return node;
    }
    return Node();
  }

  // ---- Comparisons

  static std::string CompareNode(Node node, const proto::NodeDef& def) {
    if (node.name() != def.name()) return absl::StrCat("name ", node.name());
    if (node.op() != def.op()) return absl::StrCat("op ", node.op());
    if (node.device() != def.device()) return "device";
    const auto attrs = node.GetAttrs();
    if (attrs.size() != static_cast<size_t>(def.attr().size())) {
      return absl::StrCat(attrs.size(), " attrs, not ", def.attr().size());
    }
    for (const auto& [name, bytes] : attrs) {
      const auto found = def.attr().find(std::string(name));
      if (found == def.attr().end()) return absl::StrCat("attr ", name);
      proto::AttrValue value;
      if (!value.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
          Deterministic(value) != Deterministic(found->second)) {
        return absl::StrCat("attr ", name, " has another value");
      }
      if (node.RawAttr(name) != bytes || !node.HasAttr(name)) {
        return absl::StrCat("RawAttr of ", name);
      }
      if (!CompareValue(node, name, value)) {
        return absl::StrCat("GetAttr of ", name);
      }
    }
    return node.HasAttr("no such attribute") ? "HasAttr" : "";
  }

  // Whether GetAttr<T> returns `want` if `has`, and fails otherwise.
  template <class T>
  static bool Same(Node node, absl::string_view name, bool has, const T& want) {
    const absl::StatusOr<T> value = node.GetAttr<T>(name);
    return value.ok() == has && (!has || *value == want);
  }
  // Like Same, for a list. An empty `list` is not compared, because the
  // attribute may hold values of another type.
  template <class T, class List>
  static bool SameList(Node node, absl::string_view name, const List& list) {
    std::vector<T> want;
    for (const auto& value : list) want.push_back(static_cast<T>(value));
    return want.empty() || Same(node, name, true, want);
  }
  static bool SameShape(Node node, absl::string_view name, bool has,
                        const proto::TensorShapeProto& want) {
    const auto shape = node.GetAttr<PartialShape>(name);
    if (shape.ok() != has) return false;
    if (!has || want.unknown_rank()) return !has || !shape->has_rank();
    if (shape->rank() != want.dim_size()) return false;
    for (int i = 0; i < want.dim_size(); ++i) {
      if (std::max<int64_t>(shape->dim(i), -1) !=
          std::max<int64_t>(want.dim(i).size(), -1)) {
        return false;
      }
    }
    return true;
  }
  static bool CompareValue(Node node, absl::string_view name,
                           const proto::AttrValue& value) {
    using proto::AttrValue;
    const auto kind = value.value_case();
    const proto::AttrValue::ListValue& list = value.list();
    const auto function = node.GetAttr<Function>(name);
    // A NaN is not equal to itself.
    const auto is_nan = [](float f) { return f != f; };
    return Same<int64_t>(node, name, kind == AttrValue::kI, value.i()) &&
           Same<bool>(node, name, kind == AttrValue::kB, value.b()) &&
           Same<std::string>(node, name, kind == AttrValue::kS, value.s()) &&
           Same<DataType>(node, name, kind == AttrValue::kType,
                          static_cast<DataType>(value.type())) &&
           (is_nan(value.f()) ||
            Same<float>(node, name, kind == AttrValue::kF, value.f())) &&
           SameShape(node, name, kind == AttrValue::kShape, value.shape()) &&
           function.ok() == (kind == AttrValue::kFunc) &&
           (!function.ok() || function->name == value.func().name()) &&
           SameList<int64_t>(node, name, list.i()) &&
           SameList<bool>(node, name, list.b()) &&
           SameList<std::string>(node, name, list.s()) &&
           SameList<DataType>(node, name, list.type()) &&
           (std::any_of(list.f().begin(), list.f().end(), is_nan) ||
            SameList<float>(node, name, list.f()));
  }

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

  // ---- Edits

  static std::string Expect(const absl::Status& status, bool ok,
                            const char* what) {
    if (status.ok() == ok) return "";
    return absl::StrCat(what, ": ", status.ToString());
  }
  static std::string Text(const proto::NodeDef& from, int port) {
    return port == 0 ? from.name() : absl::StrCat(from.name(), ":", port);
  }
  // Returns the position of the `i`th data (or control) input among all inputs,
  // or -1.
  static int Place(const proto::NodeDef& def, int i, bool control = false) {
    for (int k = 0; k < def.input_size(); ++k) {
      if ((Reference(def.input(k)).port < 0) == control && i-- == 0) return k;
    }
    return -1;
  }
  const proto::NodeDef& Def(Node node) {
    for (const proto::NodeDef& def : message_.node()) {
      if (def.name() == node.name()) return def;
    }
    std::abort();
  }

  std::string AddNode(Random& random) {
    const std::string name = Pick(random, {"a", "b", "new", "new_1", "z/z"});
    const std::string op = Pick(random, {"Relu", "NoOp", "Mine"});
    bool taken = false;
    for (const proto::NodeDef& def : message_.node()) {
      taken = taken || def.name() == name;
    }
    if (!sound_) return "";
    const auto added = graph_.AddNode(name, op);
    if (!taken) {
      proto::NodeDef& def = *message_.add_node();
      def.set_name(name);
      def.set_op(op);
    }
    return Expect(added.status(), !taken, "AddNode");
  }

  static std::string CopyAttr(Node node, Node from, proto::NodeDef& def,
                              const proto::NodeDef& source,
                              const std::string& attr) {
    const bool there = source.attr().count(attr) > 0;
    if (there) {
      const proto::AttrValue value = source.attr().at(attr);
      (*def.mutable_attr())[attr] = value;
    }
    return Expect(node.CopyAttr(from, attr), there, "CopyAttr");
  }

  static void SetAttr(Random& random, Node node, proto::NodeDef& def,
                      const std::string& attr) {
    proto::AttrValue& value = (*def.mutable_attr())[attr];
    value.Clear();
    const int64_t number = static_cast<int64_t>(random()) - (1 << 30);
    switch (Below(random, 6)) {
      case 0:
        node.SetAttr(attr, number);
        value.set_i(number);
        break;
      case 1:
        node.SetAttr(attr, 0.5f);
        value.set_f(0.5f);
        break;
      case 2:
        node.SetAttr(attr, std::string("text"));
        value.set_s("text");
        break;
      case 3:
        node.SetAttr(attr, false);
        value.set_b(false);
        break;
      case 4:
        node.SetAttr(attr, std::vector<int64_t>{1, number, -1});
        for (int64_t i : {int64_t{1}, number, int64_t{-1}}) {
          value.mutable_list()->add_i(i);
        }
        break;
      default:
        node.SetAttr(attr, DataType::kFloat);
        value.set_type(proto::DT_FLOAT);
    }
  }

  std::string Remove(Node node, int at) {
    bool used = false;
    for (int i = 0; i < message_.node_size(); ++i) {
      for (const std::string& text : message_.node(i).input()) {
        used = used || (i != at && Reference(text).name == node.name());
      }
    }
    if (!used) message_.mutable_node()->DeleteSubrange(at, 1);
    return Expect(graph_.RemoveNode(node), !used, "RemoveNode");
  }

  std::string Rename(Node node, int at, const std::string& name) {
    const std::string old = message_.node(at).name();
    bool taken = false;
    for (const proto::NodeDef& def : message_.node()) {
      taken = taken || (def.name() == name && name != old);
    }
    if (!taken && name != old) {
      message_.mutable_node(at)->set_name(name);
      for (proto::NodeDef& def : *message_.mutable_node()) {
        for (std::string& text : *def.mutable_input()) {
          const Reference from(text);
          if (from.name != old) continue;
          text = from.port < 0    ? "^" + name
                 : from.port == 0 ? name
                                  : absl::StrCat(name, ":", from.port);
        }
      }
    }
    return Expect(node.SetName(name), !taken, "SetName");
  }

  std::string AddInput(Node node, proto::NodeDef& def, Node from, int port) {
    int last = -1;
    for (int k = 0; k < def.input_size(); ++k) {
      if (Reference(def.input(k)).port >= 0) last = k;
    }
    const std::string text = Text(Def(from), port);
    def.add_input();
    for (int k = def.input_size() - 1; k > last + 1; --k) {
      def.mutable_input()->SwapElements(k, k - 1);
    }
    def.set_input(last + 1, text);
    return Expect(node.AddInput({from, port}), true, "AddInput");
  }

  std::string SetInput(Random& random, Node node, proto::NodeDef& def,
                       Node from) {
    const int inputs = node.num_inputs();
    if (inputs == 0) return AddInput(node, def, from, 0);
    const int i = static_cast<int>(Below(random, inputs));
    def.set_input(Place(def, i), Text(Def(from), 2));
    return Expect(node.SetInput(i, {from, 2}), true, "SetInput");
  }

  std::string SetInputs(Random& random, Node node, proto::NodeDef& def,
                        Node from) {
    std::vector<std::string> texts;
    std::vector<Output> inputs;
    for (int port = static_cast<int>(Below(random, 4)); port > 0; --port) {
      texts.push_back(Text(Def(from), port - 1));
      inputs.emplace_back(from, port - 1);
    }
    // The control inputs remain.
    for (const std::string& input : def.input()) {
      if (Reference(input).port < 0) texts.push_back(input);
    }
    def.clear_input();
    for (const std::string& text : texts) def.add_input(text);
    return Expect(node.SetInputs(inputs), true, "SetInputs");
  }

  std::string RemoveInput(Random& random, Node node, proto::NodeDef& def) {
    const int inputs = node.num_inputs();
    const int i = static_cast<int>(Below(random, inputs));
    if (inputs > 0) def.mutable_input()->DeleteSubrange(Place(def, i), 1);
    return Expect(node.RemoveInput(i), inputs > 0, "RemoveInput");
  }

  std::string Control(Random& random, Node node, proto::NodeDef& def,
                      Node from) {
    std::vector<int> there;
    for (int k = 0; k < def.input_size(); ++k) {
      const Reference reference(def.input(k));
      if (reference.port < 0 && reference.name == from.name()) {
        there.push_back(k);
      }
    }
    if (Below(random, 2) == 0) {
      if (there.empty()) def.add_input("^" + Def(from).name());
      return Expect(node.AddControl(from), true, "AddControl");
    }
    std::reverse(there.begin(), there.end());
    for (int k : there) def.mutable_input()->DeleteSubrange(k, 1);
    return Expect(node.RemoveControl(from), true, "RemoveControl");
  }

  std::string ReplaceUses(Random& random, int from, int to) {
    const int port = static_cast<int>(Below(random, 2));
    const std::string name = message_.node(from).name();
    for (int i = 0; i < message_.node_size(); ++i) {
      if (i == to) continue;
      for (std::string& text : *message_.mutable_node(i)->mutable_input()) {
        const Reference reference(text);
        if (reference.name == name && reference.port == port &&
            !(from == to && port == 1)) {
          text = Text(message_.node(to), 1);
        }
      }
    }
    return Expect(graph_.ReplaceUses({At(from), port}, {At(to), 1}), true,
                  "ReplaceUses");
  }

  std::string ReplaceNode(int from, int to) {
    const std::string name = message_.node(from).name();
    const std::string other = message_.node(to).name();
    for (int i = 0; i < message_.node_size() && from != to; ++i) {
      if (i == to) continue;
      auto& inputs = *message_.mutable_node(i)->mutable_input();
      bool replaced = false;
      for (int k = 0; k < inputs.size(); ++k) {
        const Reference reference(inputs[k]);
        if (reference.name != name) continue;
        if (reference.port >= 0) {
          inputs[k] = Text(message_.node(to), reference.port);
        } else {
          replaced = true;
          inputs.DeleteSubrange(k--, 1);
        }
      }
      const bool has = std::any_of(
          inputs.begin(), inputs.end(), [&](const std::string& text) {
            const Reference reference(text);
            return reference.port < 0 && reference.name == other;
          });
      // Control edges come last, without duplicates.
      if (replaced && !has) *inputs.Add() = "^" + other;
    }
    return Expect(graph_.ReplaceNode(At(from), At(to)), true, "ReplaceNode");
  }

  Graph& graph_;
  proto::GraphDef& message_;
  bool sound_ = true;
  bool usual_ = true;
};

// Returns whether protobuf accepts the bytes. Because the stream is bounded,
// protobuf does not allocate the claimed size of a truncated string, and the
// fuzzer can limit memory.
inline bool ParseGraphDef(absl::string_view bytes, proto::GraphDef* message) {
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream stream(bytes.data(), size);
  return message->ParseFromBoundedZeroCopyStream(&stream, size);
}

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
