// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_NODE_NAMES_H_
#define TFPLUG_GRAPH_INTERNAL_NODE_NAMES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

inline constexpr uint32_t kNoNode = HashTable::kNone;

// A range of the graph's bytes, of which there are fewer than 2^31.
struct ByteRange {
  uint32_t begin;
  uint32_t size;
};

// The names of the nodes, and a table from names to nodes, built on demand.
class NodeNames {
  // The size of the largest table that is expected to fit into the processor's
  // L2 cache, in bytes.
  static constexpr size_t kSmallTable = 512 << 10;
  // The number of names in a batch of lookups in a larger table.
  static constexpr uint32_t kBatch = 32;

 public:
  void Clear(const char* base) {
    base_ = base;
    ranges_.clear();
    texts_.clear();
    table_.Clear();
  }
  void Reserve(size_t count) { ranges_.Reserve(count); }

  uint32_t size() const { return static_cast<uint32_t>(ranges_.size()); }
  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::string_view operator[](
      uint32_t node) const {
    const ByteRange range = ranges_[node];
    if (ABSL_PREDICT_TRUE((range.begin & kTextBit) == 0)) {
      return absl::string_view(base_ + range.begin, range.size & ~kErasedBit);
    }
    return texts_[range.begin & ~kTextBit];
  }
  // Sets the name of a node to a range of the graph's bytes. Does not change
  // size(): call Reserve() before and Resize() afterwards.
  void Put(uint32_t node, ByteRange name) { ranges_[node] = name; }
  void Resize(size_t size) { ranges_.Resize(size); }
  void PushBack(absl::string_view name) {
    ranges_.PushBack({0, 0});
    Set(size() - 1, name);
  }
  // Sets the name of a node. `name` must outlive this object.
  void Set(uint32_t node, absl::string_view name) {
    texts_.PushBack(name);
    ranges_[node].begin = static_cast<uint32_t>(texts_.size() - 1) | kTextBit;
  }

  // ---- Nodes by name ----

  bool has_table() const { return !table_.empty(); }
  void DropTable() { table_.Clear(); }
  // Adds all nodes for which live(node) is true to the table; calls
  // duplicate(node) for a node whose name is already in the table. `hashes` are
  // the hashes of all names, or null.
  template <class Live, class Duplicate>
  void BuildTable(const uint64_t* hashes, const Live& live,
                  const Duplicate& duplicate) {
    table_.Reset(size());
    is_small_ = table_.bytes() <= kSmallTable;
    const HashKey& key = key_;
    const auto insert = [&](uint32_t n, absl::string_view name, uint64_t hash)
                            ABSL_ATTRIBUTE_ALWAYS_INLINE {
                              if (live(n) && !Insert(hash, name, n)) {
                                duplicate(n);
                              }
                            };
    const uint32_t num_nodes = size();
    if (is_small_ && hashes == nullptr) {
      for (uint32_t n = 0; n < num_nodes; ++n) {
        const absl::string_view name = (*this)[n];
        insert(n, name, HashInline(name, key));
      }
      return;
    }
    if (is_small_) {
      for (uint32_t n = 0; n < num_nodes; ++n) insert(n, (*this)[n], hashes[n]);
      return;
    }
    uint64_t batch[kBatch];
    for (uint32_t begin = 0; begin < num_nodes; begin += kBatch) {
      const uint32_t end = std::min(begin + kBatch, num_nodes);
      for (uint32_t n = begin; n < end; ++n) {
        if (hashes == nullptr && n + kBatch < num_nodes) {
          PrefetchText(n + kBatch);
        }
        const uint64_t hash =
            hashes != nullptr ? hashes[n] : Hash((*this)[n], key);
        batch[n - begin] = hash;
        table_.Prefetch(hash);
      }
      for (uint32_t n = begin; n < end; ++n) {
        insert(n, (*this)[n], batch[n - begin]);
      }
    }
  }
  bool HasRoom(uint32_t node) const { return table_.HasRoom(node); }
  // Adds the node to the table. Returns false if another node has the name.
  bool Insert(uint32_t node) {
    const absl::string_view name = (*this)[node];
    return Insert(Hash(name, key_), name, node);
  }
  // Removes the node from the results of Find(). It keeps its name, and its
  // entry stays in the table, as does the entry of a node's previous name.
  void Erase(uint32_t node) { ranges_[node].size |= kErasedBit; }
  uint32_t Find(absl::string_view name) const {
    return Find(Hash(name, key_), name);
  }

  // Returns whether Search finds nodes.
  bool is_exact() const { return table_.is_exact(); }
  // Returns whether the table probably fits into the processor's L2 cache.
  bool is_small() const { return is_small_; }
  // Looks up names of nodes. Requires is_exact(), and that no node was renamed
  // since BuildTable(). In a large table, looks up names in batches, so that
  // their cache misses overlap. `kIsSmall` must be is_small().
  template <bool kIsSmall>
  class Search {
   public:
    explicit Search(const NodeNames& names)
        : table_(names.table_), key_(names.key_) {}

    // Set `*node` to the node of that name or to kNoNode, now or, at the
    // latest, in Finish().
    ABSL_ATTRIBUTE_ALWAYS_INLINE void Add(absl::string_view name,
                                          uint32_t* node) {
      AddHash(HashInline(name, key_), node);
    }
    ABSL_ATTRIBUTE_ALWAYS_INLINE void AddHash(uint64_t hash, uint32_t* node) {
      if (kIsSmall) return Found(node, table_.Find(hash));
      table_.Prefetch(hash);
      items_[count_++] = {hash, node};
      if (count_ == kBatch) Finish();
    }
    void Finish() {
      for (uint32_t i = 0; i < count_; ++i) {
        Found(items_[i].node, table_.Find(items_[i].hash));
      }
      count_ = 0;
    }
    // Returns whether there was no node for one of the names.
    bool has_missing() const { return (found_ & kNoneBit) != 0; }

   private:
    struct Item {
      uint64_t hash;
      uint32_t* node;
    };
    // Only kNoNode has this bit.
    static constexpr uint32_t kNoneBit = 0x80000000;
    ABSL_ATTRIBUTE_ALWAYS_INLINE void Found(uint32_t* to, uint32_t node) {
      *to = node;
      found_ |= node;
    }

    const HashTable::Reader table_;
    const HashKey& key_;
    Item items_[kIsSmall ? 1 : kBatch];
    uint32_t count_ = 0;
    uint32_t found_ = 0;  // All results, combined.
  };

 private:
  // Set in ByteRange::begin if the name is in texts_, not in the graph's bytes.
  static constexpr uint32_t kTextBit = 0x80000000;
  static constexpr uint32_t kErasedBit = 0x80000000;

  bool HasName(uint32_t node, absl::string_view name) const {
    return (ranges_[node].size & kErasedBit) == 0 &&
           SameText((*this)[node], name);
  }

  void PrefetchText(uint32_t node) const {
    const absl::string_view text = (*this)[node];
    Prefetch(text.data());
    Prefetch(text.data() + text.size() - 1);
  }
  bool Insert(uint64_t hash, absl::string_view name, uint32_t node) {
    return table_.Insert(hash, node, [&](uint32_t other) {
      return other != node && HasName(other, name);
    }) == HashTable::kNone;
  }
  uint32_t Find(uint64_t hash, absl::string_view name) const {
    return table_.Find(hash,
                       [&](uint32_t node) { return HasName(node, name); });
  }

  const char* base_ = nullptr;
  Array<ByteRange> ranges_;
  Array<absl::string_view> texts_;
  HashTable table_;
  bool is_small_ = true;
  const HashKey& key_ = ProcessHashKey();
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_NODE_NAMES_H_
