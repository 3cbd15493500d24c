// SPDX-License-Identifier: Apache-2.0
// Times every kind of edit of a node with N inputs, control inputs, uses or
// attributes, N times each: see benchmarks/graph.py --stress.
//
//   graph_stress N   prints a line "NAME NANOSECONDS" for each kind: the time
//                    of a single edit
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "processor_time.h"
#include "tfplug/graph/graph.h"

namespace {

using tfplug::Graph;
using tfplug::Input;
using tfplug::Node;
using tfplug::Output;
using tfplug::Use;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// Returns nodes x0, x1, ..., and a node "wide" with all of them as inputs.
std::string WideGraph(int count, const char* prefix) {
  std::string graph, wide;
  tfplug::internal::AppendField(wide, 1, "wide");
  tfplug::internal::AppendField(wide, 2, "AddN");
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("x", i);
    std::string node;
    tfplug::internal::AppendField(node, 1, name);
    tfplug::internal::AppendField(node, 2, "Const");
    tfplug::internal::AppendField(graph, 1, node);
    tfplug::internal::AppendField(wide, 3, prefix + name);
  }
  tfplug::internal::AppendField(graph, 1, wide);
  return graph;
}

class Stress {
 public:
  explicit Stress(int count) : count_(count) {}

  void Inputs() {
    Start("");
    Time("input(i)", [&](int i) { sum_ += wide_.input(i).port; });
    TimeOnce("inputs()", [&] {
      for (Input input : wide_.inputs()) sum_ += input.index;
    });
    TimeOnce("uses() of the sources", [&] {
      for (Node node : x_) {
        for (Use use : node.uses()) sum_ += use.input;
      }
    });
    Time("SetInput", [&](int i) { Check(wide_.SetInput(i, {X(i), 1})); });
    Time("AddInput", [&](int i) { Check(wide_.AddInput(X(i))); });
    Time("RemoveInput, first", [&](int) { Check(wide_.RemoveInput(0)); });
    Time("RemoveInput, middle",
         [&](int) { Check(wide_.RemoveInput(wide_.num_inputs() / 2)); });
    Time("SetName of a source",
         [&](int i) { Check(X(i).SetName(absl::StrCat("renamed", i))); });
    TimeOnce("ByteSize and WriteTo", [&] { sum_ += graph_.ToString()[0]; });
  }

  void Controls() {
    Start("^");
    Time("AddControl, existing", [&](int i) { Check(wide_.AddControl(X(i))); });
    const Node other = graph_.AddNode("other", "NoOp").value();
    Time("AddControl, new", [&](int i) { Check(other.AddControl(X(i))); });
    TimeOnce("controls()", [&] {
      for (Node node : wide_.controls()) sum_ += node.id();
    });
    std::vector<Node> y;
    for (int i = 0; i < count_; ++i) {
      y.push_back(graph_.AddNode(absl::StrCat("y", i), "Const").value());
    }
    Time("ReplaceNode", [&](int i) {
      Check(graph_.ReplaceNode(X(i), y[static_cast<size_t>(i)]));
    });
    Time("RemoveControl",
         [&](int i) { Check(other.RemoveControl(y[static_cast<size_t>(i)])); });
    TimeOnce("RemoveNode", [&] { Check(graph_.RemoveNode(wide_)); });
  }

  void Uses() {
    Graph graph;
    const Node hub = graph.AddNode("hub", "Const").value();
    const Node next = graph.AddNode("next", "Const").value();
    for (int i = 0; i < count_; ++i) {
      const Node user = graph.AddNode(absl::StrCat("u", i), "Neg").value();
      Check(user.AddInput(hub));
      Check(user.AddControl(hub));
    }
    TimeOnce("SetName of a node with N users",
             [&] { Check(hub.SetName("renamed")); });
    TimeOnce("ReplaceUses, N users",
             [&] { Check(graph.ReplaceUses(hub, next)); });
    TimeOnce("ReplaceNode, N users",
             [&] { Check(graph.ReplaceNode(hub, next)); });
  }

  void Attributes() {
    Graph graph;
    const Node node = graph.AddNode("node", "Op").value();
    Time("SetAttr, new", [&](int i) { node.SetAttr(absl::StrCat("a", i), i); });
    Time("SetAttr, existing",
         [&](int i) { node.SetAttr(absl::StrCat("a", i), -i); });
    Time("RemoveAttr", [&](int i) { node.RemoveAttr(absl::StrCat("a", i)); });
  }

  // Adds an input from the wide node to every source.
  void Cycle() {
    Start("");
    for (Node node : x_) Check(node.AddInput(wide_));
    TimeOnce("TopologicalOrder of a cycle",
             [&] { sum_ += graph_.TopologicalOrder().ok() ? 1 : 0; });
  }

  int64_t sum() const { return sum_; }

 private:
  void Start(const char* prefix) {
    auto graph = Graph::Parse(WideGraph(count_, prefix));
    Check(graph.status());
    graph_ = *std::move(graph);
    wide_ = graph_.FindNode("wide");
    x_.clear();
    for (Node node : graph_.nodes("Const")) x_.push_back(node);
    sum_ += wide_.num_uses();  // Builds all tables.
  }
  Node X(int i) const { return x_[static_cast<size_t>(i)]; }
  template <class F>
  void TimeOnce(const char* name, const F& edit) {
    std::printf("%s\t%.1f\n", name, Seconds(edit) * 1e9 / count_);
  }
  template <class F>
  void Time(const char* name, const F& edit) {
    TimeOnce(name, [&] {
      for (int i = 0; i < count_; ++i) edit(i);
    });
  }

  const int count_;
  Graph graph_;
  Node wide_;
  std::vector<Node> x_;
  int64_t sum_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (count <= 0) return 2;
  Stress stress(count);
  stress.Inputs();
  stress.Controls();
  stress.Uses();
  stress.Attributes();
  stress.Cycle();
  return stress.sum() == -1 ? 1 : 0;
}
