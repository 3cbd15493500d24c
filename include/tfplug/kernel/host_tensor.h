// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_HOST_TENSOR_H_
#define TFPLUG_KERNEL_HOST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/tensor_size.h"
#include "tfplug/base/tstring.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

// New tensors in host memory, independent of a kernel's run: constants that a
// kernel keeps, results for another library. During a run,
// KernelContext::AllocateHostTemp uses TensorFlow's pooled memory instead.
namespace tfplug {

// Returns the alignment, in bytes, of memory that TensorFlow uses without a
// copy: TF_TensorDefaultAlignment (since 2.17), which is 64 in every release.
inline size_t TensorAlignment() {
  const auto function = internal::tensorflow.TF_TensorDefaultAlignment;
  return function == nullptr ? 64 : function();
}

namespace kernel_internal {

template <class Release>
struct Releaser {
  static void Call(void* data, size_t size, void* argument) {
    std::unique_ptr<Release> release(static_cast<Release*>(argument));
    (*release)(data, size);
  }
};

}  // namespace kernel_internal

// Returns a tensor that uses `data`, `size` bytes of the author's memory.
// INVALID_ARGUMENT if the tensor needs more. `release(data, size)` is called
// exactly once, on any thread, when nothing refers to the memory any more. If
// the function fails, or if TensorFlow copies `data` because it is not aligned
// to TensorAlignment(), `release` has been called when the function returns.
template <class Release>
absl::StatusOr<Tensor> WrapHostTensor(DataType dtype, const Shape& shape,
                                      void* data, size_t size,
                                      Release release) {
  const auto needed = internal::CheckedSize(dtype, shape);
  if (!needed.ok() || size < needed->bytes) {
    release(data, size);
    if (!needed.ok()) return needed.status();
    return absl::InvalidArgumentError(
        "WrapHostTensor: a tensor " + DataTypeName(dtype) + shape.ToString() +
        " needs " + std::to_string(needed->bytes) +
        " bytes, but the buffer has " + std::to_string(size));
  }
  auto* const argument = new Release(std::move(release));
  Tensor tensor(internal::tensorflow.TF_NewTensor(
      static_cast<capi::TF_DataType>(dtype), shape.dims().data(), shape.rank(),
      data, size, &kernel_internal::Releaser<Release>::Call, argument));
  // After a failure TensorFlow has called the deallocator.
  if (!tensor) return absl::InternalError("TensorFlow returned no tensor");
  return tensor;
}

// Allocates a tensor in host memory. Strings are empty; other elements are not
// initialized.
inline absl::StatusOr<Tensor> NewHostTensor(DataType dtype,
                                            const Shape& shape) {
  const auto size = internal::CheckedSize(dtype, shape);
  if (!size.ok()) return size.status();
  if (dtype == DataType::kString) {
    // TensorFlow's own deallocator would not free the memory that long strings
    // own.
    const size_t alignment = TensorAlignment();
    void* const data = std::aligned_alloc(
        alignment, (size->bytes / alignment + 1) * alignment);
    if (data == nullptr)
      return absl::ResourceExhaustedError("out of host memory");
    auto* const strings = static_cast<capi::TF_TString*>(data);
    for (int64_t i = 0; i < size->elements; ++i)
      internal::tensorflow.TF_StringInit(&strings[i]);
    return WrapHostTensor(
        dtype, shape, data, size->bytes, [](void* data, size_t bytes) {
          auto* strings = static_cast<capi::TF_TString*>(data);
          for (size_t i = 0; i < bytes / sizeof(TString); ++i)
            internal::tensorflow.TF_StringDealloc(&strings[i]);
          std::free(data);
        });
  }
  Tensor tensor(internal::tensorflow.TF_AllocateTensor(
      static_cast<capi::TF_DataType>(dtype), shape.dims().data(), shape.rank(),
      size->bytes));
  if (!tensor)
    return absl::ResourceExhaustedError("TensorFlow allocated no tensor");
  return tensor;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_HOST_TENSOR_H_
