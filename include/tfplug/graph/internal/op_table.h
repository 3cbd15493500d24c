// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_OP_TABLE_H_
#define TFPLUG_GRAPH_INTERNAL_OP_TABLE_H_

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

// An op's name as two words: the name itself, padded with zeros, if it has at
// most 16 characters, as most names do; otherwise a hash of the name.
struct OpKey {
  static constexpr int kSize = 16;

  uint64_t first;
  uint64_t second;

  friend bool operator==(OpKey a, OpKey b) {
    return ((a.first ^ b.first) | (a.second ^ b.second)) == 0;
  }
};

// Assigns ids to ops. They stay valid for the lifetime of the graph.
class OpTable {
 public:
  static constexpr uint32_t kNone = HashTable::kNone;

  void Clear() {
    ops_.clear();
    table_.Reset(0);
    for (Recent& recent : recent_) recent = {{0, 0}, 0, kNone};
  }

  // Returns the id of `op`, which must live as long as the table.
  uint32_t Intern(absl::string_view op) { return Intern(op, KeyOf(op)); }
  // Interns the op of one more node and counts the node. May read bytes up to
  // `end`.
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t CountNode(absl::string_view op,
                                                  const char* end) {
    if (ABSL_PREDICT_FALSE(end - op.data() < OpKey::kSize ||
                           op.size() > OpKey::kSize)) {
      return CountSlowly(op);
    }
    // The mask has one 0xff byte for each character of the op, then zeros.
    alignas(64) static constexpr unsigned char kMask[2 * OpKey::kSize] = {
        255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255};
    const auto* const mask =
        reinterpret_cast<const char*>(kMask) + OpKey::kSize - op.size();
    const OpKey key = {
        LoadWord<uint64_t>(op.data()) & LoadWord<uint64_t>(mask),
        LoadWord<uint64_t>(op.data() + 8) & LoadWord<uint64_t>(mask + 8)};
    Recent& recent = recent_[(key.first * kOdd ^ key.second * kOdd2) >> 57];
    if (ABSL_PREDICT_FALSE(!(recent.key == key && recent.size == op.size()))) {
      recent = {key, Intern(op, key), static_cast<uint32_t>(op.size())};
    }
    ++ops_[recent.id].count;
    return recent.id;
  }
  // Returns the id of `op`, or kNone if the op has none.
  uint32_t Find(absl::string_view op) const {
    const OpKey key = KeyOf(op);
    return table_.Find(HashOf(key, op.size()), Is{ops_, op, key});
  }
  absl::string_view op(uint32_t id) const {
    return absl::string_view(ops_[id].data, ops_[id].size);
  }
  // Returns the number of nodes with the op.
  uint32_t& count(uint32_t id) { return ops_[id].count; }

 private:
  struct Entry {
    OpKey key;
    const char* data;
    uint32_t size;
    uint32_t count;
  };
  // A cache entry, selected by a few bits of the key. The cache is effective
  // because most nodes have one of a few ops.
  struct Recent {
    OpKey key;
    uint32_t id;
    uint32_t size;
  };
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  static constexpr uint64_t kOdd2 = 0xc2b2ae3d27d4eb4f;
  struct Is {
    const Array<Entry>& ops;
    absl::string_view op;
    OpKey key;
    bool operator()(uint32_t id) const {
      const Entry& entry = ops[id];
      return entry.key == key && entry.size == op.size() &&
             (op.size() <= OpKey::kSize ||
              memcmp(entry.data, op.data(), op.size()) == 0);
    }
  };
  OpKey KeyOf(absl::string_view op) const {
    OpKey key = {0, 0};
    if (op.size() > OpKey::kSize) {
      key.first = Hash(op, key_);
    } else if (!op.empty()) {
      memcpy(&key, op.data(), op.size());
    }
    return key;
  }
  uint32_t CountSlowly(absl::string_view op) {
    const uint32_t id = Intern(op);
    ++ops_[id].count;
    return id;
  }
  uint32_t Intern(absl::string_view op, OpKey key) {
    const auto id = static_cast<uint32_t>(ops_.size());
    const uint32_t found =
        table_.Insert(HashOf(key, op.size()), id, Is{ops_, op, key});
    if (ABSL_PREDICT_TRUE(found != kNone)) return found;
    ops_.PushBack({key, op.data(), static_cast<uint32_t>(op.size()), 0});
    if (!table_.HasRoom(id + 1)) Grow();
    return id;
  }
  uint64_t HashOf(OpKey key, size_t size) const {
    return Mix(key.first ^ key_.words[0], key.second ^ key_.words[1] ^ size);
  }
  void Grow() {
    table_.Reset(ops_.size() * 2);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      table_.Insert(HashOf(ops_[i].key, ops_[i].size), i,
                    [](uint32_t) { return false; });
    }
  }

  Recent recent_[128];
  Array<Entry> ops_;
  HashTable table_;
  const HashKey& key_ = ProcessHashKey();
};

// Returns the first index of `op` in `ops`, the ids of all nodes' ops, from `n`
// on; the size of `ops` or more if there is none.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline uint32_t FindOp(const Array<uint32_t>& ops,
                                                    uint32_t n, uint32_t op) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  const uint32_t* const begin = ops.data();
  const auto size = static_cast<uint32_t>(ops.size());
  const auto same = [&](uint32_t i) {
    Four four;
    memcpy(&four, begin + i, sizeof(four));
    return four == Four{op, op, op, op};
  };
  // Most ops are rare.
  while (n + 16 <= size) {
    const auto found = same(n) | same(n + 4) | same(n + 8) | same(n + 12);
    uint64_t halves[2];
    memcpy(halves, &found, sizeof(found));
    if ((halves[0] | halves[1]) != 0) break;
    n += 16;
  }
  while (n < size && begin[n] != op) ++n;
  return n;
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_OP_TABLE_H_
