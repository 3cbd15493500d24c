// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_OUTPUT_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_OUTPUT_FUNCTIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

// The C functions for outputs and temporary tensors of a kernel's run.
namespace tfplug::testing {

// Returns null and sets `status` if the memory is exhausted.
inline TF_Tensor* AllocateFor(TF_OpKernelContext* context, TF_DataType dtype,
                              std::vector<int64_t> dims, bool on_host,
                              TF_Status* status) {
  std::shared_ptr<TensorBuffer> buffer;
  if (context->allocations_left != 0) {
    if (context->allocations_left > 0) --context->allocations_left;
    const size_t size = ByteSize(dtype, dims);
    const bool is_string = dtype == capi::TF_STRING;
    buffer = on_host || is_string || context->device == nullptr
                 ? TensorBuffer::OnHost(size, is_string)
                 : AllocateOnDevice(*context->device, size);
  }
  if (buffer == nullptr) {
    TF_SetStatus(status, capi::TF_RESOURCE_EXHAUSTED,
                 "OOM when allocating a tensor");
    return nullptr;
  }
  SetOk(status);
  return new TF_Tensor(dtype, std::move(dims), std::move(buffer));
}
inline std::vector<int64_t> CheckedDims(const char* function,
                                        const int64_t* dims, int num_dims) {
  for (int i = 0; i < num_dims; ++i) {
    if (dims[i] < 0) AbortLikeTensorFlow(function, "negative dimension");
  }
  return {dims, dims + num_dims};
}
inline OutputSlot& CheckedOutput(const char* function,
                                 TF_OpKernelContext* context, int i) {
  if (!IsOutput(context, i)) {
    AbortLikeTensorFlow(function, "output index out of range");
  }
  return GetOutputSlot(context, i);
}

TFPLUG_FAKE_FUNCTION int TF_NumOutputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->outputs.size());
}
TFPLUG_FAKE_FUNCTION TF_DataType
TF_ExpectedOutputDataType(TF_OpKernelContext* context, int i) {
  return CheckedOutput("TF_ExpectedOutputDataType", context, i).dtype;
}
// Returns whether output `i` is set already, on which TensorFlow fails.
inline bool IsSetAlready(const OutputSlot& output, TF_Status* status) {
  if (!output.tensor.has_value()) return false;
  TF_SetStatus(status, capi::TF_INTERNAL,
               "allocate_output on same index multiple times");
  return true;
}
// Ignores `dtype`, as TensorFlow does.
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context,
                                                  int i, TF_DataType /*dtype*/,
                                                  const int64_t* dims,
                                                  int num_dims, size_t /*len*/,
                                                  TF_Status* status) {
  if (Fault::Hits("TF_AllocateOutput", status)) return nullptr;
  auto shape = CheckedDims("TF_AllocateOutput", dims, num_dims);
  OutputSlot& output = CheckedOutput("TF_AllocateOutput", context, i);
  if (IsSetAlready(output, status)) return nullptr;
  TF_Tensor* const tensor = AllocateFor(context, output.dtype, std::move(shape),
                                        output.on_host, status);
  if (tensor != nullptr) output.tensor = *tensor;
  return tensor;
}
// Forwards an input of the same type, size and kind of memory if there is no
// other reference to its buffer. A tensor that the kernel holds is a reference.
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidates, int num_candidates,
    int i, const int64_t* dims, int num_dims, int* forwarded_input,
    TF_Status* status) {
  constexpr char kName[] = "TF_ForwardInputOrAllocateOutput";
  if (Fault::Hits(kName, status)) return nullptr;
  auto shape = CheckedDims(kName, dims, num_dims);
  OutputSlot& output = CheckedOutput(kName, context, i);
  if (IsSetAlready(output, status)) return nullptr;
  for (int k = 0; k < num_candidates; ++k) {
    const InputSlot& input =
        context->inputs.at(static_cast<size_t>(candidates[k]));
    if (!input.tensor.has_value() || input.tensor->dtype != output.dtype ||
        input.tensor->size() != CountElements(shape) ||
        input.on_host != output.on_host ||
        input.tensor->buffer.use_count() != 1) {
      continue;
    }
    *forwarded_input = candidates[k];
    ++context->forwarded;
    output.tensor =
        TF_Tensor(output.dtype, std::move(shape), input.tensor->buffer);
    SetOk(status);
    return new TF_Tensor(*output.tensor);
  }
  *forwarded_input = -1;
  return TF_AllocateOutput(context, i, output.dtype, dims, num_dims, 0, status);
}
TFPLUG_FAKE_FUNCTION void TF_SetOutput(TF_OpKernelContext* context, int i,
                                       const TF_Tensor* tensor,
                                       TF_Status* status) {
  if (Fault::Hits("TF_SetOutput", status)) return;
  if (!IsOutput(context, i)) {
    TF_SetStatus(status, capi::TF_OUT_OF_RANGE, "output index out of range");
    return;
  }
  OutputSlot& output = GetOutputSlot(context, i);
  if (output.tensor.has_value()) {
    AbortLikeTensorFlow("TF_SetOutput", "the output is already set");
  }
  output.tensor = *tensor;
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* context,
                                                    int i, TF_Status* status) {
  constexpr char kName[] = "TF_GetMutableOutput";
  if (Fault::Hits(kName, status)) return nullptr;
  const auto& tensor = CheckedOutput(kName, context, i).tensor;
  if (!tensor.has_value()) AbortLikeTensorFlow(kName, "the output is not set");
  SetOk(status);
  return new TF_Tensor(*tensor);
}
TFPLUG_FAKE_FUNCTION TF_Tensor* TF_AllocateTemp(
    TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
    int num_dims, capi::TF_AllocatorAttributes* attributes, TF_Status* status) {
  if (Fault::Hits("TF_AllocateTemp", status)) return nullptr;
  if (attributes != nullptr && attributes->struct_size == 0) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "TF_AllocatorAttributes struct size member must be set to "
                 "TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE");
    return nullptr;
  }
  const bool on_host = attributes != nullptr && attributes->on_host != 0;
  ++(on_host ? context->host_temporaries : context->temporaries);
  return AllocateFor(context, dtype,
                     CheckedDims("TF_AllocateTemp", dims, num_dims), on_host,
                     status);
}

inline void InstallOutputFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NumOutputs);
  TFPLUG_FAKE_INSTALL(TF_ExpectedOutputDataType);
  TFPLUG_FAKE_INSTALL(TF_AllocateOutput);
  TFPLUG_FAKE_INSTALL(TF_ForwardInputOrAllocateOutput);
  TFPLUG_FAKE_INSTALL(TF_SetOutput);
  TFPLUG_FAKE_INSTALL(TF_GetMutableOutput);
  TFPLUG_FAKE_INSTALL(TF_AllocateTemp);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_OUTPUT_FUNCTIONS_H_
