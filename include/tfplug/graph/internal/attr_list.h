// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_
#define TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/attrs.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/memory.h"

namespace tfplug::internal {

// A node's attributes. Of several with one name the last counts.
class AttrList {
 public:
  const AttrEntry* begin() const { return entries_.begin(); }
  const AttrEntry* end() const { return entries_.end(); }

  // Adds those that stand behind a node's inputs, as ReadAttrs() has it.
  bool Read(absl::string_view rest, Arena& arena, uint32_t* device_size) {
    const auto add = [&](const AttrEntry& attr) {
      entries_.PushBack(arena, attr);
    };
    const bool all = ReadAttrs(rest, arena, add, device_size);
    entries_.Reserve(arena, entries_.size() + kSpare);
    return all;
  }
  // Null if there is none.
  const AttrEntry* Find(absl::string_view name) const {
    return Find(name, entries_.size());
  }
  void Set(AttrEntry attr, Arena& arena) {
    Put(Find(attr.name(), entries_.size()), attr, arena);
  }
  // One whose name no other has.
  void Add(AttrEntry attr, Arena& arena) { entries_.PushBack(arena, attr); }
  void Erase(absl::string_view name) {
    uint32_t kept = 0;
    for (const AttrEntry& attr : entries_) {
      if (!SameText(attr.name(), name)) entries_[kept++] = attr;
    }
    entries_.Truncate(kept);
  }
  // Sets all that another list has, or that stand behind a node's inputs.
  void SetAll(const AttrList& from, Arena& arena) {
    const uint32_t before = entries_.size();
    if (before <= kFew) {
      entries_.Reserve(arena, before + from.entries_.size() + kSpare);
      for (const AttrEntry& attr : from) {
        Put(Find(attr.name(), before), attr, arena);
      }
      return;
    }
    HashTable table;
    ForEachNamed(table, [](const AttrEntry&) {});
    for (const AttrEntry& attr : from) {
      const uint32_t at =
          table.Find(Hash(attr.name(), ProcessHashKey()), [&](uint32_t i) {
            return SameText(entries_[i].name(), attr.name());
          });
      Put(at == HashTable::kNone ? nullptr : &entries_[at], attr, arena);
    }
  }
  void SetAll(absl::string_view rest, Arena& arena) {
    const uint32_t before = entries_.size();
    if (before <= kFew) {
      ReadAttrs(rest, arena, [&](const AttrEntry& attr) {
        Put(Find(attr.name(), before), attr, arena);
      });
      return;
    }
    AttrList from;
    uint32_t ignored;
    from.Read(rest, arena, &ignored);
    SetAll(from, arena);
  }
  // Calls f(attr) for those that count.
  template <class F>
  void ForEach(const F& f) const {
    if (entries_.size() > kFew) {
      HashTable table;
      return ForEachNamed(table, f);
    }
    for (const AttrEntry& attr : entries_) {
      if (Find(attr.name()) == &attr) f(attr);
    }
  }

 private:
  static constexpr uint32_t kFew = 32;   // These are looked for one by one.
  static constexpr uint32_t kSpare = 3;  // What one edit may add.

  const AttrEntry* Find(absl::string_view name, uint32_t size) const {
    for (uint32_t i = size; i-- > 0;) {
      if (SameText(entries_[i].name(), name)) return &entries_[i];
    }
    return nullptr;
  }
  void Put(const AttrEntry* at, AttrEntry attr, Arena& arena) {
    if (at == nullptr) return entries_.PushBack(arena, attr);
    entries_[static_cast<size_t>(at - entries_.begin())] = attr;
  }
  // The same by a table of names, of which each gets its place.
  template <class F>
  void ForEachNamed(HashTable& table, const F& f) const {
    table.Reset(entries_.size());
    for (uint32_t i = entries_.size(); i-- > 0;) {
      const AttrEntry& attr = entries_[i];
      const uint32_t other = table.Insert(
          Hash(attr.name(), ProcessHashKey()), i, [&](uint32_t later) {
            return SameText(entries_[later].name(), attr.name());
          });
      if (other == HashTable::kNone) f(attr);
    }
  }

  ArenaList<AttrEntry> entries_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_ATTR_LIST_H_
