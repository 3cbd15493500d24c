// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_TENSOR_H_
#define TFPLUG_TESTING_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/tensor_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The value of a tensor: its shape and its elements in row-major order, which
// are std::string for string tensors.
template <class T>
struct Value {
  std::vector<int64_t> dims;
  std::vector<T> elements;
};

// Returns a tensor of zeros or empty strings in host memory.
inline TF_Tensor MakeTensor(TF_DataType dtype, std::vector<int64_t> dims) {
  const size_t size = ByteSize(dtype, dims);
  return TF_Tensor(dtype, std::move(dims),
                   TensorBuffer::OnHost(size, dtype == capi::TF_STRING));
}
// Returns a tensor in host memory.
template <class T>
TF_Tensor MakeTensor(std::vector<int64_t> dims,
                     const std::vector<T>& elements) {
  if constexpr (std::is_same_v<T, std::string>) {
    TF_Tensor tensor = MakeTensor(capi::TF_STRING, std::move(dims));
    auto* const strings = static_cast<TF_TString*>(tensor.buffer->data);
    for (size_t i = 0; i < elements.size(); ++i) {
      TF_StringCopy(&strings[i], elements[i].data(), elements[i].size());
    }
    return tensor;
  } else {
    TF_Tensor tensor =
        MakeTensor(static_cast<TF_DataType>(DataTypeOf<T>()), std::move(dims));
    std::copy(elements.begin(), elements.end(),
              static_cast<T*>(tensor.buffer->data));
    return tensor;
  }
}

// Allocates device memory. It is released after the compute stream has finished
// the work that was enqueued before the release; by HostDevice, at once. Returns
// null if the device is out of memory.
inline std::shared_ptr<TensorBuffer> AllocateOnDevice(FakeDevice& device,
                                                      size_t size) {
  if (size == 0) return std::make_shared<TensorBuffer>(nullptr, 0, [] {});
  if (device.tensor_memory() != nullptr) {
    return device.tensor_memory()->Allocate(size);
  }
  const DeviceMemory memory = device.Allocate(size);
  if (memory.is_null()) return nullptr;
  return std::make_shared<TensorBuffer>(
      memory.opaque(), size, [&device, memory] {
        device.compute().BlockHostUntilDone().IgnoreError();
        device.Deallocate(memory);
      });
}

// Returns a tensor on `device`, or on the host if that is null. The copy is
// complete on return.
template <class T>
absl::StatusOr<TF_Tensor> MakeDeviceTensor(FakeDevice* device,
                                           const Value<T>& value) {
  TF_Tensor tensor = MakeTensor<T>(value.dims, value.elements);
  if (device == nullptr) return tensor;
  auto buffer = AllocateOnDevice(*device, tensor.buffer->size);
  if (buffer == nullptr) {
    return absl::ResourceExhaustedError("OOM when allocating an input");
  }
  if (buffer->size > 0) {
    const absl::Status status =
        device->CopyHostToDevice(DeviceMemory(buffer->data, buffer->size),
                                 tensor.buffer->data, buffer->size);
    if (!status.ok()) return status;
  }
  tensor.buffer = std::move(buffer);
  return tensor;
}

// Returns the value of a tensor on `device`, or on the host if that is null.
template <class T>
absl::StatusOr<Value<T>> ReadTensor(FakeDevice* device,
                                    const TF_Tensor& tensor) {
  std::shared_ptr<TensorBuffer> buffer = tensor.buffer;
  if (device != nullptr && buffer->size > 0) {
    buffer = TensorBuffer::OnHost(tensor.buffer->size);
    const absl::Status status = device->CopyDeviceToHost(
        buffer->data, DeviceMemory(tensor.buffer->data, buffer->size),
        buffer->size);
    if (!status.ok()) return status;
  }
  Value<T> value{tensor.dims, {}};
  if constexpr (std::is_same_v<T, std::string>) {
    const auto* const strings = static_cast<const TF_TString*>(buffer->data);
    for (size_t i = 0; i < buffer->size / sizeof(TF_TString); ++i) {
      value.elements.emplace_back(TF_StringGetDataPointer(&strings[i]),
                                  TF_StringGetSize(&strings[i]));
    }
  } else {
    const auto* const elements = static_cast<const T*>(buffer->data);
    value.elements.assign(elements, elements + buffer->size / sizeof(T));
  }
  return value;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_TENSOR_H_
