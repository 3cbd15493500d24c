// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_TENSOR_H_
#define TFPLUG_TESTS_FAULT_CORE_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fault_core/faults.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/abi/tf_tstring.h"
#include "tfplug/base/data_type.h"

namespace tfplug::capi {

// The stand-in's TF_Tensor: a handle on a buffer that several may share.
struct TF_Tensor {
  struct Buffer {
    Buffer(void* data, size_t size, void (*release)(void*, size_t, void*),
           void* argument)
        : data(data), size(size), release(release), argument(argument) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
      if (release != nullptr) release(data, size, argument);
    }
    void* data;
    size_t size;
    void (*release)(void*, size_t, void*);
    void* argument;
    bool is_core_memory = false;
  };

  TF_Tensor(TF_DataType dtype, std::vector<int64_t> dims,
            std::shared_ptr<Buffer> buffer)
      : dtype(dtype), dims(std::move(dims)), buffer(std::move(buffer)) {
    ++live;
  }
  TF_Tensor(const TF_Tensor& other)
      : TF_Tensor(other.dtype, other.dims, other.buffer) {}
  TF_Tensor& operator=(const TF_Tensor&) = default;
  ~TF_Tensor() { --live; }

  int64_t size() const {
    int64_t size = 1;
    for (int64_t dim : dims) size *= dim;
    return size;
  }

  TF_DataType dtype;
  std::vector<int64_t> dims;
  std::shared_ptr<Buffer> buffer;

  static inline std::atomic<int64_t> live{0};
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_Tensor;

// How many TF_Tensor and TF_Buffer exist: the same before and after a test.
inline int64_t LiveTensorCount() { return TF_Tensor::live; }
inline std::atomic<int64_t>& LiveBufferCount() {
  static std::atomic<int64_t> live{0};
  return live;
}

inline size_t ElementSize(capi::TF_DataType dtype) {
  if (dtype == capi::TF_STRING) return sizeof(capi::TF_TString);
  return DataTypeSize(static_cast<DataType>(dtype));
}

// Memory of core's, zeroed, so that strings in it are empty ones.
inline TF_Tensor MakeTensor(capi::TF_DataType dtype,
                            std::vector<int64_t> dims) {
  TF_Tensor tensor(dtype, std::move(dims), nullptr);
  const size_t bytes = static_cast<size_t>(tensor.size()) * ElementSize(dtype);
  void* const data = std::aligned_alloc(64, (bytes / 64 + 1) * 64);
  std::memset(data, 0, bytes);
  const auto release = [](void* data, size_t, void*) { std::free(data); };
  const auto release_strings = [](void* data, size_t bytes, void*) {
    auto* const strings = static_cast<capi::TF_TString*>(data);
    for (size_t i = 0; i < bytes / sizeof(capi::TF_TString); ++i) {
      // As TF_StringDealloc does it.
      if ((strings[i].u.raw.raw[0] & 3) == capi::TF_TSTR_LARGE) {
        std::free(strings[i].u.large.ptr);
      }
    }
    std::free(data);
  };
  void (*const function)(void*, size_t, void*) =
      dtype == capi::TF_STRING ? +release_strings : +release;
  tensor.buffer =
      std::make_shared<TF_Tensor::Buffer>(data, bytes, function, nullptr);
  tensor.buffer->is_core_memory = true;
  return tensor;
}
template <class T>
TF_Tensor MakeTensor(std::vector<int64_t> dims, const std::vector<T>& values) {
  TF_Tensor tensor = MakeTensor(static_cast<capi::TF_DataType>(DataTypeOf<T>()),
                                std::move(dims));
  if (!values.empty()) {
    std::memcpy(tensor.buffer->data, values.data(), values.size() * sizeof(T));
  }
  return tensor;
}

// ---- tf_tensor.h, tf_datatype.h --------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION size_t TF_DataTypeSize(capi::TF_DataType dtype) {
  return DataTypeSize(static_cast<DataType>(dtype));
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_NewTensor(
    capi::TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
    size_t len, void (*deallocator)(void*, size_t, void*),
    void* deallocator_arg) {
  auto buffer = std::make_shared<TF_Tensor::Buffer>(data, len, deallocator,
                                                    deallocator_arg);
  if (Fault::Hits("TF_NewTensor")) return nullptr;
  return new TF_Tensor(dtype, {dims, dims + num_dims}, std::move(buffer));
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateTensor(
    capi::TF_DataType dtype, const int64_t* dims, int num_dims, size_t) {
  if (Fault::Hits("TF_AllocateTensor")) return nullptr;
  return new TF_Tensor(MakeTensor(dtype, {dims, dims + num_dims}));
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteTensor(TF_Tensor* tensor) {
  delete tensor;
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  const bool can =
      tensor->buffer->is_core_memory && tensor->buffer.use_count() == 1;
  return can ? tensor : nullptr;
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_DataType TF_TensorType(
    const TF_Tensor* tensor) {
  return tensor->dtype;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_NumDims(const TF_Tensor* tensor) {
  return static_cast<int>(tensor->dims.size());
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_Dim(const TF_Tensor* tensor, int i) {
  return tensor->dims[static_cast<size_t>(i)];
}
TFPLUG_TESTING_CORE_FUNCTION void TF_SetShape(TF_Tensor* tensor,
                                              const int64_t* dims,
                                              int num_dims) {
  tensor->dims.assign(dims, dims + num_dims);
}
TFPLUG_TESTING_CORE_FUNCTION size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  return tensor->buffer->size;
}
TFPLUG_TESTING_CORE_FUNCTION void* TF_TensorData(const TF_Tensor* tensor) {
  return tensor->buffer->data;
}
TFPLUG_TESTING_CORE_FUNCTION int64_t
TF_TensorElementCount(const TF_Tensor* tensor) {
  return tensor->size();
}
TFPLUG_TESTING_CORE_FUNCTION size_t TF_TensorDefaultAlignment() { return 64; }
TFPLUG_TESTING_CORE_FUNCTION bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return reinterpret_cast<uintptr_t>(tensor->buffer->data) % 64 == 0;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_TensorBitcastFrom(
    const TF_Tensor* from, capi::TF_DataType dtype, TF_Tensor* to,
    const int64_t* dims, int num_dims, TF_Status* status) {
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
  TF_SetStatus(status, capi::TF_OK, "");
}

// ---- tf_buffer.h -----------------------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer* TF_NewBuffer() {
  if (Fault::Hits("TF_NewBuffer")) return nullptr;
  ++LiveBufferCount();
  return new capi::TF_Buffer{nullptr, 0, nullptr};
}
inline void FillBuffer(capi::TF_Buffer* buffer, const std::string& bytes) {
  char* const data = new char[bytes.size() + 1];
  std::memcpy(data, bytes.data(), bytes.size());
  *buffer = {data, bytes.size(),
             [](void* data, size_t) { delete[] static_cast<char*>(data); }};
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer* TF_NewBufferFromString(
    const void* bytes, size_t size) {
  capi::TF_Buffer* const buffer = TF_NewBuffer();
  if (buffer == nullptr) return nullptr;
  FillBuffer(buffer, std::string(static_cast<const char*>(bytes), size));
  return buffer;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteBuffer(capi::TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  --LiveBufferCount();
  delete buffer;
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer TF_GetBuffer(
    capi::TF_Buffer* buffer) {
  return *buffer;
}

// ---- tf_tstring.h: all strings are large ones, but for the empty one -------

TFPLUG_TESTING_CORE_FUNCTION void TF_StringInit(capi::TF_TString* str) {
  std::memset(str, 0, sizeof(*str));
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_TString_Type TF_StringGetType(
    const capi::TF_TString* str) {
  return static_cast<capi::TF_TString_Type>(str->u.raw.raw[0] & 3);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_StringDealloc(capi::TF_TString* str) {
  if (TF_StringGetType(str) == capi::TF_TSTR_LARGE) std::free(str->u.large.ptr);
  TF_StringInit(str);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_StringCopy(capi::TF_TString* dst,
                                                const char* src, size_t size) {
  char* const data = static_cast<char*>(std::malloc(size + 1));
  if (size != 0) std::memcpy(data, src, size);
  TF_StringDealloc(dst);
  dst->u.large = {size << 2 | capi::TF_TSTR_LARGE, size, data};
}
TFPLUG_TESTING_CORE_FUNCTION void TF_StringAssignView(capi::TF_TString* dst,
                                                      const char* src,
                                                      size_t size) {
  TF_StringDealloc(dst);
  dst->u.view = {size << 2 | capi::TF_TSTR_VIEW, src, nullptr};
}
TFPLUG_TESTING_CORE_FUNCTION size_t
TF_StringGetSize(const capi::TF_TString* str) {
  return str->u.large.size >> 2;
}
TFPLUG_TESTING_CORE_FUNCTION size_t
TF_StringGetCapacity(const capi::TF_TString* str) {
  return TF_StringGetType(str) == capi::TF_TSTR_LARGE ? str->u.large.cap : 0;
}
TFPLUG_TESTING_CORE_FUNCTION const char* TF_StringGetDataPointer(
    const capi::TF_TString* str) {
  switch (TF_StringGetType(str)) {
    case capi::TF_TSTR_LARGE:
      return str->u.large.ptr;
    case capi::TF_TSTR_VIEW:
      return str->u.view.ptr;
    default:
      return "";
  }
}

inline void InstallTensorFunctions(capi::Functions& core) {
  core.TF_DataTypeSize = &TF_DataTypeSize;
  core.TF_NewTensor = &TF_NewTensor;
  core.TF_AllocateTensor = &TF_AllocateTensor;
  core.TF_DeleteTensor = &TF_DeleteTensor;
  core.TF_TensorMaybeMove = &TF_TensorMaybeMove;
  core.TF_TensorType = &TF_TensorType;
  core.TF_NumDims = &TF_NumDims;
  core.TF_Dim = &TF_Dim;
  core.TF_SetShape = &TF_SetShape;
  core.TF_TensorByteSize = &TF_TensorByteSize;
  core.TF_TensorData = &TF_TensorData;
  core.TF_TensorElementCount = &TF_TensorElementCount;
  core.TF_TensorDefaultAlignment = &TF_TensorDefaultAlignment;
  core.TF_TensorIsAligned = &TF_TensorIsAligned;
  core.TF_TensorBitcastFrom = &TF_TensorBitcastFrom;
  core.TF_NewBuffer = &TF_NewBuffer;
  core.TF_NewBufferFromString = &TF_NewBufferFromString;
  core.TF_DeleteBuffer = &TF_DeleteBuffer;
  core.TF_GetBuffer = &TF_GetBuffer;
  core.TF_StringInit = &TF_StringInit;
  core.TF_StringGetType = &TF_StringGetType;
  core.TF_StringDealloc = &TF_StringDealloc;
  core.TF_StringCopy = &TF_StringCopy;
  core.TF_StringAssignView = &TF_StringAssignView;
  core.TF_StringGetSize = &TF_StringGetSize;
  core.TF_StringGetCapacity = &TF_StringGetCapacity;
  core.TF_StringGetDataPointer = &TF_StringGetDataPointer;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_TENSOR_H_
