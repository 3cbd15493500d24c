// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_SHAPE_H_
#define TFPLUG_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace tfplug {

// The dimensions of a tensor, outermost first. Rank 0 is a scalar, with one
// element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  void add_dim(int64_t size) { dims_.push_back(size); }
  void set_dim(int i, int64_t size) { dims_[i] = size; }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t dim : dims_) n *= dim;
    return n;
  }

  // "[2,3]"; an unknown dimension is "?".
  std::string ToString() const {
    std::string text = "[";
    for (int64_t dim : dims_) {
      if (text.size() > 1) text += ',';
      text += dim < 0 ? "?" : std::to_string(dim);
    }
    return text + ']';
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 6> dims_;
};

// A shape that need not be known: its rank may be missing, or a dimension,
// which is then -1. What an attribute of type "shape" may hold.
class PartialShape {
 public:
  // Of unknown rank.
  PartialShape() = default;
  PartialShape(Shape dims) : dims_(std::move(dims)) {}

  bool has_rank() const { return dims_.has_value(); }
  // -1 if unknown.
  int rank() const { return has_rank() ? dims_->rank() : -1; }
  // -1 if unknown; only with has_rank().
  int64_t dim(int i) const { return dims_->dim(i); }
  bool is_fully_known() const {
    if (!has_rank()) return false;
    for (int64_t dim : dims_->dims()) {
      if (dim < 0) return false;
    }
    return true;
  }
  // Only with has_rank(); unknown dimensions are -1.
  const Shape& shape() const { return *dims_; }

  std::string ToString() const {
    return has_rank() ? dims_->ToString() : "<unknown rank>";
  }
  friend bool operator==(const PartialShape& a, const PartialShape& b) {
    return a.dims_ == b.dims_;
  }

 private:
  std::optional<Shape> dims_;
};

}  // namespace tfplug

#endif  // TFPLUG_SHAPE_H_
