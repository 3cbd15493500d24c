// SPDX-License-Identifier: Apache-2.0
// The jobs with the protobuf and the messages that TensorFlow's wheel exports,
// by an experienced author: an arena in memory that is allocated in advance,
// attributes that are moved, and flat tables.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flat_tables.h"
#include "message_memory.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "worker.h"

namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using GraphMemory = MessageMemory<GraphDef>;

class Nodes {
 public:
  explicit Nodes(GraphDef& graph) : nodes_(*graph.mutable_node()) {}

  int size() const { return nodes_.size(); }
  std::string_view name(int n) const { return nodes_[n].name(); }
  std::string_view op(int n) const { return nodes_[n].op(); }
  std::string_view device(int n) const { return nodes_[n].device(); }
  int num_inputs(int n) const { return nodes_[n].input_size(); }
  std::string_view input(int n, int i) const { return nodes_[n].input(i); }

  // Takes inputs and attributes from the inner nodes, which are then removed.
  void Replace(int n, int bias, int product) {
    NodeDef& root = nodes_[n];
    NodeDef& inner = nodes_[product];
    const bool has_activation = bias != n;
    tensorflow::AttrValue fused_ops;
    fused_ops.mutable_list()->add_s("BiasAdd");
    if (has_activation) fused_ops.mutable_list()->add_s(root.op());
    auto& attrs = *root.mutable_attr();
    for (auto& attr : *inner.mutable_attr()) {
      attrs[attr.first] = std::move(attr.second);
    }
    attrs["fused_ops"] = std::move(fused_ops);
    attrs["num_args"].set_i(1);
    attrs["epsilon"].set_f(0);
    // Inputs: the product's two, the bias, the remaining ones of the root.
    auto& inputs = *root.mutable_input();
    std::string b = std::move(*nodes_[bias].mutable_input(1));
    const int size = inputs.size();
    if (has_activation) {
      root.add_input();
      root.add_input();
      for (int i = size; i-- > 1;) inputs.SwapElements(i, i + 2);
    } else {
      root.add_input();
      for (int i = size; i-- > 2;) inputs.SwapElements(i, i + 1);
    }
    inputs[0] = std::move(*inner.mutable_input(0));
    inputs[1] = std::move(*inner.mutable_input(1));
    inputs[2] = std::move(b);
    root.set_op(inner.op() == "Conv2D" ? "_FusedConv2D" : "_FusedMatMul");
  }
  void Remove(const std::vector<char>& removed) {
    int kept = 0;
    for (int n = 0; n < size(); ++n) {
      if (removed[n]) continue;
      if (kept != n) nodes_.SwapElements(kept, n);
      ++kept;
    }
    nodes_.DeleteSubrange(kept, size() - kept);
  }

 private:
  google::protobuf::RepeatedPtrField<NodeDef>& nodes_;
};

class WheelWorker : public Worker {
 public:
  explicit WheelWorker(std::string_view bytes) : memory_(bytes) {}

  int Run(Job job, std::string_view bytes, Output& out) override {
    const GraphMemory::Parsed parsed(memory_, bytes);
    if (parsed.graph == nullptr) return -1;
    const int found = jobs_.Run(job, Nodes(*parsed.graph));
    if (found >= 0 && job != Job::kIdle) Write(*parsed.graph, out);
    return found;
  }

 private:
  GraphMemory memory_;
  FlatJobs jobs_;
};

}  // namespace

Worker* MakeWorker(std::string_view graph) { return new WheelWorker(graph); }
