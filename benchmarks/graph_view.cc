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

// A set of op ids.
class Ops {
 public:
  template <size_t kSize>
  Ops(Graph& graph, const std::string_view (&names)[kSize]) {
    for (std::string_view name : names) {
      const uint32_t op = graph.OpId(ToAbsl(name));
      if (op >= has_.size()) has_.resize(op + 1);
      has_[op] = true;
    }
  }
  bool Has(Node node) const {
    return node.op_id() < has_.size() && has_[node.op_id()];
  }

 private:
  std::vector<char> has_;
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
    const Ops contractions(graph, kContractions);
    const Ops biases(graph, kBiases);
    const Ops activations(graph, kActivations);
    int fused = 0;
    // The node at input 0 of `outer`, if it has one of `ops` and no other use.
    const auto inside = [](Node outer, const Ops& ops) {
      const Node inner = outer.input(0).node;
      const bool fits = inner && ops.Has(inner) && inner.num_uses() == 1 &&
                        inner.num_controls() == 0 &&
                        inner.device() == outer.device();
      return fits ? inner : Node();
    };
    for (Node root : graph.nodes()) {
      Node bias = root, activation;
      if (activations.Has(root)) {
        activation = root;
        bias = inside(root, biases);
        if (!bias) continue;
      } else if (!biases.Has(root)) {
        continue;
      } else if (Outermost(root, activations)) {
        continue;
      }
      const Node product = inside(bias, contractions);
      if (!product || product.num_inputs() != 2 || bias.num_inputs() != 2) {
        continue;
      }
      Replace(graph, root, activation, bias, product);
      ++fused;
    }
    return fused;
  }
  // Whether an activation will be fused with the bias.
  static bool Outermost(Node bias, const Ops& activations) {
    if (bias.num_uses() != 1) return false;
    for (tfplug::Use use : bias.uses()) {
      if (!use.is_control() && activations.Has(use.node) &&
          bias.num_controls() == 0 && use.node.device() == bias.device()) {
        return true;
      }
    }
    return false;
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
    Check(root.SetInput(0, product.input(0)));
    Check(root.SetInput(1, product.input(1)));
    Check(root.AddInput(b));
    if (activation) Check(graph.RemoveNode(bias));
    Check(graph.RemoveNode(product));
  }

  tfplug::GraphWorkspace workspace_;
  std::vector<std::string> fused_ops_;
};

}  // namespace

std::unique_ptr<Worker> MakeViewWorker() {
  return std::make_unique<ViewWorker>();
}
