// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_CONTEXT_H_
#define TFPLUG_TESTING_FAKE_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/fake_node.h"
#include "tfplug/testing/fake_status.h"
#include "tfplug/testing/fake_tensor.h"

namespace tfplug::testing {

// An output of a node, as core knows it before the run.
struct OutputSlot {
  capi::TF_DataType dtype;
  bool on_host = false;
  std::unique_ptr<capi::TF_Tensor> tensor;  // what the kernel set
};

}  // namespace tfplug::testing

namespace tfplug::capi {

// One run of a kernel.
struct TF_OpKernelContext {
  const testing::Node& node;
  testing::FakeDevice* device;  // null: a kernel of the host's
  std::vector<std::unique_ptr<TF_Tensor>> inputs;
  std::vector<testing::OutputSlot> outputs;
  absl::Status failure;
  // The allocation that fails from here on; -1: none.
  int allocations_left = -1;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelContext;

// Memory of the device; freed when its stream has passed what was put on it by
// then. Null when the device has none to give.
inline std::shared_ptr<TensorBuffer> AllocateOnDevice(FakeDevice& device,
                                                      size_t size) {
  if (size == 0) {
    return std::make_shared<TensorBuffer>(nullptr, 0, [] {});
  }
  const DeviceMemory memory = device.Allocate(size);
  if (memory.is_null()) return nullptr;
  return std::make_shared<TensorBuffer>(
      memory.opaque(), size, [&device, memory] {
        device.compute().BlockHostUntilDone().IgnoreError();
        device.Deallocate(memory);
      });
}

inline TF_Tensor* AllocateFor(TF_OpKernelContext* context, TF_DataType dtype,
                              const int64_t* dims, int num_dims, bool on_host,
                              TF_Status* status) {
  const size_t size = TF_DataTypeSize(dtype) *
                      static_cast<size_t>(CountElements(dims, num_dims));
  std::shared_ptr<TensorBuffer> buffer;
  if (context->allocations_left != 0) {
    if (context->allocations_left > 0) --context->allocations_left;
    buffer = on_host || context->device == nullptr
                 ? TensorBuffer::OnHost(size)
                 : AllocateOnDevice(*context->device, size);
  }
  if (buffer == nullptr) {
    TF_SetStatus(status, capi::TF_RESOURCE_EXHAUSTED,
                 "OOM when allocating a tensor");
    return nullptr;
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return new TF_Tensor(dtype, {dims, dims + num_dims}, std::move(buffer));
}

inline bool CheckIndex(int i, size_t size, TF_Status* status) {
  const bool ok = i >= 0 && static_cast<size_t>(i) < size;
  TF_SetStatus(status, ok ? capi::TF_OK : capi::TF_OUT_OF_RANGE,
               "index out of range");
  return ok;
}

TFPLUG_TESTING_CORE_FUNCTION int TF_NumInputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->inputs.size());
}
TFPLUG_TESTING_CORE_FUNCTION int TF_NumOutputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->outputs.size());
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetInput(TF_OpKernelContext* context,
                                              int i, TF_Tensor** tensor,
                                              TF_Status* status) {
  if (!CheckIndex(i, context->inputs.size(), status)) return;
  *tensor = new TF_Tensor(*context->inputs[static_cast<size_t>(i)]);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_DataType TF_InputDatatype(
    TF_OpKernelContext* context, int i) {
  return context->inputs.at(static_cast<size_t>(i))->dtype;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_InputRange(
    TF_OpKernelContext* context, const char* name,
    capi::TF_InputRange_Args* args) {
  int start = 0;
  for (const auto& [arg, size] : context->node.input_args) {
    if (arg == name) {
      args->start = start;
      args->stop = start + size;
      return TF_SetStatus(args->status, capi::TF_OK, "");
    }
    start += size;
  }
  TF_SetStatus(args->status, capi::TF_INVALID_ARGUMENT, "unknown input name");
}

TFPLUG_TESTING_CORE_FUNCTION capi::TF_DataType TF_ExpectedOutputDataType(
    TF_OpKernelContext* context, int i) {
  return context->outputs.at(static_cast<size_t>(i)).dtype;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_SetOutput(TF_OpKernelContext* context,
                                               int i, const TF_Tensor* tensor,
                                               TF_Status* status) {
  if (!CheckIndex(i, context->outputs.size(), status)) return;
  context->outputs[static_cast<size_t>(i)].tensor =
      std::make_unique<TF_Tensor>(*tensor);
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateOutput(
    TF_OpKernelContext* context, int i, capi::TF_DataType dtype,
    const int64_t* dims, int num_dims, size_t /*len*/, TF_Status* status) {
  if (!CheckIndex(i, context->outputs.size(), status)) return nullptr;
  OutputSlot& output = context->outputs[static_cast<size_t>(i)];
  TF_Tensor* tensor =
      AllocateFor(context, dtype, dims, num_dims, output.on_host, status);
  if (tensor != nullptr) output.tensor = std::make_unique<TF_Tensor>(*tensor);
  return tensor;
}
// As core: forwards an input whose buffer nobody else holds.
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidates, int num_candidates,
    int i, const int64_t* dims, int num_dims, int* forwarded_input,
    TF_Status* status) {
  if (!CheckIndex(i, context->outputs.size(), status)) return nullptr;
  OutputSlot& output = context->outputs[static_cast<size_t>(i)];
  const size_t size = TF_DataTypeSize(output.dtype) *
                      static_cast<size_t>(CountElements(dims, num_dims));
  for (int c = 0; c < num_candidates; ++c) {
    if (!CheckIndex(candidates[c], context->inputs.size(), status)) {
      return nullptr;
    }
    const TF_Tensor& input =
        *context->inputs[static_cast<size_t>(candidates[c])];
    if (input.dtype != output.dtype || input.buffer->size != size ||
        input.buffer.use_count() != 1 || output.on_host) {
      continue;
    }
    *forwarded_input = candidates[c];
    output.tensor = std::make_unique<TF_Tensor>(
        output.dtype, std::vector<int64_t>(dims, dims + num_dims),
        input.buffer);
    return new TF_Tensor(*output.tensor);
  }
  *forwarded_input = -1;
  return TF_AllocateOutput(context, i, output.dtype, dims, num_dims, size,
                           status);
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_GetMutableOutput(
    TF_OpKernelContext* context, int i, TF_Status* status) {
  if (!CheckIndex(i, context->outputs.size(), status)) return nullptr;
  return new TF_Tensor(*context->outputs[static_cast<size_t>(i)].tensor);
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateTemp(
    TF_OpKernelContext* context, capi::TF_DataType dtype, const int64_t* dims,
    int num_dims, capi::TF_AllocatorAttributes* attributes, TF_Status* status) {
  return AllocateFor(context, dtype, dims, num_dims, attributes->on_host != 0,
                     status);
}

TFPLUG_TESTING_CORE_FUNCTION capi::SP_Stream TF_GetStream(
    TF_OpKernelContext* context, TF_Status* status) {
  if (context->device == nullptr) {
    TF_SetStatus(status, capi::TF_FAILED_PRECONDITION, "no stream on the host");
    return nullptr;
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return context->device->compute().handle();
}
// The first failure stays.
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelContext_Failure(
    TF_OpKernelContext* context, TF_Status* status) {
  context->failure.Update(FromCore(*status));
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView TF_GetOpKernelName(
    TF_OpKernelContext* context) {
  return {context->node.name.data(), context->node.name.size()};
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_StepId(TF_OpKernelContext*) {
  return 1;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_GetDeviceId(TF_OpKernelContext* context) {
  return context->device == nullptr ? 0 : context->device->ordinal();
}

inline void InstallContextFunctions(capi::Functions& core) {
  core.TF_NumInputs = &TF_NumInputs;
  core.TF_NumOutputs = &TF_NumOutputs;
  core.TF_GetInput = &TF_GetInput;
  core.TF_InputDatatype = &TF_InputDatatype;
  core.TF_InputRange = &TF_InputRange;
  core.TF_ExpectedOutputDataType = &TF_ExpectedOutputDataType;
  core.TF_SetOutput = &TF_SetOutput;
  core.TF_AllocateOutput = &TF_AllocateOutput;
  core.TF_ForwardInputOrAllocateOutput = &TF_ForwardInputOrAllocateOutput;
  core.TF_GetMutableOutput = &TF_GetMutableOutput;
  core.TF_AllocateTemp = &TF_AllocateTemp;
  core.TF_GetStream = &TF_GetStream;
  core.TF_OpKernelContext_Failure = &TF_OpKernelContext_Failure;
  core.TF_GetOpKernelName = &TF_GetOpKernelName;
  core.TF_StepId = &TF_StepId;
  core.TF_GetDeviceId = &TF_GetDeviceId;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_CONTEXT_H_
