// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_TENSOR_VIEW_H_
#define TFPLUG_BASE_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug {

// The elements of a tensor as an array of `kRank` dimensions in row-major
// order; view(i, j, k) is the element (i, j, k). It owns nothing and is small
// enough for a kernel to pass it to the device by value. Indices are not
// checked.
template <class T, int kRank>
class TensorView {
  static_assert(kRank >= 0,
                "tfplug: the rank of a TensorView must not be negative");

 public:
  TensorView(T* data, const std::array<int64_t, kRank>& dims)
      : data_(data), dims_(dims) {}

  T* data() const { return data_; }
  static constexpr int rank() { return kRank; }
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t size() const {
    int64_t size = 1;
    for (int64_t dim : dims_) size *= dim;
    return size;
  }

  template <class... Indices>
  T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == kRank,
                  "tfplug: a TensorView takes one index for each dimension");
    int64_t offset = 0;
    size_t i = 0;
    static_cast<void>(
        ((offset = offset * dims_[i] + static_cast<int64_t>(indices), ++i), ...,
         i));
    return data_[offset];
  }

 private:
  T* data_;
  std::array<int64_t, kRank> dims_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_TENSOR_VIEW_H_
