// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_SHAPE_H_
#define TFPLUG_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/types/span.h"

namespace tfplug {

class Tensor;

// The dimensions of a tensor, outermost first. Rank 0 is a scalar, with one
// element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims) {
    set_rank(static_cast<int>(dims.size()));
    std::copy(dims.begin(), dims.end(), data());
  }

  int rank() const { return rank_; }
  int64_t dim(int i) const { return data()[i]; }
  absl::Span<const int64_t> dims() const {
    return absl::MakeConstSpan(data(), static_cast<size_t>(rank_));
  }
  void add_dim(int64_t size) {
    set_rank(rank_ + 1);
    data()[rank_ - 1] = size;
  }
  void set_dim(int i, int64_t size) { data()[i] = size; }
  // Dimensions of before keep their sizes, new ones are 0.
  void set_rank(int rank) {
    if (ABSL_PREDICT_FALSE(rank > kInline)) {
      if (rank_ <= kInline) many_.assign(few_, few_ + rank_);
      many_.resize(static_cast<size_t>(rank));
    } else {
      if (ABSL_PREDICT_FALSE(rank_ > kInline)) {
        std::copy_n(many_.begin(), rank, few_);
      }
      for (int i = rank_; i < rank; ++i) few_[i] = 0;
    }
    rank_ = rank;
  }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t dim : dims()) n *= dim;
    return n;
  }

  // "[2,3]"; an unknown dimension is "?".
  std::string ToString() const {
    std::string text = "[";
    for (int64_t dim : dims()) {
      if (text.size() > 1) text += ',';
      text += dim < 0 ? "?" : std::to_string(dim);
    }
    return text + ']';
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.dims() == b.dims();
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  friend class Tensor;
  struct NotInitialized {};
  // For a caller that sets every dimension.
  Shape(int rank, NotInitialized) : rank_(rank) {
    if (ABSL_PREDICT_FALSE(rank > kInline)) {
      many_.resize(static_cast<size_t>(rank));
    }
  }

  // Few enough to need no memory of their own: most tensors.
  static constexpr int kInline = 6;

  int64_t* data() { return rank_ > kInline ? many_.data() : few_; }
  const int64_t* data() const { return rank_ > kInline ? many_.data() : few_; }

  int rank_ = 0;
  int64_t few_[kInline];
  std::vector<int64_t> many_;
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
