// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "graph_jobs.h"
#include "tfplug/graph/graph.h"

namespace {

using tfplug::Graph;
using tfplug::Node;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

enum class Kind : uint8_t { kOther, kContraction, kBias, kActivation };

// The kind of each op.
class Kinds {
 public:
  void Find(Graph& graph) {
    kinds_.clear();
    Set(graph, kContractions, Kind::kContraction);
    Set(graph, kBiases, Kind::kBias);
    Set(graph, kActivations, Kind::kActivation);
  }
  Kind operator[](Node node) const {
    return node.op_id() < kinds_.size() ? kinds_[node.op_id()] : Kind::kOther;
  }

 private:
  template <size_t kSize>
  void Set(Graph& graph, const std::string_view (&names)[kSize], Kind kind) {
    for (std::string_view name : names) {
      const uint32_t op = graph.OpId(ToAbsl(name));
      if (op >= kinds_.size()) kinds_.resize(op + 1);
      kinds_[op] = kind;
    }
  }
  std::vector<Kind> kinds_;
};

class ViewWorker : public Worker {
 public:
  int Run(Job job, std::string_view bytes, Output& out) override {
    auto parsed = Graph::Parse(ToAbsl(bytes), &workspace_);
    Check(parsed.status());
    Graph& graph = *parsed;
    if (job == Job::kIdle) return graph.has_op(ToAbsl(kAbsentOp));
    int fused = 0;
    if (job == Job::kOrder) {
      Check(graph.TopologicalOrder().status());
    } else {
      fused = Fuse(graph);
    }
    Check(graph.status());
    graph.WriteTo(out.Reserve(graph.ByteSize()));
    return fused;
  }

 private:
  int Fuse(Graph& graph) {
    kinds_.Find(graph);
    int fused = 0;
    for (std::string_view op : kActivations) {
      for (Node root : graph.nodes(ToAbsl(op))) {
        const Node bias = Inside(root, Kind::kBias);
        if (bias) fused += FuseBias(graph, root, root, bias);
      }
    }
    // Now the biases that no activation has taken.
    for (std::string_view op : kBiases) {
      for (Node root : graph.nodes(ToAbsl(op))) {
        fused += FuseBias(graph, root, Node(), root);
      }
    }
    return fused;
  }
  bool FuseBias(Graph& graph, Node root, Node activation, Node bias) {
    const Node product = Inside(bias, Kind::kContraction);
    if (!product || product.num_inputs() != 2 || bias.num_inputs() != 2) {
      return false;
    }
    Replace(graph, root, activation, bias, product);
    return true;
  }
  // The node at input 0 of `outer`, if it has this kind and no other use.
  Node Inside(Node outer, Kind kind) const {
    const Node inner = outer.input(0).node;
    const bool fits = inner && kinds_[inner] == kind && inner.num_uses() == 1 &&
                      inner.num_controls() == 0 &&
                      inner.device() == outer.device();
    return fits ? inner : Node();
  }
  void Replace(Graph& graph, Node root, Node activation, Node bias,
               Node product) {
    const std::string op(root.op());
    const tfplug::Output b = bias.input(1);
    fused_ops_.resize(activation ? 2 : 1);
    fused_ops_[0] = "BiasAdd";
    if (activation) fused_ops_[1] = op;
    root.SetOp(product.op() == "Conv2D" ? "_FusedConv2D" : "_FusedMatMul");
    root.CopyAttrs(product);
    root.SetAttr("fused_ops", fused_ops_);
    root.SetAttr("num_args", 1);
    root.SetAttr("epsilon", 0.0f);
    Check(root.SetInputs({product.input(0), product.input(1), b}));
    if (activation) Check(graph.RemoveNode(bias));
    Check(graph.RemoveNode(product));
  }

  tfplug::GraphWorkspace workspace_;
  Kinds kinds_;
  std::vector<std::string> fused_ops_;
};

}  // namespace

std::unique_ptr<Worker> MakeViewWorker() {
  return std::make_unique<ViewWorker>();
}
