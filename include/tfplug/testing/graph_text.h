// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GRAPH_TEXT_H_
#define TFPLUG_TESTING_GRAPH_TEXT_H_

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/internal/attr_text.h"
#include "tfplug/testing/internal/graph_text_parser.h"

#pragma GCC visibility push(hidden)

// Graphs as text, for tests of passes: a test builds a graph from text, runs
// the pass, and compares the result with text. Each line is one node:
//
//   x, w = Placeholder()
//   half: float = 0.5 (^x)
//   axes: int32[2] = [0, -1]
//   y: float[2,?] = MatMul(x, w:1, ^half) @CPU {transpose_a=true, T=float}
//
// * Several names stand for several nodes that are alike.
// * A number or a list is a Const, of type float unless another one is given;
//   one number fills the shape.
// * Inputs are those of a NodeDef. They may be defined in a later line.
// * A type and shape before "=" of another op is a result of TensorFlow's shape
//   inference: ? is an unknown dimension, [*] an unknown rank.
// * After "@" is a device, or the type of the first device of that type.
// * Attributes are true, 3, 0.5, "text", a type such as float, shape[2,?],
//   @function, or a [list] of one of these.
namespace tfplug::testing {

struct GraphTextOptions {
  // The device of nodes whose line has none; a name or a type.
  std::string device;
  // Attributes of nodes other than constants, unless their line has others:
  // "T=float, data_format=\"NHWC\"".
  std::string attrs;
  // Receives the shapes that a text gives.
  TF_GrapplerItem* item = nullptr;
};

// Adds the nodes of a text to a graph, and returns the last one.
// INVALID_ARGUMENT, naming the line, if it is malformed or if an input refers
// to no node.
absl::StatusOr<tfplug::Node> AddNodes(Graph& graph, absl::string_view text,
                                      const GraphTextOptions& options = {});

// Returns the line of a node, without the device and attributes in `options`.
std::string PrintNode(tfplug::Node node, const GraphTextOptions& options = {});
// Returns a line for each node, in the graph's order.
std::string PrintGraph(const Graph& graph,
                       const GraphTextOptions& options = {});

// Compares a graph with a text, in any order of the lines, and returns an empty
// string if they agree. Otherwise returns each line that differs, after "- ",
// and the line of the graph's node, after "+ ".
//
// The op, the inputs, the device and a constant's value must be those of the
// text; so must the attributes that the text or the options have. "{!a}" is a
// node without an attribute a. Nodes without inputs may be left out, and with a
// line "..." all others, too. Returns the error of a malformed text.
std::string CompareGraph(const Graph& graph, absl::string_view text,
                         const GraphTextOptions& options = {});

// ---- Implementation ----

// Returns the attributes of GraphTextOptions, serialized, by name.
inline absl::StatusOr<std::map<std::string, std::string>> DefaultAttrs(
    const GraphTextOptions& options) {
  TextNode node;
  const std::string text = options.attrs + "}";
  GraphTextParser parser(text);
  parser.ParseAttrs(node);
  if (!parser.status().ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("GraphTextOptions::attrs: ", parser.status().message()));
  }
  return std::map<std::string, std::string>(node.attrs.begin(),
                                            node.attrs.end());
}

// Sets the inputs of a node.
inline absl::Status ConnectNode(const Graph& graph, tfplug::Node node,
                                const TextNode& line) {
  const auto find =
      [&](absl::string_view name) -> absl::StatusOr<tfplug::Node> {
    if (const tfplug::Node found = graph.FindNode(name)) return found;
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", line.line, ", \"", line.text, "\": there is no ", "node '",
        name, "'; add a line such as \"", name, " = Placeholder()\""));
  };
  for (const std::string& input : line.inputs) {
    const size_t colon = input.find(':');
    int port = 0;
    if (colon != input.npos &&
        !absl::SimpleAtoi(input.substr(colon + 1), &port))
      port = -1;
    const auto from = find(input.substr(0, colon));
    if (!from.ok()) return from.status();
    const absl::Status status = node.AddInput({*from, port});
    if (!status.ok()) return status;
  }
  for (const std::string& control : line.controls) {
    const auto from = find(control);
    if (!from.ok()) return from.status();
    const absl::Status status = node.AddControl(*from);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

inline absl::StatusOr<tfplug::Node> AddNodes(Graph& graph,
                                             absl::string_view text,
                                             const GraphTextOptions& options) {
  const auto parsed = ParseGraphText(text);
  if (!parsed.ok()) return parsed.status();
  const auto defaults = DefaultAttrs(options);
  if (!defaults.ok()) return defaults.status();
  for (const TextNode& line : parsed->nodes) {
    for (const std::string& name : line.names) {
      const absl::StatusOr<tfplug::Node> node = graph.AddNode(name, line.op);
      if (!node.ok()) return node.status();
      node->SetDevice(line.device.value_or(DeviceName(options.device)));
      if (line.constant.has_value()) {
        const TextTensor& value = *line.constant;
        node->SetAttr("dtype", value.dtype);
        const absl::Status status =
            node->SetTensor("value", value.dtype, value.shape, value.elements);
        if (!status.ok()) return status;
      } else {
        for (const auto& [attr, bytes] : *defaults)
          node->SetRawAttr(attr, bytes);
        if (line.output.has_value() && options.item != nullptr) {
          options.item->outputs[name] = {
              {static_cast<capi::TF_DataType>(line.output->first),
               line.output->second, ""}};
        }
      }
      for (const auto& [attr, bytes] : line.attrs)
        node->SetRawAttr(attr, bytes);
      for (const std::string& attr : line.absent_attrs) node->RemoveAttr(attr);
    }
  }
  tfplug::Node last;
  for (const TextNode& line : parsed->nodes) {
    for (const std::string& name : line.names) {
      last = graph.FindNode(name);
      const absl::Status status = ConnectNode(graph, last, line);
      if (!status.ok()) return status;
    }
  }
  return last;
}

inline std::vector<std::string> InputNames(tfplug::Node node) {
  std::vector<std::string> names;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Output from = node.input(i);
    names.emplace_back(from.node ? from.node.name() : "(missing)");
    if (from.port != 0) absl::StrAppend(&names.back(), ":", from.port);
  }
  return names;
}
inline std::set<std::string> ControlNames(tfplug::Node node) {
  std::set<std::string> names;
  for (int i = 0; i < node.num_controls(); ++i) {
    names.emplace(node.control(i).name());
  }
  return names;
}

// Returns the text of a constant after its name, such as ": float[2] = [1, 2]".
inline std::string ConstantText(const Constant& constant) {
  const DataType type = constant.dtype();
  const std::string bytes = constant.GetBytes();
  std::vector<std::string> elements;
  for (size_t i = 0; i < bytes.size(); i += DataTypeSize(type)) {
    const auto value = primitives::ReadElement(type, &bytes[i]);
    elements.push_back(IsFloat(type)
                           ? FloatText(value.real, type == DataType::kDouble)
                           : absl::StrCat(static_cast<int64_t>(value.integer)));
  }
  const bool is_scalar = constant.shape().rank() == 0;
  const std::string list = absl::StrJoin(elements, ", ");
  return absl::StrCat(": ", DataTypeName(type),
                      is_scalar ? "" : constant.shape().ToString(), " = ",
                      is_scalar ? list : absl::StrCat("[", list, "]"));
}

inline std::string PrintNode(tfplug::Node node,
                             const GraphTextOptions& options) {
  std::map<std::string, std::string> attrs;
  for (const auto& [name, bytes] : node.GetAttrs()) {
    attrs[std::string(name)] = AttrText(bytes);
  }
  const auto defaults = DefaultAttrs(options);
  if (defaults.ok()) {
    for (const auto& [name, bytes] : *defaults) {
      const auto found = attrs.find(name);
      if (found != attrs.end() && found->second == AttrText(bytes))
        attrs.erase(found);
    }
  }
  std::string text(node.name());
  const absl::StatusOr<Constant> constant = Constant::Read(node);
  std::vector<std::string> inputs = InputNames(node);
  for (const std::string& control : ControlNames(node)) {
    inputs.push_back("^" + control);
  }
  if (constant.ok()) {
    text += ConstantText(*constant);
    attrs.erase("dtype");
    attrs.erase("value");
  } else {
    absl::StrAppend(&text, " = ", node.op());
  }
  if (!constant.ok() || !inputs.empty()) {
    absl::StrAppend(&text, constant.ok() ? " (" : "(",
                    absl::StrJoin(inputs, ", "), ")");
  }
  if (node.device() != DeviceName(options.device)) {
    absl::StrAppend(&text, " @", node.device());
  }
  if (attrs.empty()) return text;
  return absl::StrCat(
      text, " {", absl::StrJoin(attrs, ", ", absl::PairFormatter("=")), "}");
}

inline std::string PrintGraph(const Graph& graph,
                              const GraphTextOptions& options) {
  std::string text;
  for (const tfplug::Node node : graph.nodes()) {
    absl::StrAppend(&text, PrintNode(node, options), "\n");
  }
  return text;
}

// Returns whether a node is as a line describes it.
inline bool MatchesLine(tfplug::Node node, const TextNode& line,
                        const GraphTextOptions& options,
                        const std::map<std::string, std::string>& defaults) {
  const std::set<std::string> controls(line.controls.begin(),
                                       line.controls.end());
  if (node.op() != line.op || InputNames(node) != line.inputs ||
      ControlNames(node) != controls ||
      node.device() != line.device.value_or(DeviceName(options.device)))
    return false;
  std::map<std::string, std::string> expected;
  for (const auto& [name, bytes] : defaults) {
    if (node.HasAttr(name) && !line.constant.has_value())
      expected[name] = bytes;
  }
  for (const auto& [name, bytes] : line.attrs) expected[name] = bytes;
  for (const std::string& name : line.absent_attrs) {
    if (node.HasAttr(name)) return false;
  }
  for (const auto& [name, bytes] : expected) {
    if (AttrText(node.RawAttr(name)) != AttrText(bytes)) return false;
  }
  if (!line.constant.has_value()) return true;
  const absl::StatusOr<Constant> constant = Constant::Read(node);
  return constant.ok() && constant->dtype() == line.constant->dtype &&
         constant->shape() == line.constant->shape &&
         constant->GetBytes() == line.constant->elements;
}

inline std::string CompareGraph(const Graph& graph, absl::string_view text,
                                const GraphTextOptions& options) {
  const auto parsed = ParseGraphText(text);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const auto defaults = DefaultAttrs(options);
  if (!defaults.ok()) return std::string(defaults.status().message());
  std::string differences;
  std::set<std::string> listed;
  for (const TextNode& line : parsed->nodes) {
    for (const std::string& name : line.names) {
      listed.insert(name);
      const tfplug::Node node = graph.FindNode(name);
      if (node && MatchesLine(node, line, options, *defaults)) continue;
      absl::StrAppend(&differences, "- ", line.text, "\n");
      if (!node) continue;
      absl::StrAppend(&differences, "+ ", PrintNode(node, options), "\n");
    }
  }
  for (const tfplug::Node node : graph.nodes()) {
    const bool is_source = node.num_inputs() + node.num_controls() == 0;
    if (parsed->has_others || is_source ||
        listed.count(std::string(node.name())) > 0)
      continue;
    absl::StrAppend(&differences, "+ ", PrintNode(node, options), "\n");
  }
  return differences;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_GRAPH_TEXT_H_
