// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_SHAPE_H_
#define TFPLUG_BASE_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The dimensions of a tensor, outermost first. Rank 0 is a scalar, which has
// one element.
class Shape {
 public:
  // The largest rank that TensorFlow supports.
  static constexpr int kMaxRank = 254;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}

  // Copying a short InlinedVector copies its unused elements too, which GCC
  // warns about in every file that copies a Shape.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
  Shape(const Shape& other) : dims_(other.dims_) {}
  Shape(Shape&& other) noexcept : dims_(std::move(other.dims_)) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  Shape& operator=(const Shape&) = default;
  Shape& operator=(Shape&&) = default;

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  void add_dim(int64_t size) { dims_.push_back(size); }
  void set_dim(int i, int64_t size) { dims_[static_cast<size_t>(i)] = size; }
  // Keeps the first `rank` dimensions; appended dimensions are 0.
  void set_rank(int rank) { dims_.resize(static_cast<size_t>(rank)); }

  // Returns the number of elements, or -1 if no tensor can have this shape: a
  // dimension is negative, the product overflows, or there are more than
  // kMaxRank dimensions.
  int64_t num_elements() const {
    const size_t rank = dims_.size();
    if (ABSL_PREDICT_FALSE(rank > kMaxRank)) return -1;
    const int64_t* const dims = dims_.data();
    int64_t count = 1, signs = 0;
    for (size_t i = 0; i < rank; ++i) {
      signs |= dims[i];
      if (ABSL_PREDICT_FALSE(__builtin_mul_overflow(count, dims[i], &count))) {
        return -1;
      }
    }
    return ABSL_PREDICT_TRUE(signs >= 0) ? count : -1;
  }

  // Returns a string such as "[2,3]"; an unknown dimension is "?".
  std::string ToString() const {
    std::string text = "[";
    for (int64_t dim : dims_) {
      if (text.size() > 1) text += ',';
      text += dim < 0 ? "?" : std::to_string(dim);
    }
    return text + ']';
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    const size_t rank = a.dims_.size();
    if (rank != b.dims_.size()) return false;
    const int64_t *x = a.dims_.data(), *y = b.dims_.data();
    for (size_t i = 0; i < rank; ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  // Most tensors have at most 6 dimensions, which are stored inline.
  absl::InlinedVector<int64_t, 6> dims_;
};

// The value of an attribute of type "shape". The rank may be unknown, and so
// may each dimension; an unknown dimension is -1.
class PartialShape {
 public:
  // Constructs a shape of unknown rank.
  PartialShape() = default;
  PartialShape(Shape dims)  // NOLINT(google-explicit-constructor)
      : dims_(std::move(dims)) {}

  bool has_rank() const { return dims_.has_value(); }
  // Returns the rank, or -1 if it is unknown.
  int rank() const { return has_rank() ? dims_->rank() : -1; }
  // Returns the size of dimension `i`, or -1 if it is unknown. Requires
  // has_rank().
  int64_t dim(int i) const { return dims_->dim(i); }
  bool is_fully_known() const {
    if (!has_rank()) return false;
    for (int64_t dim : dims_->dims()) {
      if (dim < 0) return false;
    }
    return true;
  }
  // Returns the dimensions; unknown ones are -1. Requires has_rank().
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

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_SHAPE_H_
