// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_OPS_H_
#define TFPLUG_GRAPH_INTERNAL_OPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/memory.h"

namespace tfplug::internal {

// An op's name as two words: the name itself, followed by zeros, if it is short
// enough, as most are; else a hash of it.
struct OpKey {
  static constexpr int kSize = 16;

  uint64_t first;
  uint64_t second;

  friend bool operator==(OpKey a, OpKey b) {
    return ((a.first ^ b.first) | (a.second ^ b.second)) == 0;
  }
};

// Ops by number. Numbers stay what they are for the graph's life.
class OpTable {
 public:
  static constexpr uint32_t kNone = HashTable::kNone;

  void Clear() {
    ops_.clear();
    table_.Reset(64);
    for (Recent& recent : recent_) recent = {{0, 0}, 0, kNone};
  }

  // The number of `op`, which must live as long as the table.
  uint32_t Number(absl::string_view op) { return Number(op, KeyOf(op)); }
  // The same after one more node has it. The bytes before `end` may be read.
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Count(absl::string_view op,
                                              const char* end) {
    if (ABSL_PREDICT_FALSE(end - op.data() < OpKey::kSize ||
                           op.size() > OpKey::kSize)) {
      return CountSlowly(op);
    }
    // As many ones as the op is long are before the middle.
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
      recent = {key, Number(op, key), static_cast<uint32_t>(op.size())};
    }
    ++ops_[recent.number].count;
    return recent.number;
  }
  // kNone if no node ever had it.
  uint32_t Find(absl::string_view op) const {
    const OpKey key = KeyOf(op);
    return table_.Find(HashOf(key, op.size()), Is{ops_, op, key});
  }
  absl::string_view op(uint32_t number) const {
    return absl::string_view(ops_[number].data, ops_[number].size);
  }
  // How many nodes have it.
  uint32_t& count(uint32_t number) { return ops_[number].count; }

 private:
  struct Entry {
    OpKey key;
    const char* data;
    uint32_t size;
    uint32_t count;
  };
  // An op by a few bits of its key: mostly the same few ops come again.
  struct Recent {
    OpKey key;
    uint32_t number;
    uint32_t size;
  };
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  static constexpr uint64_t kOdd2 = 0xc2b2ae3d27d4eb4f;
  struct Is {
    const Array<Entry>& ops;
    absl::string_view op;
    OpKey key;
    bool operator()(uint32_t number) const {
      const Entry& entry = ops[number];
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
    const uint32_t number = Number(op);
    ++ops_[number].count;
    return number;
  }
  uint32_t Number(absl::string_view op, OpKey key) {
    const auto number = static_cast<uint32_t>(ops_.size());
    const uint32_t found =
        table_.Insert(HashOf(key, op.size()), number, Is{ops_, op, key});
    if (ABSL_PREDICT_TRUE(found != kNone)) return found;
    ops_.PushBack({key, op.data(), static_cast<uint32_t>(op.size()), 0});
    if (!table_.HasRoom()) Grow();
    return number;
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

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_OPS_H_
