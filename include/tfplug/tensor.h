// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TENSOR_H_
#define TFPLUG_TENSOR_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/data_type.h"
#include "tfplug/device_memory.h"
#include "tfplug/internal/core.h"

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
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t dim : dims_) n *= dim;
    return n;
  }

  // "[2,3]"
  std::string ToString() const {
    std::string text = "[";
    for (int64_t dim : dims_) {
      if (text.size() > 1) text += ',';
      text += std::to_string(dim);
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

// A tensor of core's (TF_Tensor), which shares its buffer. Move-only.
//
// The buffer of a tensor in device memory stays valid for work that Compute
// puts on the kernel's stream, also after Compute and the Tensor's end: core
// gives the memory only to work that comes later on that stream. Do not touch
// it from the host.
class Tensor {
 public:
  Tensor() = default;
  // Takes `tensor` over.
  explicit Tensor(abi::TF_Tensor* tensor) : tensor_(tensor) {}
  Tensor(Tensor&& other) noexcept
      : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() {
    if (tensor_ != nullptr) internal::core.TF_DeleteTensor(tensor_);
  }

  DataType dtype() const {
    return static_cast<DataType>(internal::core.TF_TensorType(tensor_));
  }
  int rank() const { return internal::core.TF_NumDims(tensor_); }
  int64_t dim(int i) const { return internal::core.TF_Dim(tensor_, i); }
  Shape shape() const {
    Shape shape;
    for (int i = 0, n = rank(); i < n; ++i) shape.add_dim(dim(i));
    return shape;
  }
  int64_t num_elements() const {
    return internal::core.TF_TensorElementCount(tensor_);
  }
  uint64_t byte_size() const {
    return internal::core.TF_TensorByteSize(tensor_);
  }
  // Null where there are no elements.
  void* data() const { return internal::core.TF_TensorData(tensor_); }
  DeviceMemory memory() const { return DeviceMemory(data(), byte_size()); }

  // All elements in row-major order. A T that is not the tensor's type is the
  // author's mistake: an exception, which core sees as INTERNAL.
  template <class T>
  absl::Span<T> flat() const {
    if (dtype() != DataTypeOf<T>()) WrongType(DataTypeOf<T>());
    return absl::Span<T>(static_cast<T*>(data()),
                         static_cast<size_t>(num_elements()));
  }

  abi::TF_Tensor* get() const { return tensor_; }

 private:
  [[gnu::cold, noreturn]] void WrongType(DataType asked) const {
    const std::string message =
        "flat() was asked for data type " +
        std::to_string(static_cast<int>(asked)) + ", the tensor has " +
        std::to_string(static_cast<int>(dtype())) +
        " (numbers of TF_DataType); give the kernel a TypeConstraint";
#if defined(__cpp_exceptions)
    throw std::invalid_argument(message);
#else
    std::fprintf(stderr, "tfplug: %s\n", message.c_str());
    std::abort();
#endif
  }

  abi::TF_Tensor* tensor_ = nullptr;
};

}  // namespace tfplug

#endif  // TFPLUG_TENSOR_H_
