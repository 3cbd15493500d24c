// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "graph_jobs.h"
#include "graph_opponents/message_memory.h"
#include "tfplug/proto/graph.pb.h"

namespace {

using tfplug::proto::AttrValue;
using tfplug::proto::GraphDef;
using tfplug::proto::NodeDef;
using GraphMemory = MessageMemory<GraphDef>;
using Set = absl::flat_hash_set<std::string_view>;

// The maps of names and of users that a pass over messages has to build itself.
class Edges {
 public:
  explicit Edges(const GraphDef& graph) : graph_(graph) {
    const int size = graph.node_size();
    numbers_.reserve(static_cast<size_t>(size));
    for (int n = 0; n < size; ++n) {
      is_valid_ &= numbers_.emplace(graph.node(n).name(), n).second;
    }
    users_.resize(static_cast<size_t>(size));
    for (int n = 0; n < size; ++n) {
      for (const std::string& input : graph.node(n).input()) {
        const int source = Find(input);
        if (source >= 0) users_[static_cast<size_t>(source)].push_back(n);
        is_valid_ &= source >= 0;
      }
    }
  }
  // Whether names are distinct and each input comes from a node.
  bool is_valid() const { return is_valid_; }
  // Returns the index of the node that an input refers to, or -1.
  int Find(std::string_view input) const {
    if (input.front() == '^') {
      input.remove_prefix(1);
    } else {
      const size_t colon = input.rfind(':');
      if (colon != input.npos) input = input.substr(0, colon);
    }
    const auto it = numbers_.find(input);
    return it == numbers_.end() ? -1 : it->second;
  }
  const absl::InlinedVector<int, 4>& users(int n) const {
    return users_[static_cast<size_t>(n)];
  }

  std::vector<int> Order() const {
    const int size = graph_.node_size();
    std::vector<int> waiting(static_cast<size_t>(size)), order;
    order.reserve(static_cast<size_t>(size));
    const auto closes_loop = [&](int from, int to) {
      return graph_.node(from).op() == "NextIteration" &&
             graph_.node(to).op() == "Merge";
    };
    bool is_sorted = true;
    for (int n = 0; n < size; ++n) {
      for (int user : users(n)) {
        is_sorted &= user > n || closes_loop(n, user);
      }
    }
    if (is_sorted) {
      for (int n = 0; n < size; ++n) order.push_back(n);
      return order;
    }
    for (int n = 0; n < size; ++n) {
      for (int user : users(n)) {
        if (!closes_loop(n, user)) ++waiting[static_cast<size_t>(user)];
      }
    }
    for (int n = 0; n < size; ++n) {
      if (waiting[static_cast<size_t>(n)] == 0) order.push_back(n);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (int user : users(order[i])) {
        if (closes_loop(order[i], user)) continue;
        if (--waiting[static_cast<size_t>(user)] == 0) order.push_back(user);
      }
    }
    return order;
  }

 private:
  const GraphDef& graph_;
  bool is_valid_ = true;
  absl::flat_hash_map<std::string_view, int> numbers_;
  std::vector<absl::InlinedVector<int, 4>> users_;
};

int NumControls(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) ++count;
  }
  return count;
}

class Fuser {
 public:
  explicit Fuser(GraphDef& graph)
      : graph_(graph),
        edges_(graph),
        removed_(static_cast<size_t>(graph.node_size())) {}

  bool is_valid() const { return edges_.is_valid(); }
  int Run() {
    int fused = 0;
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (removed_[static_cast<size_t>(n)]) continue;
      const NodeDef& root = graph_.node(n);
      int bias = n;
      bool has_activation = false;
      if (activations_.contains(root.op())) {
        has_activation = true;
        bias = Inside(n, biases_);
        if (bias < 0) continue;
      } else if (!biases_.contains(root.op())) {
        continue;
      } else if (Outermost(n)) {
        continue;
      }
      const int product = Inside(bias, contractions_);
      if (product < 0 || NumInputs(product) != 2 || NumInputs(bias) != 2) {
        continue;
      }
      Replace(n, has_activation, bias, product);
      ++fused;
    }
    Sweep();
    return fused;
  }

 private:
  int NumInputs(int n) const {
    return graph_.node(n).input_size() - NumControls(graph_.node(n));
  }
  int Inside(int outer, const Set& ops) const {
    const NodeDef& node = graph_.node(outer);
    if (node.input_size() == 0 || absl::StartsWith(node.input(0), "^"))
      return -1;
    const int inner = edges_.Find(node.input(0));
    if (inner < 0 || !ops.contains(graph_.node(inner).op()) ||
        edges_.users(inner).size() != 1 ||
        NumControls(graph_.node(inner)) != 0 ||
        graph_.node(inner).device() != node.device()) {
      return -1;
    }
    return inner;
  }
  bool Outermost(int bias) const {
    if (edges_.users(bias).size() != 1) return false;
    const NodeDef& user = graph_.node(edges_.users(bias)[0]);
    if (!activations_.contains(user.op()) ||
        NumControls(graph_.node(bias)) != 0 ||
        user.device() != graph_.node(bias).device()) {
      return false;
    }
    return user.input_size() > 0 && !absl::StartsWith(user.input(0), "^");
  }
  void Replace(int n, bool has_activation, int bias, int product) {
    NodeDef& root = *graph_.mutable_node(n);
    const NodeDef& inner = graph_.node(product);
    const std::string b = graph_.node(bias).input(1);
    AttrValue fused_ops;
    fused_ops.mutable_list()->add_s("BiasAdd");
    if (has_activation) fused_ops.mutable_list()->add_s(root.op());
    root.set_op(inner.op() == "Conv2D" ? "_FusedConv2D" : "_FusedMatMul");
    for (const auto& attr : inner.attr()) {
      (*root.mutable_attr())[attr.first] = attr.second;
    }
    (*root.mutable_attr())["fused_ops"] = fused_ops;
    (*root.mutable_attr())["num_args"].set_i(1);
    (*root.mutable_attr())["epsilon"].set_f(0);
    std::vector<std::string> inputs = {inner.input(0), inner.input(1), b};
    for (int i = has_activation ? 1 : 2; i < root.input_size(); ++i) {
      inputs.push_back(root.input(i));
    }
    root.clear_input();
    for (std::string& input : inputs) root.add_input(std::move(input));
    removed_[static_cast<size_t>(product)] = true;
    if (has_activation) removed_[static_cast<size_t>(bias)] = true;
  }
  void Sweep() {
    int kept = 0;
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (removed_[static_cast<size_t>(n)]) continue;
      if (kept != n) graph_.mutable_node()->SwapElements(kept, n);
      ++kept;
    }
    graph_.mutable_node()->DeleteSubrange(kept, graph_.node_size() - kept);
  }

  GraphDef& graph_;
  const Edges edges_;
  std::vector<bool> removed_;
  const Set contractions_ =
      Set(std::begin(kContractions), std::end(kContractions));
  const Set biases_ = Set(std::begin(kBiases), std::end(kBiases));
  const Set activations_ =
      Set(std::begin(kActivations), std::end(kActivations));
};

class MessageWorker : public Worker {
 public:
  explicit MessageWorker(std::string_view bytes) : memory_(bytes) {}

  int Run(Job job, std::string_view bytes, Output& out) override {
    const GraphMemory::Parsed parsed(memory_, bytes);
    if (parsed.graph == nullptr) return -1;
    GraphDef& graph = *parsed.graph;
    int fused = 0;
    if (job == Job::kIdle) {
      for (const NodeDef& node : graph.node()) fused += node.op() == kAbsentOp;
      return fused;
    }
    if (job == Job::kOrder) {
      const Edges edges(graph);
      if (!edges.is_valid() || edges.Order().empty()) return -1;
    } else {
      Fuser fuser(graph);
      if (!fuser.is_valid()) return -1;
      fused = fuser.Run();
    }
    Write(graph, out);
    return fused;
  }

 private:
  GraphMemory memory_;
};

}  // namespace

std::unique_ptr<Worker> MakeMessageWorker(std::string_view graph) {
  return std::make_unique<MessageWorker>(graph);
}

// Returns the message in a canonical form: equal messages give equal bytes.
static std::string Canonical(std::string_view bytes) {
  GraphDef graph;
  std::string text;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return text;
  }
  google::protobuf::io::StringOutputStream string(&text);
  google::protobuf::io::CodedOutputStream stream(&string);
  stream.SetSerializationDeterministic(true);
  graph.SerializeToCodedStream(&stream);
  return text;
}
bool SameMessage(std::string_view a, std::string_view b) {
  const std::string first = Canonical(a);
  return !first.empty() && first == Canonical(b);
}
