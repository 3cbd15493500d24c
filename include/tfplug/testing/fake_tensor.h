// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_TENSOR_H_
#define TFPLUG_TESTING_FAKE_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// The memory of one or more tensors.
struct TensorBuffer {
  TensorBuffer(void* data, size_t size, std::function<void()> free)
      : data(data), size(size), free(std::move(free)) {}
  TensorBuffer(const TensorBuffer&) = delete;
  TensorBuffer& operator=(const TensorBuffer&) = delete;
  ~TensorBuffer() { free(); }

  // Host memory. Null when there is none.
  static std::shared_ptr<TensorBuffer> OnHost(size_t size) {
    void* const data = std::aligned_alloc(64, (size + 64) / 64 * 64);
    if (data == nullptr) return nullptr;
    return std::make_shared<TensorBuffer>(data, size,
                                          [data] { std::free(data); });
  }

  void* const data;
  const size_t size;
  const std::function<void()> free;
};

}  // namespace tfplug::testing

namespace tfplug::capi {

// The stand-in's TF_Tensor. It counts itself, so that tests see leaks.
struct TF_Tensor {
  TF_Tensor(TF_DataType dtype, std::vector<int64_t> dims,
            std::shared_ptr<testing::TensorBuffer> buffer)
      : dtype(dtype), dims(std::move(dims)), buffer(std::move(buffer)) {
    ++live;
  }
  TF_Tensor(const TF_Tensor& other)
      : TF_Tensor(other.dtype, other.dims, other.buffer) {}
  TF_Tensor& operator=(const TF_Tensor&) = delete;
  ~TF_Tensor() { --live; }

  TF_DataType dtype;
  std::vector<int64_t> dims;
  std::shared_ptr<testing::TensorBuffer> buffer;

  static inline std::atomic<int64_t> live{0};
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_DataType;
using capi::TF_Tensor;

// How many TF_Tensor exist in the process: the same before and after a test.
inline int64_t LiveTensorCount() { return TF_Tensor::live; }

inline int64_t CountElements(const int64_t* dims, int num_dims) {
  int64_t count = 1;
  for (int i = 0; i < num_dims; ++i) count *= dims[i];
  return count;
}

// 0 for a type whose elements have no fixed size.
TFPLUG_TESTING_CORE_FUNCTION size_t TF_DataTypeSize(TF_DataType dtype) {
  switch (dtype) {
    case capi::TF_BOOL:
    case capi::TF_INT8:
    case capi::TF_UINT8:
    case capi::TF_QINT8:
    case capi::TF_QUINT8:
      return 1;
    case capi::TF_BFLOAT16:
    case capi::TF_HALF:
    case capi::TF_INT16:
    case capi::TF_UINT16:
    case capi::TF_QINT16:
    case capi::TF_QUINT16:
      return 2;
    case capi::TF_FLOAT:
    case capi::TF_INT32:
    case capi::TF_UINT32:
    case capi::TF_QINT32:
      return 4;
    case capi::TF_DOUBLE:
    case capi::TF_INT64:
    case capi::TF_UINT64:
    case capi::TF_COMPLEX64:
      return 8;
    case capi::TF_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateTensor(TF_DataType dtype,
                                                          const int64_t* dims,
                                                          int num_dims,
                                                          size_t len) {
  auto buffer = TensorBuffer::OnHost(len);
  if (buffer == nullptr) return nullptr;
  return new TF_Tensor(dtype, {dims, dims + num_dims}, std::move(buffer));
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_NewTensor(
    TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
    size_t len, void (*deallocator)(void*, size_t, void*), void* argument) {
  return new TF_Tensor(dtype, {dims, dims + num_dims},
                       std::make_shared<TensorBuffer>(data, len, [=] {
                         if (deallocator) deallocator(data, len, argument);
                       }));
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteTensor(TF_Tensor* tensor) {
  delete tensor;
}
TFPLUG_TESTING_CORE_FUNCTION TF_DataType TF_TensorType(const TF_Tensor* t) {
  return t->dtype;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_NumDims(const TF_Tensor* tensor) {
  return static_cast<int>(tensor->dims.size());
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_Dim(const TF_Tensor* tensor, int i) {
  return tensor->dims.at(static_cast<size_t>(i));
}
TFPLUG_TESTING_CORE_FUNCTION int64_t
TF_TensorElementCount(const TF_Tensor* tensor) {
  return CountElements(tensor->dims.data(), TF_NumDims(tensor));
}
TFPLUG_TESTING_CORE_FUNCTION size_t TF_TensorByteSize(const TF_Tensor* t) {
  return t->buffer->size;
}
TFPLUG_TESTING_CORE_FUNCTION void* TF_TensorData(const TF_Tensor* tensor) {
  return tensor->buffer->data;
}
TFPLUG_TESTING_CORE_FUNCTION size_t TF_TensorDefaultAlignment() { return 64; }
TFPLUG_TESTING_CORE_FUNCTION bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return reinterpret_cast<uintptr_t>(tensor->buffer->data) % 64 == 0;
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  return tensor->buffer.use_count() == 1 ? tensor : nullptr;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_SetShape(TF_Tensor* tensor,
                                              const int64_t* dims,
                                              int num_dims) {
  tensor->dims.assign(dims, dims + num_dims);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_TensorBitcastFrom(
    const TF_Tensor* from, TF_DataType type, TF_Tensor* to, const int64_t* dims,
    int num_dims, TF_Status* status) {
  const size_t element = TF_DataTypeSize(type);
  const auto count = static_cast<size_t>(CountElements(dims, num_dims));
  if (element == 0 || element * count != from->buffer->size) {
    return TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                        "a bitcast to another size");
  }
  TF_SetStatus(status, capi::TF_OK, "");
  to->dtype = type;
  to->dims.assign(dims, dims + num_dims);
  to->buffer = from->buffer;
}

inline void InstallTensorFunctions(capi::Functions& core) {
  core.TF_DataTypeSize = &TF_DataTypeSize;
  core.TF_AllocateTensor = &TF_AllocateTensor;
  core.TF_NewTensor = &TF_NewTensor;
  core.TF_DeleteTensor = &TF_DeleteTensor;
  core.TF_TensorType = &TF_TensorType;
  core.TF_NumDims = &TF_NumDims;
  core.TF_Dim = &TF_Dim;
  core.TF_TensorElementCount = &TF_TensorElementCount;
  core.TF_TensorByteSize = &TF_TensorByteSize;
  core.TF_TensorData = &TF_TensorData;
  core.TF_TensorDefaultAlignment = &TF_TensorDefaultAlignment;
  core.TF_TensorIsAligned = &TF_TensorIsAligned;
  core.TF_TensorMaybeMove = &TF_TensorMaybeMove;
  core.TF_SetShape = &TF_SetShape;
  core.TF_TensorBitcastFrom = &TF_TensorBitcastFrom;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_TENSOR_H_
