// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_INDEX_H_
#define TFPLUG_GRAPH_INTERNAL_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/fields.h"
#include "tfplug/graph/internal/memory.h"
#include "tfplug/graph/internal/names.h"
#include "tfplug/graph/internal/ops.h"

namespace tfplug::internal {

// A node whose fields are in another order, and its fields in that of
// NodeFields.
struct DisorderedNode {
  uint32_t node;
  absl::string_view in_order;
};

// Of a node: the field in the GraphDef, tag included; where its inputs begin,
// and what follows on them (both 0 in a disordered node); and the number of the
// first input among all.
struct NodeRecord {
  uint32_t begin;
  uint32_t size;
  uint32_t inputs;
  uint32_t rest;
  uint32_t first_edge;
};

// What one pass over the graph's bytes finds: arrays by node.
struct GraphIndex {
  const char* base = nullptr;
  Array<NodeRecord> records;  // One more than there are nodes.
  NodeNames names;
  Array<uint32_t> ops;
  OpTable op_table;
  Array<DisorderedNode> disordered;

  uint32_t num_nodes() const { return static_cast<uint32_t>(ops.size()); }
  // The inputs of node `n` are numbers [first_edge(n), first_edge(n + 1)).
  uint32_t first_edge(uint32_t n) const { return records[n].first_edge; }
  // Of a node in order: its inputs, and what follows on them.
  absl::string_view inputs(uint32_t n) const {
    return absl::string_view(base + records[n].inputs,
                             records[n].rest - records[n].inputs);
  }
  absl::string_view rest(uint32_t n) const {
    const NodeRecord& record = records[n];
    return absl::string_view(base + record.rest,
                             record.begin + record.size - record.rest);
  }

  void Clear() {
    base = nullptr;
    records.Assign(1, NodeRecord{});
    names.Clear(nullptr);
    ops.clear();
    op_table.Clear();
    disordered.clear();
  }

  // Of `bytes`, in which nodes are the field `node_field`: 1 of a GraphDef, 3
  // of a FunctionDef. `memory` and `bytes` live as long as the index is used.
  absl::Status Build(absl::string_view bytes, uint32_t node_field,
                     Arena& memory) {
    Clear();
    base = bytes.data();
    names.Clear(base);
    const char* const end = base + bytes.size();
    const char node_tag = static_cast<char>(MakeTag(node_field, kBytesType));
    uint32_t n = 0, num_edges = 0;
    const char* p = base;
    while (p < end) {
      const char* const begin = p;
      uint32_t size = 0;
      if (ABSL_PREDICT_TRUE(*p == node_tag)) {
        p = ReadLength(p + 1, end, &size);
      } else {
        uint32_t tag = 0;
        p = ReadTag(p, end, &tag);
        if (p != nullptr && tag != MakeTag(node_field, kBytesType)) {
          p = SkipValue(p, end, tag);
          if (p == nullptr) return Malformed(begin);
          continue;
        }
        if (p != nullptr) p = ReadLength(p, end, &size);
      }
      if (ABSL_PREDICT_FALSE(p == nullptr)) return Malformed(begin);
      const char* const fields = p;
      p += size;
      if (ABSL_PREDICT_FALSE(n + 1 >= records.capacity())) {
        Reserve(n, bytes.size(), static_cast<size_t>(begin - base));
      }
      NodeFields node;
      if (ABSL_PREDICT_TRUE(FindFields(fields, p, &node))) {
        names.Put(n, {Offset(node.name.data()),
                      static_cast<uint32_t>(node.name.size())});
        ops[n] = op_table.Count(node.op, end);
        records[n] = {Offset(begin), static_cast<uint32_t>(p - begin),
                      Offset(node.inputs), Offset(node.rest), num_edges};
      } else {
        const absl::string_view sorted =
            InOrder(absl::string_view(fields, size), memory);
        if (sorted.data() == nullptr ||
            !FindFields(sorted.data(), sorted.data() + sorted.size(), &node)) {
          return Malformed(begin);
        }
        disordered.PushBack({n, sorted});
        names.Put(n, {0, 0});
        ops[n] = op_table.Count(node.op, node.op.data());
        records[n] = {Offset(begin), static_cast<uint32_t>(p - begin), 0, 0,
                      num_edges};
      }
      num_edges += node.num_inputs;
      ++n;
    }
    Reserve(n, 0, 1);
    records[n] = {0, 0, 0, 0, num_edges};
    records.Resize(n + 1);
    names.Resize(n);
    ops.Resize(n);
    return absl::OkStatus();
  }

 private:
  static constexpr uint32_t kFirst = 256;

  // Makes room for node `n` and for the record behind it; those before it stay.
  // There is room then for the rest of `all` bytes, if its nodes are like those
  // in the `done` ones that have been read.
  void Reserve(uint32_t n, size_t all, size_t done) {
    if (n + 1 < records.capacity()) return;
    const size_t likely = n == 0 ? 0 : n * (all + all / 64) / done;
    // Not much more than there are by now: constants may follow.
    const size_t capacity =
        std::max<size_t>({kFirst, n + n / 2, std::min<size_t>(likely, 64 * n)});
    records.Resize(n);
    records.Reserve(capacity);
    names.Resize(n);
    names.Reserve(capacity);
    ops.Resize(n);
    ops.Reserve(capacity);
  }
  uint32_t Offset(const char* p) const {
    return static_cast<uint32_t>(p - base);
  }
  absl::Status Malformed(const char* at) const {
    return absl::InvalidArgumentError(
        "these bytes are no GraphDef: what begins at byte " +
        std::to_string(at - base) + " is not well-formed");
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_INDEX_H_
