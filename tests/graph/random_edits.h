// SPDX-License-Identifier: Apache-2.0
// Applies random edits to a Graph and to the message of the same graph. Needs
// protobuf; for tests and fuzzers.
#ifndef TFPLUG_TESTS_GRAPH_RANDOM_EDITS_H_
#define TFPLUG_TESTS_GRAPH_RANDOM_EDITS_H_

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph_messages.h"
#include "graph/wire_tree.h"
#include "tfplug/graph/graph.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug::testing {

// Returns a node by its position.
inline Node At(Graph& graph, int i) {
  for (Node node : graph.nodes()) {
    if (i-- == 0) return node;
  }
  return Node();
}

class RandomEdits {
 public:
  // If `has_unique_names` is false, adds no nodes.
  RandomEdits(Graph& graph, proto::GraphDef& message, bool has_unique_names)
      : graph_(graph), message_(message), has_unique_names_(has_unique_names) {}

  // Applies an edit to both, to edges only if `with_edges`. Returns a
  // description of the problem, or "".
  std::string Apply(Random& random, bool with_edges) {
    const int count = message_.node_size();
    const int at = static_cast<int>(Below(random, count));
    const int other = static_cast<int>(Below(random, count));
    const uint32_t kind = Below(random, with_edges ? 17 : 6);
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

 private:
  static std::string Pick(Random& random, std::vector<std::string> from) {
    return from[Below(random, static_cast<uint32_t>(from.size()))];
  }

  Node At(int i) { return testing::At(graph_, i); }

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
    if (!has_unique_names_) return "";
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
  const bool has_unique_names_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_GRAPH_RANDOM_EDITS_H_
