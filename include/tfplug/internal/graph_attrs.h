// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_ATTRS_H_
#define TFPLUG_INTERNAL_GRAPH_ATTRS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_fields.h"
#include "tfplug/internal/graph_memory.h"
#include "tfplug/internal/wire.h"

namespace tfplug::internal {

// Goes through what stands behind a node's inputs, which is well-formed as far
// as fields go: attributes, and whatever else there is.
class RestReader {
 public:
  explicit RestReader(absl::string_view rest)
      : p_(rest.data()), end_(p_ + rest.size()) {}

  bool Next() {
    if (p_ == end_) return false;
    field_ = p_;
    absl::string_view bytes;
    if (const char* after = PassField(p_, end_, kAttrTag, &bytes)) {
      p_ = after;
      is_attr_ = true;
      ReadEntry(bytes);
      return true;
    }
    is_attr_ = false;
    p_ = ReadTag(p_, end_, &tag_);
    p_ = SkipValue(p_, end_, tag_);
    if (tag_ == MakeTag(kAttrField, kBytesType)) {  // Written long.
      is_attr_ = true;
      WireReader field(this->field());
      field.Next();
      ReadEntry(field.bytes());
    }
    return true;
  }

  // All of the field, tag included.
  absl::string_view field() const {
    return absl::string_view(field_, static_cast<size_t>(p_ - field_));
  }
  bool is_attr() const { return is_attr_; }
  bool is_device() const {
    return !is_attr_ && tag_ == MakeTag(kDeviceField, kBytesType);
  }
  // Of an attribute.
  absl::string_view name() const { return name_; }
  // Its AttrValue, in the graph's bytes; where that stands there in pieces,
  // which count as one, in `memory`. Never null.
  absl::string_view value(Arena& memory) const {
    if (ABSL_PREDICT_TRUE(!is_in_pieces_)) return value_;
    std::string whole;
    for (WireReader field(entry_); field.Next();) {
      if (field.Is(2, kBytesType)) {
        whole.append(field.bytes().data(), field.bytes().size());
      }
    }
    return memory.Copy(whole);
  }

 private:
  void ReadEntry(absl::string_view entry) {
    entry_ = entry;
    name_ = value_ = absl::string_view("", 0);
    is_in_pieces_ = false;
    const char* p = entry.data();
    const char* const end = p + entry.size();
    const char* next = PassField(p, end, MakeTag(1, kBytesType), &name_);
    if (next != nullptr) p = next;
    next = PassField(p, end, MakeTag(2, kBytesType), &value_);
    if (next != nullptr) p = next;
    if (ABSL_PREDICT_FALSE(p != end)) ReadOddEntry();
  }
  void ReadOddEntry() {
    name_ = value_ = absl::string_view("", 0);
    int pieces = 0;
    for (WireReader field(entry_); field.Next();) {
      if (field.Is(1, kBytesType)) name_ = field.bytes();
      if (!field.Is(2, kBytesType)) continue;
      value_ = field.bytes();
      ++pieces;
    }
    is_in_pieces_ = pieces > 1;
  }

  const char* p_;
  const char* end_;
  const char* field_ = nullptr;
  uint32_t tag_ = 0;
  bool is_attr_ = false;
  bool is_in_pieces_ = false;
  absl::string_view entry_;
  absl::string_view name_;
  absl::string_view value_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_ATTRS_H_
