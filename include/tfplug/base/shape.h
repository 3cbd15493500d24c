// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_SHAPE_H_
#define TFPLUG_BASE_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

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
  explicit Shape(absl::Span<const int64_t> dims)
      : Shape(static_cast<int>(dims.size()), NotInitialized()) {
    std::copy(dims.begin(), dims.end(), data());
  }
  Shape(const Shape& other) : Shape(other.dims()) {}
  Shape(Shape&& other) noexcept { Take(other); }
  Shape& operator=(const Shape& other) { return *this = Shape(other); }
  Shape& operator=(Shape&& other) noexcept {
    if (this != &other) {
      Free();
      Take(other);
    }
    return *this;
  }
  ~Shape() { Free(); }

  int rank() const { return rank_; }
  int64_t dim(int i) const { return data()[i]; }
  absl::Span<const int64_t> dims() const {
    return absl::MakeConstSpan(data(), static_cast<size_t>(rank_));
  }
  void add_dim(int64_t size) {
    if (ABSL_PREDICT_FALSE(rank_ >= kInline)) {
      set_rank(rank_ + 1);
      return set_dim(rank_ - 1, size);
    }
    dims_.few[rank_++] = size;
  }
  void set_dim(int i, int64_t size) { data()[i] = size; }
  // Dimensions of before keep their sizes, new ones are 0.
  void set_rank(int rank) {
    if (ABSL_PREDICT_FALSE(rank > kInline || rank_ > kInline)) {
      Shape resized(rank, NotInitialized());
      std::copy_n(data(), std::min(rank, rank_), resized.data());
      std::swap(rank_, resized.rank_);
      std::swap(dims_, resized.dims_);
      return InitializeFrom(resized.rank_);
    }
    InitializeFrom(std::exchange(rank_, rank));
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
    if (ABSL_PREDICT_FALSE(rank > kInline)) dims_.many = new int64_t[Count()];
  }

  // Few enough to need no memory of their own: most tensors.
  static constexpr int kInline = 6;
  union Dims {
    int64_t few[kInline];
    int64_t* many;
  };

  size_t Count() const { return static_cast<size_t>(rank_); }
  int64_t* data() { return rank_ > kInline ? dims_.many : dims_.few; }
  const int64_t* data() const {
    return rank_ > kInline ? dims_.many : dims_.few;
  }
  void InitializeFrom(int rank) {
    for (int i = rank; i < rank_; ++i) set_dim(i, 0);
  }
  void Take(Shape& other) {
    rank_ = std::exchange(other.rank_, 0);
    dims_ = other.dims_;
  }
  void Free() {
    if (ABSL_PREDICT_FALSE(rank_ > kInline)) delete[] dims_.many;
  }

  int rank_ = 0;
  Dims dims_;
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

#endif  // TFPLUG_BASE_SHAPE_H_
