// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_GRAPHS_H_
#define TFPLUG_CHECK_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "plugin.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/graph_text.h"
#include "tfplug/testing/op_spec.h"

// Checks of a plug-in's graph passes. Whatever a pass does, the graph that it
// returns must be one that TensorFlow accepts.
namespace tfplug::check {

// Defines an op that no plug-in knows.
inline void DefineUnknownOp() {
  testing::KnownOpDefs()["TfplugUnknown"] =
      testing::OpDefFromSpecs("TfplugUnknown", {"x: T"}, {"y: T"},
                              {"T: type", "setting: int"})
          .value();
}

// A graph, what TensorFlow states about it, and its serialized form.
struct Example {
  testing::TF_GrapplerItem item;
  std::string bytes;
  std::set<std::string> kept;       // preserved or fetched
  std::set<std::string> untouched;  // must keep op, device and attributes
};

inline std::string DeviceName(const std::string& type) {
  return "/job:localhost/replica:0/task:0/device:" + type + ":0";
}

// Returns the type and the shape that a text gives a node.
inline testing::TF_GrapplerItem::Property PropertyOf(
    const testing::TF_GrapplerItem& item, tfplug::Node node) {
  if (const auto constant = Constant::Read(node); constant.ok()) {
    return {static_cast<capi::TF_DataType>(constant->dtype()),
            PartialShape(constant->shape()), ""};
  }
  const auto found = item.outputs.find(std::string(node.name()));
  if (found != item.outputs.end()) return found->second[0];
  return {capi::TF_FLOAT, PartialShape(Shape({2, 4})), ""};
}

// Parses a text; nodes are on the plug-in's device.
inline std::unique_ptr<Example> MakeExample(Plugin& plugin,
                                            const std::string& text,
                                            std::set<std::string> kept) {
  auto example = std::make_unique<Example>();
  Graph graph;
  testing::GraphTextOptions options;
  options.device = DeviceName(plugin.graph()->device_type());
  options.attrs = "T=float";
  options.item = &example->item;
  const auto last = testing::AddNodes(graph, text, options);
  if (!plugin.report().Ok(last.status(), "the check's own graph")) {
    return nullptr;
  }
  for (const std::string& name : kept) {
    example->item.nodes_to_preserve.push_back(name);
    example->item.fetch_nodes.push_back(name);
  }
  for (const auto& node : graph.nodes()) {
    auto& inputs = example->item.inputs[std::string(node.name())];
    for (int i = 0; i < node.num_inputs(); ++i) {
      inputs.push_back(PropertyOf(example->item, node.input(i).node));
    }
    if (node.op() == "TfplugUnknown" || node.device() != options.device) {
      example->untouched.emplace(node.name());
    }
  }
  example->kept = std::move(kept);
  example->bytes = graph.ToString();
  std::string versions, function, signature, library;
  internal::AppendField(versions, 1, uint64_t{1395});
  internal::AppendField(example->bytes, 4, versions);
  internal::AppendField(signature, 1, std::string("tfplug_function"));
  internal::AppendField(function, 1, signature);
  internal::AppendField(library, 1, function);
  internal::AppendField(example->bytes, 2, library);
  return example;
}

// Describes a node, except its inputs.
inline std::string Describe(tfplug::Node node) {
  std::string text = absl::StrCat(node.op(), "@", node.device());
  std::set<std::string> attrs;
  for (const auto& [name, value] : node.GetAttrs()) {
    // Annotations of optimizers and of TensorFlow.
    if (!name.empty() && name[0] == '_') continue;
    attrs.insert(absl::StrCat(" ", name, "=", value));
  }
  for (const std::string& attr : attrs) text += attr;
  return text;
}

// Runs the passes, and reports what TensorFlow would reject in the result.
inline void Optimize(Plugin& plugin, const Example& example) {
  Report& report = plugin.report();
  report.Step("optimize_func");
  const GraphHost::Outcome outcome =
      plugin.graph()->Optimize(example.bytes, example.item);
  for (const absl::Status& status : outcome.runs) {
    if (!status.ok() && !absl::IsAborted(status)) {
      report.Error("optimize_func returns " + status.ToString());
    }
  }
  report.Step("reading the new graph");
  auto before = Graph::Parse(example.bytes);
  auto after = Graph::Parse(outcome.graph);
  if (!report.Ok(after.status(), "the new graph")) return;
  for (const auto& node : after->nodes()) {
    for (int i = 0; i < node.num_inputs(); ++i) node.input(i);
  }
  if (!report.Ok(after->Check(), "the new graph")) return;
  for (const std::string& name : example.kept) {
    report.Expect(static_cast<bool>(after->FindNode(name)),
                  "the pass removes '" + name +
                      "', which TensorFlow asked it to preserve");
  }
  for (const std::string& name : example.untouched) {
    const auto node = after->FindNode(name);
    if (!node) continue;
    const std::string was = Describe(before->FindNode(name));
    report.Expect(Describe(node) == was, "the pass changes '" + name +
                                             "', of an op or a device that " +
                                             "is not its own, from " + was +
                                             " to " + Describe(node));
  }
  bool has_versions = false, has_library = false;
  for (internal::WireReader field(outcome.graph); field.Next();) {
    has_versions = has_versions || field.number() == 4;
    has_library = has_library || field.number() == 2;
  }
  report.Expect(has_versions, "the pass drops GraphDef.versions");
  report.Expect(has_library, "the pass drops the graph's function library");
}

inline constexpr char kSmallGraph[] = R"(
x: float[2,4] = Placeholder() {dtype=float}
w: float[4,4] = Placeholder() {dtype=float}
b: float[4] = Placeholder() {dtype=float}
m: float[2,4] = MatMul(x, w) {transpose_a=false, transpose_b=false}
a: float[2,4] = BiasAdd(m, b) {data_format="NHWC"}
r: float[2,4] = Relu(a)
kept: float[2,4] = Identity(r)
u: float[2,4] = TfplugUnknown(r) {setting=7}
s: float[2,4] = AddV2(u, x)
t: float[2,4] = Mul(s, s)
out: float[2,4] = Identity(t, ^m)
)";

inline void CheckGraphRegistration(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  const auto configs = plugin.graph()->configs();
  constexpr size_t kFirst =
      offsetof(capi::TP_OptimizerConfigs, disable_model_pruning);
  const auto* const toggles = reinterpret_cast<const capi::TF_TriState*>(
      reinterpret_cast<const char*>(&configs) + kFirst);
  int off = 0;
  for (size_t i = 0; i < (sizeof(configs) - kFirst) / sizeof(*toggles); ++i) {
    const int value = static_cast<int>(toggles[i]);
    if (value == capi::TF_TriState_Off) ++off;
    plugin.report().Expect(
        value >= 0 && value <= 2,
        absl::StrCat("setting ", i, " of TP_OptimizerConfigs is ", value));
  }
  plugin.report().Note(absl::StrCat("passes for device type ",
                                    plugin.graph()->device_type(), "; ", off,
                                    " of TensorFlow's rewriters turned off for "
                                    "all devices of the process"));
}

inline void CheckGraphSmall(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  if (const auto example = MakeExample(plugin, kSmallGraph, {"kept", "out"})) {
    Optimize(plugin, *example);
  }
}

inline void CheckGraphEmpty(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  for (const std::string text : {"", "x: float[2] = Placeholder()\n"}) {
    plugin.report().Step(text.empty() ? "optimize_func on an empty graph"
                                      : "optimize_func on one node");
    auto example = text.empty() ? std::make_unique<Example>()
                                : MakeExample(plugin, text, {"x"});
    const auto outcome =
        plugin.graph()->Optimize(example->bytes, example->item);
    for (const absl::Status& status : outcome.runs) {
      if (absl::IsAborted(status)) continue;
      plugin.report().Ok(status, text.empty()
                                     ? "optimize_func on an empty graph"
                                     : "optimize_func on one node");
    }
  }
}

inline void CheckGraphForeignDevice(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  // Every second node is on a device of another plug-in; one has none yet.
  std::string text = absl::StrReplaceAll(
      kSmallGraph, {{" {transpose_a", " @FOREIGN_ACCELERATOR {transpose_a"},
                    {"Relu(a)", "Relu(a) @FOREIGN_ACCELERATOR"},
                    {"AddV2(u, x)", "AddV2(u, x) @FOREIGN_ACCELERATOR"}});
  if (const auto example = MakeExample(plugin, text, {"kept", "out"})) {
    Optimize(plugin, *example);
  }
}

inline void CheckGraphLarge(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  std::string text = "n0: float[2,4] = Placeholder() {dtype=float}\n";
  constexpr int kNodes = 5000;
  for (int i = 1; i <= kNodes; ++i) {
    const char* const op = i % 3 == 0 ? "Relu(n" : "Identity(n";
    absl::StrAppend(&text, "n", i, ": float[2,4] = ");
    if (i % 3 == 1 && i > 1) {
      absl::StrAppend(&text, "AddV2(n", i - 1, ", n", i - 2, ")\n");
    } else {
      absl::StrAppend(&text, op, i - 1, ")\n");
    }
  }
  const std::string last = absl::StrCat("n", kNodes);
  if (const auto example = MakeExample(plugin, text, {last})) {
    Optimize(plugin, *example);
  }
}

// A loop, whose back edge a pass must not take for a malformed graph.
inline void CheckGraphCyclic(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  const auto example = MakeExample(plugin, R"(
x: float[2,4] = Placeholder() {dtype=float}
p = Placeholder() {dtype=bool}
enter: float[2,4] = Enter(x) {frame_name="loop", is_constant=false, parallel_iterations=10}
merge: float[2,4] = Merge(enter, next) {N=2}
cond = LoopCond(p)
switch: float[2,4] = Switch(merge, cond)
body: float[2,4] = Relu(switch:1)
again: float[2,4] = AddV2(body, body)
next: float[2,4] = NextIteration(again)
out: float[2,4] = Exit(switch)
)",
                                   {"out"});
  if (example != nullptr) Optimize(plugin, *example);
}

// Graphs that TensorFlow does not pass on: the pass must fail, not crash.
inline void CheckGraphMalformed(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  const auto good = MakeExample(plugin, kSmallGraph, {"out"});
  if (good == nullptr) return;
  std::string dangling = good->bytes, twice = good->bytes, node;
  internal::AppendField(node, 1, std::string("dangling"));
  internal::AppendField(node, 2, std::string("Relu"));
  internal::AppendField(node, 3, std::string("missing:3"));
  internal::AppendField(dangling, 1, node);
  internal::AppendField(twice, 1, node.substr(0, 10) + node.substr(10));
  internal::AppendField(twice, 1, node);
  const std::pair<const char*, std::string> graphs[] = {
      {"bytes that are no GraphDef",
       std::string("\xff\xff\xff\xff\x01 nonsense")},
      {"a truncated GraphDef", good->bytes.substr(0, good->bytes.size() / 2)},
      {"an input from a missing node", dangling},
      {"two nodes of one name", twice}};
  for (const auto& [what, bytes] : graphs) {
    plugin.report().Step(absl::StrCat("optimize_func on ", what));
    plugin.graph()->Optimize(bytes, good->item, 1);
  }
}

inline void CheckGraphLeaks(Plugin& plugin) {
  if (plugin.graph() == nullptr) return;
  const auto example = MakeExample(plugin, kSmallGraph, {"kept", "out"});
  if (example == nullptr) return;
  plugin.report().Step("optimize_func");
  plugin.graph()->Optimize(example->bytes, example->item);
  const testing::LeakCheck leaks;
  for (int i = 0; i < 5; ++i) {
    plugin.graph()->Optimize(example->bytes, example->item);
  }
  const absl::Status status = leaks.Check();
  plugin.report().Expect(status.ok(), "five more runs of the passes: " +
                                          std::string(status.message()));
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_GRAPHS_H_
