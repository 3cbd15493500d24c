// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_INDEX_H_
#define TFPLUG_INTERNAL_GRAPH_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_hash.h"
#include "tfplug/internal/graph_memory.h"
#include "tfplug/internal/wire.h"

namespace tfplug::internal {

// Fields of a NodeDef.
inline constexpr uint32_t kNameField = 1;
inline constexpr uint32_t kOpField = 2;
inline constexpr uint32_t kInputField = 3;
inline constexpr uint32_t kDeviceField = 4;
inline constexpr uint32_t kAttrField = 5;

// A piece of the graph's bytes. What core can parse has less than 2^31.
struct Range {
  uint32_t begin;
  uint32_t size;
};

// Where a node's fields are. This is all of a node: name and op, then its
// inputs, then the rest: perhaps the device, then attributes and whatever else.
struct NodeFields {
  absl::string_view name;
  absl::string_view op;
  const char* inputs;
  uint32_t num_inputs;
  const char* rest;
  const char* end;
};

// Finds these fields where name, op, inputs and device stand in this order and
// at most once, as every serializer writes them. False where it is not so, or
// the bytes are not well-formed.
inline bool FindFields(const char* p, const char* end, NodeFields* fields) {
  constexpr char kNameTag = MakeTag(kNameField, kBytesType);
  constexpr char kOpTag = MakeTag(kOpField, kBytesType);
  constexpr char kInputTag = MakeTag(kInputField, kBytesType);
  constexpr char kDeviceTag = MakeTag(kDeviceField, kBytesType);
  constexpr char kAttrTag = MakeTag(kAttrField, kBytesType);
  uint32_t size = 0;
  fields->name = fields->op = {};
  if (p < end && *p == kNameTag) {
    if ((p = ReadLength(p + 1, end, &size)) == nullptr) return false;
    fields->name = absl::string_view(p, size);
    p += size;
  }
  if (p < end && *p == kOpTag) {
    if ((p = ReadLength(p + 1, end, &size)) == nullptr) return false;
    fields->op = absl::string_view(p, size);
    p += size;
  }
  fields->inputs = p;
  uint32_t num_inputs = 0;
  for (; p < end && *p == kInputTag; p += size, ++num_inputs) {
    if ((p = ReadLength(p + 1, end, &size)) == nullptr) return false;
  }
  fields->num_inputs = num_inputs;
  fields->rest = p;
  fields->end = end;
  if (p < end && *p == kDeviceTag) {
    if ((p = ReadLength(p + 1, end, &size)) == nullptr) return false;
    p += size;
  }
  for (; p < end && *p == kAttrTag; p += size) {
    if ((p = ReadLength(p + 1, end, &size)) == nullptr) return false;
  }
  while (ABSL_PREDICT_FALSE(p < end)) {
    uint32_t tag = 0;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return false;
    if (tag >> 3 <= kDeviceField && (tag & 7) == kBytesType) return false;
    if ((p = SkipValue(p, end, tag, kMaxWireDepth - 1)) == nullptr) {
      return false;
    }
  }
  return true;
}

// The same node with its fields in that order, in `memory`: the last name, op
// and device, all inputs, all else in the order in which it was. Null if the
// bytes are not well-formed.
inline absl::string_view InOrder(absl::string_view node, Arena& memory) {
  absl::string_view last[kDeviceField + 1];
  size_t size = 0;
  WireReader counted(node);
  while (counted.Next()) {
    const int number = counted.number();
    const bool ours = number <= static_cast<int>(kDeviceField) &&
                      counted.type() == kBytesType;
    if (ours && number != kInputField) {
      last[number] = counted.bytes();
    } else if (ours) {
      size += BytesFieldSize(counted.bytes().size());
    } else {
      size += counted.field().size();
    }
  }
  if (!counted.ok()) return {};
  for (absl::string_view value : last) size += BytesFieldSize(value.size());
  char* const begin = memory.Allocate(size);
  char* to = WriteField(begin, kNameField, last[kNameField]);
  to = WriteField(to, kOpField, last[kOpField]);
  for (WireReader field(node); field.Next();) {
    if (field.Is(kInputField, kBytesType)) {
      to = WriteField(to, kInputField, field.bytes());
    }
  }
  to = WriteField(to, kDeviceField, last[kDeviceField]);
  for (WireReader field(node); field.Next();) {
    if (field.number() > static_cast<int>(kDeviceField) ||
        field.type() != kBytesType) {
      to = WriteBytes(to, field.field());
    }
  }
  return absl::string_view(begin, static_cast<size_t>(to - begin));
}

// Ops by number. Numbers stay what they are for the graph's life.
class OpTable {
 public:
  static constexpr uint32_t kNone = HashTable::kNone;

  void Clear() {
    ops_.clear();
    counts_.clear();
    table_.Reset(128);
  }
  // The number of `op`, which must live as long as the table.
  uint32_t Number(absl::string_view op) {
    const uint64_t hash = Hash(op, seed_);
    const auto number = static_cast<uint32_t>(ops_.size());
    const uint32_t found = table_.Insert(hash, number, Is(op));
    if (ABSL_PREDICT_TRUE(found != kNone)) return found;
    ops_.PushBack(op);
    counts_.PushBack(0);
    if (!table_.HasRoom()) Grow();
    return number;
  }
  uint32_t Find(absl::string_view op) const {
    return table_.Find(Hash(op, seed_), Is(op));
  }
  absl::string_view op(uint32_t number) const { return ops_[number]; }
  // How many nodes have it.
  uint32_t& count(uint32_t number) { return counts_[number]; }

 private:
  struct IsOp {
    const Array<absl::string_view>& ops;
    absl::string_view op;
    bool operator()(uint32_t number) const { return ops[number] == op; }
  };
  IsOp Is(absl::string_view op) const { return IsOp{ops_, op}; }
  void Grow() {
    table_.Reset(ops_.size() * 2);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      table_.Insert(Hash(ops_[i], seed_), i, [](uint32_t) { return false; });
    }
  }

  Array<absl::string_view> ops_;
  Array<uint32_t> counts_;
  HashTable table_;
  const uint64_t seed_ = HashSeed();
};

// A node whose fields are in another order, and its fields in that of
// NodeFields.
struct DisorderedNode {
  uint32_t node;
  absl::string_view in_order;
};

// What one pass over the graph's bytes finds: arrays by node.
struct GraphIndex {
  const char* base = nullptr;
  Array<Range> records;  // Of the field in the GraphDef, tag included.
  Array<Range> names;
  Array<uint32_t> ops;
  Array<uint32_t> inputs;      // Where they begin; 0 in a disordered node.
  Array<uint32_t> first_edge;  // One more than nodes.
  OpTable op_table;
  Array<DisorderedNode> disordered;

  uint32_t num_nodes() const { return static_cast<uint32_t>(ops.size()); }

  void Clear() {
    base = nullptr;
    records.clear();
    names.clear();
    ops.clear();
    inputs.clear();
    first_edge.Assign(1, 0);
    op_table.Clear();
    disordered.clear();
  }

  // Of `bytes`, in which nodes are the field `node_field`: 1 of a GraphDef, 3
  // of a FunctionDef. `memory` and `bytes` live as long as the index is used.
  absl::Status Build(absl::string_view bytes, uint32_t node_field,
                     Arena& memory) {
    Clear();
    base = bytes.data();
    const char* const end = base + bytes.size();
    const char node_tag = static_cast<char>(MakeTag(node_field, kBytesType));
    NodeFields node;
    for (const char* p = base; p < end;) {
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
      if (p == nullptr) return Malformed(begin);
      const char* const fields = p;
      p += size;
      bool in_order = FindFields(fields, p, &node);
      if (ABSL_PREDICT_FALSE(!in_order)) {
        const absl::string_view sorted =
            InOrder(absl::string_view(fields, size), memory);
        if (sorted.data() == nullptr ||
            !FindFields(sorted.data(), sorted.data() + sorted.size(), &node)) {
          return Malformed(begin);
        }
        disordered.PushBack({num_nodes(), sorted});
      }
      Add(begin, p, node, in_order);
    }
    return absl::OkStatus();
  }

 private:
  void Add(const char* begin, const char* end, const NodeFields& node,
           bool in_order) {
    records.PushBack({Offset(begin), static_cast<uint32_t>(end - begin)});
    names.PushBack({in_order && !node.name.empty() ? Offset(node.name.data())
                                                   : Offset(begin),
                    static_cast<uint32_t>(node.name.size())});
    inputs.PushBack(in_order ? Offset(node.inputs) : 0);
    first_edge.PushBack(first_edge.back() + node.num_inputs);
    const uint32_t op = op_table.Number(node.op);
    ++op_table.count(op);
    ops.PushBack(op);
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

#endif  // TFPLUG_INTERNAL_GRAPH_INDEX_H_
