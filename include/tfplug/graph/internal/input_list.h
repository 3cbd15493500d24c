// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_INPUT_LIST_H_
#define TFPLUG_GRAPH_INTERNAL_INPUT_LIST_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

inline constexpr uint32_t kNoEdge = 0xffffffff;

// An input of an edited node: its edge, and the text from which it was parsed,
// if that text is still correct.
struct InputEdit {
  InputEdit() = default;
  InputEdit(uint32_t edge, absl::string_view text)
      : edge(edge),
        size(static_cast<uint32_t>(text.size())),
        data(text.data()) {}
  explicit InputEdit(uint32_t edge) : edge(edge) {}

  bool has_text() const { return data != nullptr; }
  absl::string_view text() const { return absl::string_view(data, size); }

  uint32_t edge;  // kNoEdge: a removed input.
  uint32_t size = 0;
  const char* data = nullptr;
};

// The data inputs, or the control inputs, of an edited node, in an Arena. Each
// input keeps its slot until it is removed. A removed input leaves its slot
// empty, so that no other input moves. A Fenwick tree of the empty slots
// converts between slots and indices. Every operation takes O(log n) time.
class InputList {
 public:
  uint32_t size() const { return num_slots() - num_removed_; }
  uint32_t num_slots() const { return slots_.size(); }
  InputEdit& operator[](uint32_t slot) { return slots_[slot]; }
  const InputEdit& operator[](uint32_t slot) const { return slots_[slot]; }
  // Returns all slots, including empty ones.
  InputEdit* begin() { return slots_.begin(); }
  InputEdit* end() { return slots_.end(); }
  const InputEdit* begin() const { return slots_.begin(); }
  const InputEdit* end() const { return slots_.end(); }

  // Return the slot of input `i`, which must exist, and the index of a slot's
  // input.
  uint32_t SlotOf(uint32_t i) const {
    if (ABSL_PREDICT_TRUE(num_removed_ == 0)) return i;
    uint32_t slot = 0, step = 1;
    while (step <= num_slots() / 2) step *= 2;
    for (; step > 0; step /= 2) {
      if (slot + step > num_slots()) continue;
      const uint32_t used = step - (*removed_)[slot + step - 1];
      if (used > i) continue;
      slot += step;
      i -= used;
    }
    return slot;
  }
  uint32_t IndexOf(uint32_t slot) const {
    if (ABSL_PREDICT_TRUE(num_removed_ == 0)) return slot;
    uint32_t removed = 0;
    for (uint32_t i = slot; i > 0; i -= LowBit(i))
      removed += (*removed_)[i - 1];
    return slot - removed;
  }

  void Reserve(Arena& arena, uint32_t capacity) {
    slots_.Reserve(arena, capacity);
  }
  void PushBack(Arena& arena, InputEdit input) {
    slots_.PushBack(arena, input);
    if (ABSL_PREDICT_FALSE(removed_ != nullptr)) {
      removed_->PushBack(arena, SumOfChildren(num_slots()));
    }
  }
  void Clear() {
    slots_.Truncate(0);
    num_removed_ = 0;
    removed_ = nullptr;
  }
  void Remove(Arena& arena, uint32_t slot) {
    slots_[slot] = InputEdit(kNoEdge);
    ++num_removed_;
    if (slot + 1 == num_slots()) return DropEmptyEnd();
    if (removed_ == nullptr) {
      removed_ = new (arena.Allocate(sizeof(*removed_))) ArenaList<uint32_t>;
      removed_->Reserve(arena, num_slots());
      for (uint32_t i = 0; i < num_slots(); ++i) removed_->PushBack(arena, 0);
    }
    for (uint32_t i = slot + 1; i <= num_slots(); i += LowBit(i)) {
      ++(*removed_)[i - 1];
    }
  }

 private:
  static uint32_t LowBit(uint32_t i) { return i & (~i + 1); }
  uint32_t SumOfChildren(uint32_t i) const {
    uint32_t sum = 0;
    for (uint32_t step = 1; step < LowBit(i); step *= 2) {
      sum += (*removed_)[i - step - 1];
    }
    return sum;
  }
  void DropEmptyEnd() {
    uint32_t size = num_slots();
    while (size > 0 && slots_[size - 1].edge == kNoEdge) --size;
    num_removed_ -= num_slots() - size;
    slots_.Truncate(size);
    if (removed_ != nullptr) removed_->Truncate(size);
  }

  ArenaList<InputEdit> slots_;
  uint32_t num_removed_ = 0;
  // The Fenwick tree: element i - 1 counts the empty slots among the slots
  // (i - LowBit(i), i], numbered from 1. Null until an input other than the
  // last one is removed.
  ArenaList<uint32_t>* removed_ = nullptr;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_INPUT_LIST_H_
