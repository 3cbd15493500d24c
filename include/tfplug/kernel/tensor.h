// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_TENSOR_H_
#define TFPLUG_KERNEL_TENSOR_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/tensor_size.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status.h"
#include "tfplug/base/tensor_view.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace kernel_internal {

// Returns INVALID_ARGUMENT for types on which TensorFlow would abort: reference
// types and types that the release does not have.
inline absl::Status CheckAllocatable(DataType dtype) {
  const int i = static_cast<int>(dtype);
  // Every release has the types up to uint64.
  if (i > 0 && i < internal::kDataTypeCount &&
      (dtype <= DataType::kUint64 || DataTypeSizeInTensorFlow(dtype) != 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("this TensorFlow has no tensors of " +
                                    std::string(i > 0 ? "" : "the invalid ") +
                                    DataTypeName(dtype));
}

}  // namespace kernel_internal

// A handle to a TF_Tensor, whose buffer other tensors may share. Move-only; no
// function of this class copies elements. host_tensor.h allocates new tensors.
//
// The buffer of a tensor in device memory stays valid for the work that Compute
// enqueues on the kernel's stream, even after Compute has returned and the
// Tensor is destroyed: TensorFlow reuses the memory only for later work on that
// stream. The host must not access it.
class Tensor {
 public:
  Tensor() = default;
  // Takes ownership of `tensor`.
  explicit Tensor(capi::TF_Tensor* tensor) : tensor_(tensor) {}
  Tensor(Tensor&& other) noexcept
      : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() {
    if (tensor_ != nullptr) internal::tensorflow.TF_DeleteTensor(tensor_);
  }

  // Returns false for an empty Tensor, on which no other function may be
  // called.
  explicit operator bool() const { return tensor_ != nullptr; }

  DataType dtype() const {
    return static_cast<DataType>(internal::tensorflow.TF_TensorType(tensor_));
  }
  int rank() const { return internal::tensorflow.TF_NumDims(tensor_); }
  int64_t dim(int i) const { return internal::tensorflow.TF_Dim(tensor_, i); }
  [[gnu::always_inline]] Shape shape() const {
    const int n = rank();
    Shape shape;
    for (int i = 0; i < n; ++i) shape.add_dim(dim(i));
    return shape;
  }
  int64_t num_elements() const {
    return internal::tensorflow.TF_TensorElementCount(tensor_);
  }
  uint64_t byte_size() const {
    return internal::tensorflow.TF_TensorByteSize(tensor_);
  }
  // Returns the address of the elements. Without elements, it means nothing, and
  // is often one of the host; memory(), flat() and view() then have null.
  void* data() const { return internal::tensorflow.TF_TensorData(tensor_); }
  DeviceMemory memory() const {
    const uint64_t size = byte_size();
    return DeviceMemory(size == 0 ? nullptr : data(), size);
  }
  // Returns whether the buffer has the alignment that TensorFlow's own code
  // requires. A tensor that shares a part of another tensor's buffer may not
  // have it.
  bool is_aligned() const {
    return internal::tensorflow.TF_TensorIsAligned(tensor_);
  }
  // Returns type and shape, such as "float[2,3]".
  std::string ToString() const {
    return DataTypeName(dtype()) + shape().ToString();
  }

  // Returns all elements in row-major order. If T is not the tensor's type,
  // throws std::invalid_argument, which fails the run with INTERNAL; in a build
  // without exceptions, aborts.
  template <class T>
  [[gnu::always_inline]] absl::Span<T> flat() const {
    CheckType(DataTypeOf<T>());
    const auto size = static_cast<size_t>(num_elements());
    return absl::Span<T>(size == 0 ? nullptr : static_cast<T*>(data()), size);
  }

  // Returns the elements as an array of kRank dimensions. Throws as flat()
  // does, and if the rank differs.
  template <class T, int kRank>
  TensorView<T, kRank> view() const {
    CheckType(DataTypeOf<T>());
    if (ABSL_PREDICT_FALSE(rank() != kRank)) {
      FailAccess("view() needs rank " + std::to_string(kRank));
    }
    std::array<int64_t, kRank> dims;
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = dim(static_cast<int>(i));
    const bool is_empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    return TensorView<T, kRank>(is_empty ? nullptr : static_cast<T*>(data()),
                                dims);
  }

  // Returns the only element of a tensor of any rank; throws if there is not
  // exactly one.
  template <class T>
  T& scalar() const {
    CheckType(DataTypeOf<T>());
    if (ABSL_PREDICT_FALSE(num_elements() != 1)) {
      FailAccess("scalar() needs a tensor of one element");
    }
    return *static_cast<T*>(data());
  }

  // Returns a tensor that shares the buffer and has another type or shape.
  // INVALID_ARGUMENT if its size in bytes differs, or if the elements of either
  // type have no fixed size.
  absl::StatusOr<Tensor> Bitcast(DataType dtype, const Shape& shape) const {
    if (auto s = internal::CheckShape(shape); !s.ok()) return s;
    if (auto s = kernel_internal::CheckAllocatable(dtype); !s.ok()) return s;
    const int64_t no_elements = 0;
    Tensor to(internal::tensorflow.TF_AllocateTensor(
        static_cast<capi::TF_DataType>(dtype), &no_elements, 1, 0));
    if (!to)
      return absl::ResourceExhaustedError("TensorFlow allocated no tensor");
    OwnedStatus status;
    internal::tensorflow.TF_TensorBitcastFrom(
        tensor_, static_cast<capi::TF_DataType>(dtype), to.tensor_,
        shape.dims().data(), shape.rank(), status.get());
    if (!status.ok()) return status.ToStatus();
    return to;
  }
  absl::StatusOr<Tensor> Reshape(const Shape& shape) const {
    return Bitcast(dtype(), shape);
  }

  // Replaces this TF_Tensor's shape with one that has the same number of
  // elements. An output of the run keeps the shape with which it was allocated.
  // Since 2.11.
  absl::Status SetShape(const Shape& shape) {
    if (auto s = Require(&CApi::TF_SetShape); !s.ok()) return s;
    if (auto s = internal::CheckShape(shape); !s.ok()) return s;
    if (shape.num_elements() != num_elements()) {
      return absl::InvalidArgumentError(
          "a tensor " + ToString() + " cannot take the shape " +
          shape.ToString() + ", which has a different number of elements");
    }
    internal::tensorflow.TF_SetShape(tensor_, shape.dims().data(),
                                     shape.rank());
    return absl::OkStatus();
  }

  // If nothing else refers to the buffer, moves this tensor to the result,
  // which may be written to. Otherwise returns nothing and leaves this tensor
  // as it is.
  std::optional<Tensor> MaybeMove() {
    capi::TF_Tensor* moved = internal::tensorflow.TF_TensorMaybeMove(tensor_);
    if (moved == nullptr) return std::nullopt;
    tensor_ = nullptr;
    return Tensor(moved);
  }

  capi::TF_Tensor* get() const { return tensor_; }
  capi::TF_Tensor* release() { return std::exchange(tensor_, nullptr); }

 private:
  [[gnu::always_inline]] void CheckType(DataType requested) const {
    if (ABSL_PREDICT_FALSE(dtype() != requested)) FailType(requested);
  }

  [[gnu::cold, gnu::noinline, noreturn]] void FailType(
      DataType requested) const {
    FailAccess("elements were accessed as " + DataTypeName(requested));
  }

  [[gnu::cold, noreturn]] void FailAccess(std::string message) const {
    message += ", but the tensor is " + ToString() +
               "; check its type and shape, or add a TypeConstraint to the "
               "kernel";
#if defined(__cpp_exceptions)
    throw std::invalid_argument(message);
#else
    std::fprintf(stderr, "tfplug: %s\n", message.c_str());
    std::abort();
#endif
  }

  capi::TF_Tensor* tensor_ = nullptr;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_TENSOR_H_
