// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_FLAT_TABLES_H_
#define TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_FLAT_TABLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/hash/hash.h"
#include "worker.h"

// The tables of names, sources and users that an experienced author of a pass
// builds for a graph of messages: flat arrays, which are reused for the next
// graph.

// What the jobs need to know of an op.
enum class Kind : uint8_t {
  kOther,
  kContraction,
  kBias,
  kActivation,
  kNextIteration,
  kMerge,
};
inline Kind KindOf(std::string_view op) {
  switch (op.size()) {
    case 3:
      return op == "Mul" ? Kind::kContraction : Kind::kOther;
    case 4:
      return op == "Relu" || op == "Tanh" ? Kind::kActivation : Kind::kOther;
    case 5:
      return op == "AddV2"   ? Kind::kBias
             : op == "Relu6" ? Kind::kActivation
             : op == "Merge" ? Kind::kMerge
                             : Kind::kOther;
    case 6:
      return op == "Conv2D" || op == "MatMul" || op == "Einsum"
                 ? Kind::kContraction
                 : Kind::kOther;
    case 7:
      return op == "BiasAdd"   ? Kind::kBias
             : op == "Sigmoid" ? Kind::kActivation
                               : Kind::kOther;
    case 8:
      return op == "RefMerge" ? Kind::kMerge : Kind::kOther;
    case 13:
      return op == "BatchMatMulV2"   ? Kind::kContraction
             : op == "NextIteration" ? Kind::kNextIteration
                                     : Kind::kOther;
    case 16:
      return op == "RefNextIteration" ? Kind::kNextIteration : Kind::kOther;
    case 21:
      return op == "DepthwiseConv2dNative" ? Kind::kContraction : Kind::kOther;
    default:
      return Kind::kOther;
  }
}

// A table from names to nodes, with open addressing, at most half full.
class NameTable {
 public:
  template <class NameOf>
  int Build(int size, const NameOf& name_of) {
    size_t slots = 16;
    while (slots < static_cast<size_t>(size) * 2) slots *= 2;
    slots_.assign(slots, Slot{0, -1});
    int duplicates = 0;
    for (int n = 0; n < size; ++n) {
      const std::string_view name = name_of(n);
      const size_t hash = absl::Hash<std::string_view>()(name);
      Slot& slot = SlotOf(hash, name, name_of);
      if (slot.node >= 0) {
        ++duplicates;
      } else {
        slot = {static_cast<uint32_t>(hash >> 32), n};
      }
    }
    return duplicates;
  }
  // Returns -1 if there is no such node.
  template <class NameOf>
  int Find(std::string_view name, const NameOf& name_of) {
    return SlotOf(absl::Hash<std::string_view>()(name), name, name_of).node;
  }

 private:
  struct Slot {
    uint32_t check;
    int node;
  };
  template <class NameOf>
  Slot& SlotOf(size_t hash, std::string_view name, const NameOf& name_of) {
    const auto check = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].node >= 0 &&
           !(slots_[i].check == check && name_of(slots_[i].node) == name)) {
      i = (i + 1) & mask;
    }
    return slots_[i];
  }
  std::vector<Slot> slots_;
};

// `Nodes` has size(), name(n), op(n), device(n), num_inputs(n) and input(n, i).
class FlatTables {
 public:
  // Builds the tables of kinds, names and sources. Returns false if there are
  // duplicate names or inputs from missing nodes.
  template <class Nodes>
  bool Build(const Nodes& nodes) {
    const int size = nodes.size();
    const auto name_of = [&](int n) -> std::string_view {
      return nodes.name(n);
    };
    kinds_.resize(size);
    for (int n = 0; n < size; ++n) kinds_[n] = KindOf(nodes.op(n));
    if (names_.Build(size, name_of) != 0) return false;
    first_input_.resize(size + 1);
    sources_.clear();
    bool is_complete = true;
    for (int n = 0; n < size; ++n) {
      first_input_[n] = static_cast<int>(sources_.size());
      for (int i = 0, count = nodes.num_inputs(n); i < count; ++i) {
        const int source = names_.Find(NameOf(nodes.input(n, i)), name_of);
        is_complete &= source >= 0;
        sources_.push_back(source);
      }
    }
    first_input_[size] = static_cast<int>(sources_.size());
    return is_complete;
  }
  // Counts the users of each node.
  void CountUsers() {
    num_users_.assign(kinds_.size(), 0);
    for (int source : sources_) ++num_users_[source];
  }

  Kind kind(int n) const { return kinds_[n]; }
  int source(int n, int i) const { return sources_[first_input_[n] + i]; }
  int num_users(int n) const { return num_users_[n]; }

  // Sorts topologically. Returns false if there is a cycle.
  bool Sort() {
    const int size = static_cast<int>(kinds_.size());
    order_.clear();
    order_.reserve(size);
    if (IsSorted()) {
      for (int n = 0; n < size; ++n) order_.push_back(n);
      return true;
    }
    BuildUsers();
    waiting_.resize(size);
    for (int n = 0; n < size; ++n) {
      waiting_[n] = 0;
      for (int i = first_input_[n]; i < first_input_[n + 1]; ++i) {
        waiting_[n] += !ClosesLoop(sources_[i], n);
      }
      if (waiting_[n] == 0) order_.push_back(n);
    }
    for (size_t done = 0; done < order_.size(); ++done) {
      const int n = order_[done];
      for (int i = first_user_[n]; i < first_user_[n + 1]; ++i) {
        const int user = users_[i];
        if (!ClosesLoop(n, user) && --waiting_[user] == 0) {
          order_.push_back(user);
        }
      }
    }
    return order_.size() == kinds_.size();
  }

 private:
  // Builds the lists of users, in one array.
  void BuildUsers() {
    const int size = static_cast<int>(kinds_.size());
    first_user_.assign(size + 1, 0);
    for (int source : sources_) ++first_user_[source];
    int sum = 0;
    for (int& first : first_user_) first = sum += first;
    users_.resize(sources_.size());
    for (int n = size; n-- > 0;) {
      for (int i = first_input_[n + 1]; i-- > first_input_[n];) {
        users_[--first_user_[sources_[i]]] = n;
      }
    }
  }
  static std::string_view NameOf(std::string_view input) {
    if (input.front() == '^') return input.substr(1);
    size_t end = input.size();
    while (end > 1 && input[end - 1] >= '0' && input[end - 1] <= '9') --end;
    return end < input.size() && end > 1 && input[end - 1] == ':'
               ? input.substr(0, end - 1)
               : input;
  }
  bool ClosesLoop(int from, int to) const {
    return kinds_[to] == Kind::kMerge && kinds_[from] == Kind::kNextIteration;
  }
  bool IsSorted() const {
    for (int n = 0; n < static_cast<int>(kinds_.size()); ++n) {
      for (int i = first_input_[n]; i < first_input_[n + 1]; ++i) {
        if (sources_[i] >= n && !ClosesLoop(sources_[i], n)) return false;
      }
    }
    return true;
  }

  std::vector<Kind> kinds_;
  NameTable names_;
  // The inputs of node n have indices from first_input_[n] to
  // first_input_[n + 1] in sources_; likewise its users.
  std::vector<int> first_input_, sources_;
  std::vector<int> num_users_, first_user_, users_;
  std::vector<int> waiting_, order_;
};

// The job "fuse". Calls nodes.Replace(root, bias, product) for each match and
// nodes.Remove(removed) at the end. Returns the number of matches.
template <class Nodes>
class FlatFuser {
 public:
  FlatFuser(Nodes& nodes, const FlatTables& tables, std::vector<char>& removed)
      : nodes_(nodes), tables_(tables), removed_(removed) {
    removed_.assign(nodes.size(), 0);
  }

  int Run() {
    int fused = 0;
    const int size = nodes_.size();
    for (int n = 0; n < size; ++n) {
      if (tables_.kind(n) != Kind::kActivation) continue;
      const int bias = Inside(n, Kind::kBias);
      if (bias >= 0) fused += FuseBias(n, bias);
    }
    // Now the biases that no activation has taken.
    for (int n = 0; n < size; ++n) {
      if (tables_.kind(n) == Kind::kBias && !removed_[n]) {
        fused += FuseBias(n, n);
      }
    }
    nodes_.Remove(removed_);
    return fused;
  }

 private:
  bool FuseBias(int root, int bias) {
    const int product = Inside(bias, Kind::kContraction);
    if (product < 0 || NumData(product) != 2 || NumData(bias) != 2) {
      return false;
    }
    nodes_.Replace(root, bias, product);
    removed_[product] = 1;
    if (bias != root) removed_[bias] = 1;
    return true;
  }
  static bool IsControl(std::string_view input) { return input[0] == '^'; }
  int NumData(int n) const {
    int count = nodes_.num_inputs(n);
    while (count > 0 && IsControl(nodes_.input(n, count - 1))) --count;
    return count;
  }
  bool HasControls(int n) const {
    const int count = nodes_.num_inputs(n);
    return count > 0 && IsControl(nodes_.input(n, count - 1));
  }
  // The node at input 0 of `outer`, or -1 if it cannot be fused.
  int Inside(int outer, Kind kind) const {
    if (NumData(outer) == 0) return -1;
    const int inner = tables_.source(outer, 0);
    const bool fits = tables_.kind(inner) == kind &&
                      tables_.num_users(inner) == 1 && !HasControls(inner) &&
                      nodes_.device(inner) == nodes_.device(outer);
    return fits ? inner : -1;
  }

  Nodes& nodes_;
  const FlatTables& tables_;
  std::vector<char>& removed_;
};

// Runs a job between parsing and writing, and returns the result of
// Worker::Run.
class FlatJobs {
 public:
  template <class Nodes>
  int Run(Job job, Nodes nodes) {
    int found = 0;
    if (job == Job::kIdle) {
      for (int n = 0; n < nodes.size(); ++n) found += nodes.op(n) == kAbsentOp;
      return found;
    }
    if (!tables_.Build(nodes)) return -1;
    if (job == Job::kOrder) return tables_.Sort() ? 0 : -1;
    tables_.CountUsers();
    return FlatFuser<Nodes>(nodes, tables_, removed_).Run();
  }

 private:
  FlatTables tables_;
  std::vector<char> removed_;
};

#endif  // TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_FLAT_TABLES_H_
