// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_
#define TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/attr_entry.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// A node's attributes, in an Arena. Up to kFew attributes are searched one by
// one, and the last of several with the same name wins. More than kFew have
// distinct names and a hash table.
class AttrList {
 public:
  const AttrEntry* begin() const { return entries_.begin(); }
  const AttrEntry* end() const { return entries_.end(); }
  // Returns the size of all attributes in bytes.
  size_t byte_size() const { return byte_size_; }

  // Appends the attributes of a node's tail; see ReadAttrs().
  bool Read(absl::string_view tail, Arena& arena, uint32_t* device_size) {
    entries_.Reserve(arena, kTypical);
    const auto add = [&](const AttrEntry& attr) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      Push(attr, BitOf(attr.name()), arena);
    };
    const bool all = ReadAttrs(tail, arena, add, device_size);
    IndexMany(arena);
    return all;
  }
  // Returns null if there is no such attribute.
  const AttrEntry* Find(absl::string_view name) const {
    if ((names_ & BitOf(name)) == 0) return nullptr;
    if (ABSL_PREDICT_TRUE(table_ == nullptr)) {
      return FindAmong(name, entries_.size());
    }
    const uint32_t slot = FindSlot(name);
    return slot == kUnused ? nullptr : &entries_[table_[slot]];
  }
  void Set(const AttrEntry& attr, Arena& arena) {
    const uint64_t bit = BitOf(attr.name());
    if ((names_ & bit) != 0) {
      const AttrEntry* const found = Find(attr.name());
      if (found != nullptr) return Replace(found, attr);
    }
    Add(attr, bit, arena);
  }
  // Adds an attribute whose name is not in the list.
  void Add(const AttrEntry& attr, Arena& arena) {
    Add(attr, BitOf(attr.name()), arena);
  }
  void Erase(absl::string_view name) {
    if (ABSL_PREDICT_FALSE(table_ != nullptr)) return EraseFromTable(name);
    uint32_t kept = 0;
    for (const AttrEntry& attr : entries_) {
      if (!SameText(attr.name(), name)) entries_[kept++] = attr;
    }
    Truncate(kept);
  }
  // Sets all attributes of another list, or of a node's tail.
  void SetAll(const AttrList& from, Arena& arena) {
    if (table_ != nullptr) {
      for (const AttrEntry& attr : from) Set(attr, arena);
      return;
    }
    const Before before = {entries_.size(), names_};
    entries_.Reserve(arena, before.size + from.entries_.size() + kSpare);
    for (const AttrEntry& attr : from) SetAmong(before, attr, arena);
    IndexMany(arena);
  }
  void SetAll(absl::string_view tail, Arena& arena) {
    const bool is_indexed = table_ != nullptr;
    const Before before = {entries_.size(), names_};
    const auto set = [&](const AttrEntry& attr) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      if (ABSL_PREDICT_FALSE(is_indexed)) return Set(attr, arena);
      SetAmong(before, attr, arena);
    };
    ReadAttrs(tail, arena, set);
    entries_.Reserve(arena, entries_.size() + kSpare);
    IndexMany(arena);
  }
  // Calls f(attr) for each attribute, except those that a later one of the same
  // name overrides.
  template <class F>
  void ForEach(const F& f) const {
    for (const AttrEntry& attr : entries_) {
      if (table_ != nullptr || Find(attr.name()) == &attr) f(attr);
    }
  }

 private:
  static constexpr uint32_t kFew = 32;
  static constexpr uint32_t kSpare = 3;  // Room for one edit's new attributes.
  static constexpr uint32_t kTypical = 8;  // Sufficient for most nodes.
  // Values of table slots that hold no entry's index.
  static constexpr uint32_t kUnused = 0xffffffff;
  static constexpr uint32_t kErased = 0xfffffffe;

  // Returns the bit of a name in names_.
  static uint64_t BitOf(absl::string_view name) {
    if (ABSL_PREDICT_FALSE(name.empty())) return 1;
    const auto byte = [&](size_t i) {
      return static_cast<unsigned char>(name.data()[i]);
    };
    const size_t last = name.size() - 1;
    return uint64_t{1} << (byte(0) ^ (last + 4 * byte(last))) % 64;
  }
  // Does what Add() does, for a name with this bit.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Add(const AttrEntry& attr, uint64_t bit,
                                        Arena& arena) {
    Push(attr, bit, arena);
    if (ABSL_PREDICT_TRUE(table_ == nullptr)) return IndexMany(arena);
    if (2 * ++num_used_ > mask_) return BuildTable(arena);
    table_[FreeSlot(attr.name())] = entries_.size() - 1;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Push(const AttrEntry& attr, uint64_t bit,
                                         Arena& arena) {
    names_ |= bit;
    byte_size_ += attr.size();
    entries_.PushBack(arena, attr);
  }
  void Replace(const AttrEntry* entry, const AttrEntry& by) {
    byte_size_ += by.size() - entry->size();
    entries_[Index(entry)] = by;
  }
  void Truncate(uint32_t size) {
    entries_.Truncate(size);
    byte_size_ = 0;
    for (const AttrEntry& attr : entries_) byte_size_ += attr.size();
  }

  uint32_t Index(const AttrEntry* entry) const {
    return static_cast<uint32_t>(entry - entries_.begin());
  }
  // Searches the first `size` entries.
  const AttrEntry* FindAmong(absl::string_view name, uint32_t size) const {
    for (uint32_t i = size; i-- > 0;) {
      if (SameText(entries_[i].name(), name)) return &entries_[i];
    }
    return nullptr;
  }
  // The entries before an edit.
  struct Before {
    uint32_t size;
    uint64_t names;
  };
  // Does the same as Set(), but replaces only entries that were in the list
  // `before`.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void SetAmong(const Before& before,
                                             const AttrEntry& attr,
                                             Arena& arena) {
    const uint64_t bit = BitOf(attr.name());
    if ((before.names & bit) != 0) {
      const AttrEntry* const found = FindAmong(attr.name(), before.size);
      if (found != nullptr) return Replace(found, attr);
    }
    Push(attr, bit, arena);
  }

  // ---- The table ----

  // Builds the table if there are more than kFew attributes, and removes those
  // that a later one of the same name overrides.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void IndexMany(Arena& arena) {
    if (ABSL_PREDICT_FALSE(entries_.size() > kFew && table_ == nullptr)) {
      IndexAll(arena);
    }
  }
  ABSL_ATTRIBUTE_NOINLINE void IndexAll(Arena& arena) {
    BuildTable(arena);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      if (table_[FindSlot(entries_[i].name())] == i) {
        entries_[kept++] = entries_[i];
      }
    }
    if (kept == entries_.size()) return;
    Truncate(kept);
    BuildTable(arena);
  }
  // Builds a table of all entries. The last of several with the same name wins.
  void BuildTable(Arena& arena) {
    uint32_t size = 4 * kFew;
    while (size < 4 * entries_.size()) size *= 2;
    table_ =
        reinterpret_cast<uint32_t*>(arena.Allocate(size * sizeof(uint32_t)));
    mask_ = size - 1;
    num_used_ = entries_.size();
    std::fill_n(table_, size, kUnused);
    for (uint32_t i = entries_.size(); i-- > 0;) {
      if (FindSlot(entries_[i].name()) == kUnused) {
        table_[FreeSlot(entries_[i].name())] = i;
      }
    }
  }
  uint32_t FirstSlot(absl::string_view name) const {
    return static_cast<uint32_t>(Hash(name, ProcessHashKey())) & mask_;
  }
  // Returns the slot of the name, or kUnused if it is not in the table.
  uint32_t FindSlot(absl::string_view name) const {
    for (uint32_t slot = FirstSlot(name);; slot = (slot + 1) & mask_) {
      const uint32_t i = table_[slot];
      if (i == kUnused) return kUnused;
      if (i != kErased && SameText(entries_[i].name(), name)) return slot;
    }
  }
  uint32_t FreeSlot(absl::string_view name) const {
    uint32_t slot = FirstSlot(name);
    while (table_[slot] != kUnused) slot = (slot + 1) & mask_;
    return slot;
  }
  void EraseFromTable(absl::string_view name) {
    const uint32_t slot = FindSlot(name);
    if (slot == kUnused) return;
    // The last entry takes the place of the erased one.
    const uint32_t last = entries_.size() - 1;
    byte_size_ -= entries_[table_[slot]].size();
    table_[FindSlot(entries_[last].name())] = table_[slot];
    entries_[table_[slot]] = entries_[last];
    table_[slot] = kErased;
    entries_.Truncate(last);
  }

  ArenaList<AttrEntry> entries_;
  // One bit for each name in the list, and for erased ones; see BitOf(). Most
  // searches are for names that are not in the list.
  uint64_t names_ = 0;
  size_t byte_size_ = 0;
  uint32_t* table_ = nullptr;  // Indices in entries_, with open addressing.
  uint32_t mask_ = 0;
  uint32_t num_used_ = 0;  // Slots in use, including erased ones.
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_
