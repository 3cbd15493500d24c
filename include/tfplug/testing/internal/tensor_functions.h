// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_TENSOR_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_TENSOR_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/testing/fault.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/internal/string_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

inline constexpr size_t kTensorAlignment = 64;

// The memory of one or more tensors.
struct TensorBuffer {
  TensorBuffer(void* data, size_t size, std::function<void()> free)
      : data(data), size(size), free(std::move(free)) {}
  TensorBuffer(const TensorBuffer&) = delete;
  TensorBuffer& operator=(const TensorBuffer&) = delete;
  ~TensorBuffer() { free(); }

  // Allocates zeroed host memory, in which strings are empty. Returns null if
  // the memory is exhausted. Strings are released with the buffer.
  static std::shared_ptr<TensorBuffer> OnHost(size_t size,
                                              bool has_strings = false) {
    if (size > GuardedBlock::kMostBytes) return nullptr;
    std::shared_ptr<GuardedBlock> block;
    if (ScopedGuards::AreActive()) {
      block = std::make_shared<GuardedBlock>(size, kTensorAlignment);
    }
    void* const data = block != nullptr
                           ? block->data()
                           : std::aligned_alloc(kTensorAlignment,
                                                (size / kTensorAlignment + 1) *
                                                    kTensorAlignment);
    if (data == nullptr) return nullptr;
    // A guarded block has zeros, and memory for what is used of it only.
    if (block == nullptr) std::memset(data, 0, size);
    auto buffer = std::make_shared<TensorBuffer>(data, size, [=] {
      auto* const strings = static_cast<TF_TString*>(data);
      for (size_t i = 0; has_strings && i < size / sizeof(TF_TString); ++i) {
        TF_StringDealloc(&strings[i]);
      }
      if (block == nullptr) return std::free(data);
      if (!block->intact()) {
        ScopedGuards::Report(
            "the plug-in wrote beside a tensor in host memory");
      }
    });
    buffer->is_allocated_by_tensorflow = true;
    return buffer;
  }

  void* const data;
  const size_t size;
  const std::function<void()> free;
  bool is_allocated_by_tensorflow = false;
};

inline int64_t CountElements(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace tfplug::testing

namespace tfplug::capi {

// Refers to a buffer that several tensors may share.
struct TF_Tensor : testing::Counted<TF_Tensor> {
  TF_Tensor(TF_DataType dtype, std::vector<int64_t> dims,
            std::shared_ptr<testing::TensorBuffer> buffer)
      : dtype(dtype), dims(std::move(dims)), buffer(std::move(buffer)) {}

  int64_t size() const { return testing::CountElements(dims); }

  TF_DataType dtype;
  std::vector<int64_t> dims;
  std::shared_ptr<testing::TensorBuffer> buffer;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_DataType;
using capi::TF_Tensor;

// Returns the size in bytes of an element in a tensor's buffer, also for
// strings.
inline size_t ElementSize(TF_DataType dtype) {
  if (dtype == capi::TF_STRING) return sizeof(TF_TString);
  return DataTypeSize(static_cast<DataType>(dtype));
}
inline size_t ByteSize(TF_DataType dtype, const std::vector<int64_t>& dims) {
  return ElementSize(dtype) * static_cast<size_t>(CountElements(dims));
}

// Returns 0 for a type whose elements have no fixed size.
TFPLUG_FAKE_FUNCTION size_t TF_DataTypeSize(TF_DataType dtype) {
  return DataTypeSize(static_cast<DataType>(dtype));
}
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_AllocateTensor(TF_DataType dtype,
                                                  const int64_t* dims,
                                                  int num_dims, size_t len) {
  if (Fault::Hits("TF_AllocateTensor")) return nullptr;
  auto buffer = TensorBuffer::OnHost(len);
  if (buffer == nullptr) return nullptr;
  return new TF_Tensor(dtype, {dims, dims + num_dims}, std::move(buffer));
}
// Copies data that is not aligned, and releases the original immediately.
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_NewTensor(
    TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
    size_t len, void (*deallocator)(void*, size_t, void*), void* argument) {
  auto buffer = std::make_shared<TensorBuffer>(data, len, [=] {
    if (deallocator != nullptr) deallocator(data, len, argument);
  });
  if (Fault::Hits("TF_NewTensor")) return nullptr;
  if (TF_DataTypeSize(dtype) != 0 &&
      reinterpret_cast<uintptr_t>(data) % kTensorAlignment != 0) {
    auto copy = TensorBuffer::OnHost(len);
    if (copy == nullptr) return nullptr;
    if (len != 0) std::memcpy(copy->data, data, len);
    buffer = std::move(copy);
  }
  std::vector<int64_t> shape(dims, dims + num_dims);
  if (len < TF_DataTypeSize(dtype) * static_cast<size_t>(CountElements(shape)))
    return nullptr;
  return new TF_Tensor(dtype, std::move(shape), std::move(buffer));
}
TFPLUG_FAKE_FUNCTION void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  const bool can = tensor->buffer->is_allocated_by_tensorflow &&
                   tensor->buffer.use_count() == 1;
  return can ? tensor : nullptr;
}
TFPLUG_FAKE_FUNCTION TF_DataType TF_TensorType(const TF_Tensor* tensor) {
  return tensor->dtype;
}
TFPLUG_FAKE_FUNCTION int TF_NumDims(const TF_Tensor* tensor) {
  return static_cast<int>(tensor->dims.size());
}
TFPLUG_FAKE_FUNCTION int64_t TF_Dim(const TF_Tensor* tensor, int i) {
  return tensor->dims.at(static_cast<size_t>(i));
}
TFPLUG_FAKE_FUNCTION void TF_SetShape(TF_Tensor* tensor, const int64_t* dims,
                                      int num_dims) {
  tensor->dims.assign(dims, dims + num_dims);
}
TFPLUG_FAKE_FUNCTION int64_t TF_TensorElementCount(const TF_Tensor* tensor) {
  return tensor->size();
}
TFPLUG_FAKE_FUNCTION size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  return tensor->buffer->size;
}
TFPLUG_FAKE_FUNCTION void* TF_TensorData(const TF_Tensor* tensor) {
  return tensor->buffer->data;
}
TFPLUG_FAKE_FUNCTION size_t TF_TensorDefaultAlignment() {
  return kTensorAlignment;
}
TFPLUG_FAKE_FUNCTION bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return reinterpret_cast<uintptr_t>(tensor->buffer->data) % kTensorAlignment ==
         0;
}
TFPLUG_FAKE_FUNCTION void TF_TensorBitcastFrom(const TF_Tensor* from,
                                               TF_DataType dtype, TF_Tensor* to,
                                               const int64_t* dims,
                                               int num_dims,
                                               TF_Status* status) {
  if (Fault::Hits("TF_TensorBitcastFrom", status)) return;
  const TF_Tensor result(dtype, {dims, dims + num_dims}, from->buffer);
  const size_t size = TF_DataTypeSize(dtype);
  if (size == 0 || TF_DataTypeSize(from->dtype) == 0 ||
      size * static_cast<size_t>(result.size()) !=
          TF_DataTypeSize(from->dtype) * static_cast<size_t>(from->size())) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "input tensor is not compatible with output shape");
    return;
  }
  *to = result;
  SetOk(status);
}

inline void InstallTensorFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_DataTypeSize);
  TFPLUG_FAKE_INSTALL(TF_AllocateTensor);
  TFPLUG_FAKE_INSTALL(TF_NewTensor);
  TFPLUG_FAKE_INSTALL(TF_DeleteTensor);
  TFPLUG_FAKE_INSTALL(TF_TensorMaybeMove);
  TFPLUG_FAKE_INSTALL(TF_TensorType);
  TFPLUG_FAKE_INSTALL(TF_NumDims);
  TFPLUG_FAKE_INSTALL(TF_Dim);
  TFPLUG_FAKE_INSTALL(TF_SetShape);
  TFPLUG_FAKE_INSTALL(TF_TensorElementCount);
  TFPLUG_FAKE_INSTALL(TF_TensorByteSize);
  TFPLUG_FAKE_INSTALL(TF_TensorData);
  TFPLUG_FAKE_INSTALL(TF_TensorDefaultAlignment);
  TFPLUG_FAKE_INSTALL(TF_TensorIsAligned);
  TFPLUG_FAKE_INSTALL(TF_TensorBitcastFrom);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_TENSOR_FUNCTIONS_H_
