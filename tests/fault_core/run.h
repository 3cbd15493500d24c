// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_RUN_H_
#define TFPLUG_TESTS_FAULT_CORE_RUN_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fault_core/tensor.h"
#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/abi/tf_string_view.h"

namespace tfplug::capi {

// The stand-in's TF_OpKernelContext: one run of a kernel. A test fills in what
// the kernel may ask for, and reads outputs and status afterwards.
struct TF_OpKernelContext {
  // A resource variable, that an input of type resource holds.
  struct Variable {
    std::optional<TF_Tensor> value;
    bool copy_on_read = false;
    int locks = 0;
  };

  std::string node = "node";
  std::vector<std::optional<TF_Tensor>> inputs;
  std::map<int, std::shared_ptr<Variable>> variables;  // By input.
  std::map<std::string, std::pair<int, int>> ranges;
  std::vector<std::string> requested_inputs;
  std::vector<int> host_inputs, host_outputs;
  std::vector<TF_DataType> output_types;
  SP_Stream stream = nullptr;
  std::string device = "/device:MY_DEVICE:0", container = "localhost";
  std::string function_library, config, resource_handle;
  int64_t step_id = 0, iter_id = 0;
  uint64_t frame_id = 0;
  int device_id = 0, graph_def_version = 0;
  void* rendezvous = nullptr;  // A FakeRendezvous, of the test's.

  // What the kernel has done. Core keeps the first failure.
  std::vector<std::optional<TF_Tensor>> outputs;
  absl::Status status;
  int failures = 0;
  int deferred_ops = 0, most_deferred_ops = 0;
  int forwarded = 0, temporaries = 0, host_temporaries = 0;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelContext;

inline bool IsInput(const TF_OpKernelContext* ctx, int i) {
  return i >= 0 && i < static_cast<int>(ctx->inputs.size());
}
inline bool IsOutput(const TF_OpKernelContext* ctx, int i) {
  return i >= 0 && i < static_cast<int>(ctx->output_types.size());
}
inline std::optional<TF_Tensor>& OutputOf(TF_OpKernelContext* ctx, int i) {
  ctx->outputs.resize(ctx->output_types.size());
  return ctx->outputs[static_cast<size_t>(i)];
}
// What ends a process in core.
[[noreturn]] inline void FakeWouldAbort(const char* function) {
  std::fprintf(stderr, "%s: TensorFlow would end the process here\n", function);
  std::abort();
}
inline void FailContext(TF_OpKernelContext* ctx, const absl::Status& status) {
  if (ctx->status.ok()) ctx->status = status;
  ++ctx->failures;
}

TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelContext_Failure(
    TF_OpKernelContext* ctx, TF_Status* status) {
  FailContext(ctx, FromCore(*status));
}
TFPLUG_TESTING_CORE_FUNCTION int TF_NumInputs(TF_OpKernelContext* ctx) {
  return static_cast<int>(ctx->inputs.size());
}
TFPLUG_TESTING_CORE_FUNCTION int TF_NumOutputs(TF_OpKernelContext* ctx) {
  return static_cast<int>(ctx->output_types.size());
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_DataType TF_ExpectedOutputDataType(
    TF_OpKernelContext* ctx, int i) {
  if (!IsOutput(ctx, i)) FakeWouldAbort("TF_ExpectedOutputDataType");
  return ctx->output_types[static_cast<size_t>(i)];
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_DataType TF_InputDatatype(
    TF_OpKernelContext* ctx, int i) {
  if (!IsInput(ctx, i)) FakeWouldAbort("TF_InputDatatype");
  if (ctx->variables.count(i) != 0) return capi::TF_RESOURCE;
  return ctx->inputs[static_cast<size_t>(i)]->dtype;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetInput(TF_OpKernelContext* ctx, int i,
                                              TF_Tensor** tensor,
                                              TF_Status* status) {
  if (Fault::Hits("TF_GetInput", status)) return;
  if (!IsInput(ctx, i)) {
    TF_SetStatus(status, capi::TF_OUT_OF_RANGE, "input index out of range");
    return;
  }
  // An optional input that is absent: no tensor, and no word about it.
  const auto& input = ctx->inputs[static_cast<size_t>(i)];
  *tensor = input.has_value() ? new TF_Tensor(*input) : nullptr;
  if (input.has_value()) TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_InputRange(
    TF_OpKernelContext* ctx, const char* name, capi::TF_InputRange_Args* args) {
  args->start = args->stop = -1;
  if (Fault::Hits("TF_InputRange", args->status)) return;
  const auto found = ctx->ranges.find(name);
  if (found == ctx->ranges.end()) {
    TF_SetStatus(args->status, capi::TF_INVALID_ARGUMENT, "Unknown input name");
    return;
  }
  args->start = found->second.first;
  args->stop = found->second.second;
  TF_SetStatus(args->status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetInputByName(TF_OpKernelContext* ctx,
                                                    const char* name,
                                                    TF_Tensor** tensor,
                                                    TF_Status* status) {
  const auto found = ctx->ranges.find(name);
  if (found == ctx->ranges.end()) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "Unknown input name");
    return;
  }
  TF_GetInput(ctx, found->second.first, tensor, status);
}

// ---- Outputs and temporaries -----------------------------------------------

inline void CheckDims(const int64_t* dims, int num_dims, const char* function) {
  for (int i = 0; i < num_dims; ++i) {
    if (dims[i] < 0) FakeWouldAbort(function);
  }
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateOutput(
    TF_OpKernelContext* ctx, int i, capi::TF_DataType, const int64_t* dims,
    int num_dims, size_t, TF_Status* status) {
  if (Fault::Hits("TF_AllocateOutput", status)) return nullptr;
  CheckDims(dims, num_dims, "TF_AllocateOutput");
  if (!IsOutput(ctx, i)) FakeWouldAbort("TF_AllocateOutput");
  auto& output = OutputOf(ctx, i);
  output = MakeTensor(ctx->output_types[static_cast<size_t>(i)],
                      {dims, dims + num_dims});
  TF_SetStatus(status, capi::TF_OK, "");
  return new TF_Tensor(*output);
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* ctx, const int* candidates, int num_candidates, int i,
    const int64_t* dims, int num_dims, int* forwarded, TF_Status* status) {
  if (Fault::Hits("TF_ForwardInputOrAllocateOutput", status)) return nullptr;
  CheckDims(dims, num_dims, "TF_ForwardInputOrAllocateOutput");
  const TF_Tensor wanted(ctx->output_types[static_cast<size_t>(i)],
                         {dims, dims + num_dims}, nullptr);
  for (int k = 0; k < num_candidates; ++k) {
    const auto& input = ctx->inputs[static_cast<size_t>(candidates[k])];
    // The kernel's own handle does not count as somebody who needs it.
    if (!input.has_value() || input->buffer.use_count() > 2) continue;
    if (input->dtype != wanted.dtype || input->size() != wanted.size())
      continue;
    *forwarded = candidates[k];
    ++ctx->forwarded;
    auto& output = OutputOf(ctx, i);
    output = TF_Tensor(wanted.dtype, wanted.dims, input->buffer);
    TF_SetStatus(status, capi::TF_OK, "");
    return new TF_Tensor(*output);
  }
  *forwarded = -1;
  return TF_AllocateOutput(ctx, i, wanted.dtype, dims, num_dims, 0, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_SetOutput(TF_OpKernelContext* ctx, int i,
                                               const TF_Tensor* tensor,
                                               TF_Status* status) {
  if (Fault::Hits("TF_SetOutput", status)) return;
  if (!IsOutput(ctx, i)) {
    TF_SetStatus(status, capi::TF_OUT_OF_RANGE, "output index out of range");
    return;
  }
  OutputOf(ctx, i) = *tensor;
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_GetMutableOutput(
    TF_OpKernelContext* ctx, int i, TF_Status* status) {
  if (Fault::Hits("TF_GetMutableOutput", status)) return nullptr;
  if (!IsOutput(ctx, i) || !OutputOf(ctx, i).has_value()) {
    FakeWouldAbort("TF_GetMutableOutput");
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return new TF_Tensor(*OutputOf(ctx, i));
}
TFPLUG_TESTING_CORE_FUNCTION TF_Tensor* TF_AllocateTemp(
    TF_OpKernelContext* ctx, capi::TF_DataType dtype, const int64_t* dims,
    int num_dims, capi::TF_AllocatorAttributes* attributes, TF_Status* status) {
  if (Fault::Hits("TF_AllocateTemp", status)) return nullptr;
  CheckDims(dims, num_dims, "TF_AllocateTemp");
  if (attributes->struct_size == 0) FakeWouldAbort("TF_AllocateTemp");
  ++(attributes->on_host ? ctx->host_temporaries : ctx->temporaries);
  TF_SetStatus(status, capi::TF_OK, "");
  return new TF_Tensor(MakeTensor(dtype, {dims, dims + num_dims}));
}
TFPLUG_TESTING_CORE_FUNCTION capi::SP_Stream TF_GetStream(
    TF_OpKernelContext* ctx, TF_Status* status) {
  if (Fault::Hits("TF_GetStream", status)) return nullptr;
  if (ctx->stream == nullptr) {
    TF_SetStatus(status, capi::TF_FAILED_PRECONDITION,
                 "Accessing device stream is not supported for a CPU device.");
    return nullptr;
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return ctx->stream;
}

// ---- What is asked for more rarely -----------------------------------------

inline capi::TF_StringView View(const std::string& text) {
  return {text.data(), text.size()};
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView TF_GetOpKernelName(
    TF_OpKernelContext* ctx) {
  return View(ctx->node);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView TF_GetOpKernelRequestedInput(
    TF_OpKernelContext* ctx, size_t i) {
  if (i >= ctx->requested_inputs.size()) {
    FakeWouldAbort("TF_GetOpKernelRequestedInput");
  }
  return View(ctx->requested_inputs[i]);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView TF_GetDeviceName(
    TF_OpKernelContext* ctx) {
  return View(ctx->device);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView
TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  return View(ctx->container);
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_StepId(TF_OpKernelContext* ctx) {
  return ctx->step_id;
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_GetStepId(TF_OpKernelContext* ctx) {
  return ctx->step_id;
}
TFPLUG_TESTING_CORE_FUNCTION uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) {
  return ctx->frame_id;
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_GetIterId(TF_OpKernelContext* ctx) {
  return ctx->iter_id;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_GetDeviceId(TF_OpKernelContext* ctx) {
  return ctx->device_id;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_GetGraphDefVersion(
    TF_OpKernelContext* ctx) {
  return ctx->graph_def_version;
}
inline bool Contains(const std::vector<int>& all, int one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
TFPLUG_TESTING_CORE_FUNCTION bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx,
                                                       int i,
                                                       TF_Status* status) {
  if (Fault::Hits("TF_IsHostMemoryInput", status)) return false;
  if (!IsInput(ctx, i)) FakeWouldAbort("TF_IsHostMemoryInput");
  return Contains(ctx->host_inputs, i);
}
TFPLUG_TESTING_CORE_FUNCTION bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx,
                                                        int i,
                                                        TF_Status* status) {
  if (Fault::Hits("TF_IsHostMemoryOutput", status)) return false;
  if (!IsOutput(ctx, i)) FakeWouldAbort("TF_IsHostMemoryOutput");
  return Contains(ctx->host_outputs, i);
}
TFPLUG_TESTING_CORE_FUNCTION bool TF_IsRefInput(TF_OpKernelContext* ctx, int i,
                                                TF_Status* status) {
  if (Fault::Hits("TF_IsRefInput", status)) return false;
  const auto& input = ctx->inputs[static_cast<size_t>(i)];
  return input.has_value() && static_cast<int>(input->dtype) > 100;
}
inline void GiveBytes(const char* function, const std::string& bytes,
                      capi::TF_Buffer* buffer, TF_Status* status) {
  if (!Fault::Hits(function, status)) FillBuffer(buffer, bytes);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetSerializedFunctionDefLibrary(
    TF_OpKernelContext* ctx, capi::TF_Buffer* buffer, TF_Status* status) {
  GiveBytes("TF_GetSerializedFunctionDefLibrary", ctx->function_library, buffer,
            status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetSerializedConfigProto(
    TF_OpKernelContext* ctx, capi::TF_Buffer* buffer, TF_Status* status) {
  GiveBytes("TF_GetSerializedConfigProto", ctx->config, buffer, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetSerializedResourceHandleProto(
    TF_OpKernelContext* ctx, int i, capi::TF_Buffer* buffer,
    TF_Status* status) {
  if (TF_InputDatatype(ctx, i) != capi::TF_RESOURCE) {
    FakeWouldAbort("TF_GetSerializedResourceHandleProto");
  }
  GiveBytes("TF_GetSerializedResourceHandleProto", ctx->resource_handle, buffer,
            status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_IncNumDeferredOps(
    TF_OpKernelContext* ctx) {
  ctx->most_deferred_ops =
      std::max(ctx->most_deferred_ops, ++ctx->deferred_ops);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DecNumDeferredOps(
    TF_OpKernelContext* ctx) {
  --ctx->deferred_ops;
}
// As core has it: the address of a std::function.
TFPLUG_TESTING_CORE_FUNCTION void TF_RunAsyncOpKernelDoneCallback(
    capi::TF_AsyncOpKernelDoneCallback* done) {
  (*reinterpret_cast<std::function<void()>*>(done))();
}

inline void InstallRunFunctions(capi::Functions& core) {
  core.TF_OpKernelContext_Failure = &TF_OpKernelContext_Failure;
  core.TF_NumInputs = &TF_NumInputs;
  core.TF_NumOutputs = &TF_NumOutputs;
  core.TF_ExpectedOutputDataType = &TF_ExpectedOutputDataType;
  core.TF_InputDatatype = &TF_InputDatatype;
  core.TF_GetInput = &TF_GetInput;
  core.TF_InputRange = &TF_InputRange;
  core.TF_GetInputByName = &TF_GetInputByName;
  core.TF_AllocateOutput = &TF_AllocateOutput;
  core.TF_ForwardInputOrAllocateOutput = &TF_ForwardInputOrAllocateOutput;
  core.TF_SetOutput = &TF_SetOutput;
  core.TF_GetMutableOutput = &TF_GetMutableOutput;
  core.TF_AllocateTemp = &TF_AllocateTemp;
  core.TF_GetStream = &TF_GetStream;
  core.TF_GetOpKernelName = &TF_GetOpKernelName;
  core.TF_GetOpKernelRequestedInput = &TF_GetOpKernelRequestedInput;
  core.TF_GetDeviceName = &TF_GetDeviceName;
  core.TF_GetResourceMgrDefaultContainerName =
      &TF_GetResourceMgrDefaultContainerName;
  core.TF_StepId = &TF_StepId;
  core.TF_GetStepId = &TF_GetStepId;
  core.TF_GetFrameId = &TF_GetFrameId;
  core.TF_GetIterId = &TF_GetIterId;
  core.TF_GetDeviceId = &TF_GetDeviceId;
  core.TF_GetGraphDefVersion = &TF_GetGraphDefVersion;
  core.TF_IsHostMemoryInput = &TF_IsHostMemoryInput;
  core.TF_IsHostMemoryOutput = &TF_IsHostMemoryOutput;
  core.TF_IsRefInput = &TF_IsRefInput;
  core.TF_GetSerializedFunctionDefLibrary = &TF_GetSerializedFunctionDefLibrary;
  core.TF_GetSerializedConfigProto = &TF_GetSerializedConfigProto;
  core.TF_GetSerializedResourceHandleProto =
      &TF_GetSerializedResourceHandleProto;
  core.TF_IncNumDeferredOps = &TF_IncNumDeferredOps;
  core.TF_DecNumDeferredOps = &TF_DecNumDeferredOps;
  core.TF_RunAsyncOpKernelDoneCallback = &TF_RunAsyncOpKernelDoneCallback;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_RUN_H_
