// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_GRAPH_INDEX_H_
#define TFPLUG_GRAPH_INTERNAL_GRAPH_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/memory.h"
#include "tfplug/graph/internal/node_fields.h"
#include "tfplug/graph/internal/node_names.h"
#include "tfplug/graph/internal/op_table.h"
#include "tfplug/graph/internal/reference.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// A node whose fields are not in the usual order, and a copy of its bytes in
// that order.
struct ReorderedNode {
  uint32_t node;
  absl::string_view fields;
};

// The position of a node in the graph's bytes.
struct NodeRecord {
  uint32_t begin;  // Of the field, including the tag.
  uint32_t size;
  uint32_t inputs;      // See NodeFields; 0 for a reordered node.
  uint32_t tail;        // Likewise.
  uint32_t first_edge;  // The index of its first input among all inputs.
};

// The source of an input. Edges are never reused: a changed input gets a new
// edge, and the old edge ends: its source becomes kNoNode. Until the edges of
// the parsed nodes are built, an edge holds the position of the input's text in
// the graph's bytes instead, and its size; if names are hashed while the graph
// is parsed, it holds only the port.
struct Edge {
  uint32_t source;
  int32_t port;
};

// The hashes of the names of all nodes and sources, if they are computed while
// the graph is parsed. In a graph that exceeds the processor's L2 cache,
// reading the names again takes longer. In other graphs, names are not hashed
// before a pass needs edges or finds a node by name.
struct ParsedHashes {
  Array<uint64_t> nodes, edges;
  uint32_t num_controls = 0;

  void Clear() {
    nodes.clear();
    edges.clear();
    num_controls = 0;
  }
};

// Appends the inputs of nodes to an array of edges; see Edge.
template <bool kIsHashed>
class InputSink {
 public:
  InputSink(Array<Edge>& edges, ParsedHashes& hashes, const char* base)
      : edges_(edges), hashes_(hashes), base_(base) {
    if (kIsHashed) hashes.edges.Reserve(edges.capacity());
    Continue(0);
  }

  uint32_t size() const { return static_cast<uint32_t>(next_ - edges_.data()); }
  void Truncate(uint32_t size) {
    next_ = edges_.data() + size;
    if (kIsHashed) next_hash_ = hashes_.edges.data() + size;
  }
  // Ignores an input that extends beyond `end`.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Add(absl::string_view text,
                                        const char* end) {
    if (ABSL_PREDICT_FALSE(next_ == end_)) {
      const uint32_t count = size();
      Grow(edges_, hashes_, count);
      Continue(count);
    }
    if constexpr (kIsHashed) {
      if (ABSL_PREDICT_FALSE(text.data() + text.size() > end)) return;
      uint32_t num_controls = 0;
      const Reference reference = ParseReference(text, &num_controls);
      num_controls_ += num_controls;
      *next_hash_++ = HashInline(reference.name, key_);
      *next_++ = {kNoNode, reference.port};
    } else {
      *next_++ = {static_cast<uint32_t>(text.data() - base_),
                  static_cast<int32_t>(text.size())};
    }
  }
  void Finish() {
    edges_.Resize(size());
    if (!kIsHashed) return;
    hashes_.edges.Resize(size());
    hashes_.num_controls = num_controls_;
  }

 private:
  // Is not a member function, so that next_ and end_ can be in registers.
  ABSL_ATTRIBUTE_NOINLINE static void Grow(Array<Edge>& edges,
                                           ParsedHashes& hashes,
                                           uint32_t count) {
    edges.Resize(count);
    edges.Reserve(std::max<size_t>(256, edges.capacity() * 2));
    if (!kIsHashed) return;
    hashes.edges.Resize(count);
    hashes.edges.Reserve(edges.capacity());
  }
  void Continue(uint32_t count) {
    Truncate(count);
    end_ = edges_.data() + edges_.capacity();
  }

  Array<Edge>& edges_;
  ParsedHashes& hashes_;
  const char* const base_;
  const HashKey& key_ = ProcessHashKey();
  uint32_t num_controls_ = 0;
  Edge* next_;
  const Edge* end_;
  uint64_t* next_hash_ = nullptr;  // if kIsHashed
};

// The result of one pass over the graph's bytes: arrays indexed by node.
struct GraphIndex {
  const char* base = nullptr;
  Array<NodeRecord> records;  // One for each node, and one for the end.
  NodeNames names;
  Array<uint32_t> ops;
  OpTable op_table;
  Array<ReorderedNode> reordered;
  ParsedHashes hashes;

  // Returns whether Build() hashes names.
  static bool IsHashed(absl::string_view graph_def) {
    return graph_def.size() > size_t{1} << 20;
  }
  uint32_t num_nodes() const { return static_cast<uint32_t>(ops.size()); }
  // The inputs of node `n` are the edges [first_edge(n), first_edge(n + 1)).
  uint32_t first_edge(uint32_t n) const { return records[n].first_edge; }
  // Return the bytes of the inputs and of the tail of a node that is not
  // reordered.
  absl::string_view input_bytes(uint32_t n) const {
    return absl::string_view(base + records[n].inputs,
                             records[n].tail - records[n].inputs);
  }
  absl::string_view tail(uint32_t n) const {
    const NodeRecord& record = records[n];
    return absl::string_view(base + record.tail,
                             record.begin + record.size - record.tail);
  }

  void Clear() {
    base = nullptr;
    records.Assign(1, NodeRecord{});
    names.Clear(nullptr);
    ops.clear();
    op_table.Clear();
    reordered.clear();
    hashes.Clear();
  }

  // Indexes `bytes`, in which nodes are the field `node_field`: 1 in a
  // GraphDef, 3 in a FunctionDef. Stores the inputs of all nodes in `edges`,
  // except for the positions of inputs of reordered nodes. `memory` and `bytes`
  // must outlive the index.
  absl::Status Build(absl::string_view bytes, uint32_t node_field,
                     Arena& memory, Array<Edge>& edges) {
    return node_field == 1 && IsHashed(bytes)
               ? Build<true>(bytes, node_field, memory, edges)
               : Build<false>(bytes, node_field, memory, edges);
  }

 private:
  static constexpr uint32_t kFirst = 256;

  template <bool kIsHashed>
  absl::Status Build(absl::string_view bytes, uint32_t node_field,
                     Arena& memory, Array<Edge>& edges) {
    Clear();
    base = bytes.data();
    names.Clear(base);
    const char* const end = base + bytes.size();
    const char node_tag =
        static_cast<char>(internal::MakeTag(node_field, internal::kBytesType));
    uint32_t n = 0, first_edge = 0;
    InputSink<kIsHashed> inputs(edges, hashes, base);
    const HashKey& key = ProcessHashKey();
    const char* p = base;
    while (p < end) {
      const char* const begin = p;
      uint32_t size = 0;
      if (ABSL_PREDICT_TRUE(*p == node_tag)) {
        p = internal::ReadLength(p + 1, end, &size);
      } else {
        uint32_t tag = 0;
        p = internal::ReadTag(p, end, &tag);
        if (p != nullptr &&
            tag != internal::MakeTag(node_field, internal::kBytesType)) {
          p = internal::SkipValue(p, end, tag);
          if (p == nullptr) return Malformed(begin);
          continue;
        }
        if (p != nullptr) p = internal::ReadLength(p, end, &size);
      }
      if (ABSL_PREDICT_FALSE(p == nullptr)) return Malformed(begin);
      const char* const fields = p;
      p += size;
      if (ABSL_PREDICT_FALSE(n + 1 >= records.capacity())) {
        Reserve(n, bytes.size(), static_cast<size_t>(begin - base));
        if (kIsHashed) {
          hashes.nodes.Resize(n);
          hashes.nodes.Reserve(records.capacity());
        }
      }
      NodeFields node;
      const auto add_input = [&](absl::string_view text) {
        inputs.Add(text, p);
      };
      if (ABSL_PREDICT_TRUE(FindFields(fields, p, &node, add_input))) {
        names.Put(n, {Offset(node.name.data()),
                      static_cast<uint32_t>(node.name.size())});
        ops[n] = op_table.CountNode(node.op, end);
        records[n] = {Offset(begin), static_cast<uint32_t>(p - begin),
                      Offset(node.inputs), Offset(node.tail), first_edge};
      } else {
        const absl::string_view fields_in_order =
            Reorder(absl::string_view(fields, size), memory);
        const char* const end_in_order =
            fields_in_order.data() + fields_in_order.size();
        inputs.Truncate(first_edge);
        if (fields_in_order.data() == nullptr ||
            !FindFields(fields_in_order.data(), end_in_order, &node,
                        [&](absl::string_view text) {
                          inputs.Add(text, end_in_order);
                        })) {
          return Malformed(begin);
        }
        reordered.PushBack({n, fields_in_order});
        names.Put(n, {0, 0});
        ops[n] = op_table.CountNode(node.op, node.op.data());
        records[n] = {Offset(begin), static_cast<uint32_t>(p - begin), 0, 0,
                      first_edge};
      }
      if (kIsHashed) hashes.nodes[n] = HashInline(node.name, key);
      first_edge = inputs.size();
      ++n;
    }
    Reserve(n, 0, 1);
    records[n] = {0, 0, 0, 0, first_edge};
    inputs.Finish();
    if (kIsHashed) hashes.nodes.Resize(n);
    records.Resize(n + 1);
    names.Resize(n);
    ops.Resize(n);
    return absl::OkStatus();
  }

  // Reserves memory for node `n` and the next record. Estimates the number of
  // nodes in `all` bytes from the `n` nodes in the first `done` bytes.
  void Reserve(uint32_t n, size_t all, size_t done) {
    if (n + 1 < records.capacity()) return;
    const size_t likely = n == 0 ? 0 : n * (all + all / 64) / done;
    // It is limited, because the remaining bytes may be one large constant.
    const size_t capacity = std::max<size_t>(
        {kFirst, n + n / 2, std::min<size_t>(likely, size_t{64} * n)});
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
        "the bytes are not a GraphDef: the field at byte " +
        std::to_string(at - base) + " is malformed");
  }
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_GRAPH_INDEX_H_
