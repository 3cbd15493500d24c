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
#include "tfplug/graph/internal/input_list.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// The edits of a node. Parts that are not edited are taken from `input_bytes`
// and `tail`, which are ranges of the node's bytes (see NodeFields).
struct NodeEdit {
  absl::string_view input_bytes;
  absl::string_view tail;
  bool dirty = false;  // False in a reordered node without edits.
  bool own_inputs = false;
  bool own_device = false;
  bool own_attrs = false;
  // Valid if own_attrs: whether `tail` has fields other than device and
  // attributes, and the size in bytes of the device field with which it begins.
  bool has_other_fields = false;
  uint32_t device_size = 0;
  // Valid if own_inputs. The first `num_parsed_inputs` slots of `inputs`, and
  // the first slots of `controls`, belong to the parsed edges.
  uint32_t num_parsed_inputs = 0;
  InputList inputs;
  InputList controls;
  absl::string_view device;
  AttrList attrs;

  size_t size = 0;  // Of the NodeDef to write; set by GraphWriter.
};
static_assert(std::is_trivially_destructible_v<NodeEdit>);

// A range of the graph's bytes outside its nodes, and its replacement.
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
    const uint32_t edit = edit_of_[node];
    return edit == kNone || edit == kRemoved ? nullptr : edits_[edit];
  }
  // Prefetches the memory that Find() reads.
  void Prefetch(uint32_t node) const {
    if (node < edit_of_.size()) graph_internal::Prefetch(&edit_of_[node]);
  }
  NodeEdit* Find(uint32_t node) {
    return const_cast<NodeEdit*>(std::as_const(*this).Find(node));
  }
  // Adds the edit of a node that has none yet, in a graph of `size` nodes.
  NodeEdit& Add(uint32_t node, uint32_t size) {
    MakeRoom(size);
    edit_of_[node] = static_cast<uint32_t>(edits_.size());
    edits_.PushBack(new (arena_.Allocate(sizeof(NodeEdit))) NodeEdit);
    return *edits_.back();
  }
  // Returns the patches, in the order of the graph's bytes. Rebuilt whenever
  // the graph is written.
  Array<Patch>& patches() { return patches_; }

  // Records that the node's own bytes are out of date.
  void MarkDirty(uint32_t node, NodeEdit& edit) {
    if (edit.dirty) return;
    edit.dirty = true;
    Touch(node);
  }
  // Records that the node must not be written.
  void MarkRemoved(uint32_t node, uint32_t size) {
    NodeEdit* const edit = Find(node);
    if (edit != nullptr) return MarkDirty(node, *edit);
    MakeRoom(size);
    edit_of_[node] = kRemoved;
    Touch(node);
  }

  // Calls f(node) for each dirty or removed node, in order.
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
  static constexpr uint32_t kRemoved = 0xfffffffe;

  void MakeRoom(uint32_t size) {
    if (ABSL_PREDICT_TRUE(edit_of_.size() >= size)) return;
    edit_of_.Resize(size, kNone);
    touched_.Resize((size + 63) / 64, uint64_t{0});
  }
  void Touch(uint32_t node) { touched_[node / 64] |= uint64_t{1} << node % 64; }

  Arena arena_;
  Array<uint32_t> edit_of_;
  Array<NodeEdit*> edits_;
  Array<uint64_t> touched_;  // One bit for each node.
  Array<Patch> patches_;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_OVERLAY_H_
