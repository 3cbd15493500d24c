// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_OVERLAY_H_
#define TFPLUG_GRAPH_INTERNAL_OVERLAY_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/numeric/bits.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/attr_list.h"
#include "tfplug/graph/internal/memory.h"

namespace tfplug::internal {

// An input of an edited node: the number of its edge, and the text that it was
// read from if it still says the same.
struct InputEdit {
  InputEdit() = default;
  InputEdit(uint32_t edge, absl::string_view text)
      : edge(edge),
        size(static_cast<uint32_t>(text.size())),
        data(text.data()) {}
  explicit InputEdit(uint32_t edge) : edge(edge) {}

  bool has_text() const { return data != nullptr; }
  absl::string_view text() const { return absl::string_view(data, size); }

  uint32_t edge;
  uint32_t size = 0;
  const char* data = nullptr;
};

// What differs in a node from what the index says. `inputs` and `rest` are the
// bytes for all that is not edited: see NodeFields.
struct NodeEdit {
  absl::string_view inputs;
  absl::string_view rest;
  bool dirty = false;  // Not in a disordered node that nobody has edited.
  bool own_inputs = false;
  bool own_device = false;
  bool own_attrs = false;
  // With own_attrs: how many bytes of `rest` are the device that it begins
  // with, and whether there are fields that are none of these.
  bool has_others = false;
  uint32_t device_size = 0;
  ArenaList<InputEdit> input_list;
  absl::string_view device;
  AttrList attrs;

  size_t size = 0;  // Of the NodeDef to write.
};
static_assert(std::is_trivially_destructible_v<NodeEdit>);

// Bytes of the graph, outside of its nodes, and what to write in their place.
struct Patch {
  uint32_t begin;
  uint32_t size;
  absl::string_view bytes;
};

// The edits of a graph, by node.
class Overlay {
 public:
  void Clear() {
    arena_.Clear();
    edit_of_.clear();
    edits_.clear();
    touched_.clear();
    patches_.clear();
  }

  Arena& arena() { return arena_; }

  const NodeEdit* Find(uint32_t node) const {
    if (ABSL_PREDICT_TRUE(node >= edit_of_.size())) return nullptr;
    const uint32_t number = edit_of_[node];
    return number == kNone || number == kGone ? nullptr : edits_[number];
  }
  // What Find() needs.
  void Prefetch(uint32_t node) const {
    if (node < edit_of_.size()) internal::Prefetch(&edit_of_[node]);
  }
  NodeEdit* Find(uint32_t node) {
    return const_cast<NodeEdit*>(std::as_const(*this).Find(node));
  }
  // A new one, of a node that has none, in a graph of `size` nodes.
  NodeEdit& Add(uint32_t node, uint32_t size) {
    MakeRoom(size);
    edit_of_[node] = static_cast<uint32_t>(edits_.size());
    edits_.PushBack(new (arena_.Allocate(sizeof(NodeEdit))) NodeEdit);
    return *edits_.back();
  }
  // In order. Filled anew by whoever writes the graph.
  Array<Patch>& patches() { return patches_; }

  // From now on the node has to be written anew.
  void MarkDirty(uint32_t node, NodeEdit& edit) {
    if (edit.dirty) return;
    edit.dirty = true;
    Touch(node);
  }
  // From now on the node is not to be written.
  void MarkGone(uint32_t node, uint32_t size) {
    NodeEdit* const edit = Find(node);
    if (edit != nullptr) return MarkDirty(node, *edit);
    MakeRoom(size);
    edit_of_[node] = kGone;
    Touch(node);
  }

  // Calls f(node) for the nodes that are dirty or gone, in order.
  template <class F>
  void ForEachTouched(const F& f) const {
    for (size_t i = 0; i < touched_.size(); ++i) {
      for (uint64_t bits = touched_[i]; bits != 0; bits &= bits - 1) {
        f(static_cast<uint32_t>(i * 64) +
          static_cast<uint32_t>(absl::countr_zero(bits)));
      }
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint32_t kGone = 0xfffffffe;

  void MakeRoom(uint32_t size) {
    if (ABSL_PREDICT_TRUE(edit_of_.size() >= size)) return;
    edit_of_.Resize(size, kNone);
    touched_.Resize((size + 63) / 64, uint64_t{0});
  }
  void Touch(uint32_t node) { touched_[node / 64] |= uint64_t{1} << node % 64; }

  Arena arena_;
  Array<uint32_t> edit_of_;
  Array<NodeEdit*> edits_;
  Array<uint64_t> touched_;  // A bit for each node.
  Array<Patch> patches_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_OVERLAY_H_
