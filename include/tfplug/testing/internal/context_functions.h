// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_CONTEXT_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_CONTEXT_FUNCTIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/internal/buffer_functions.h"
#include "tfplug/testing/op_registry.h"
#include "tfplug/testing/release.h"

#pragma GCC visibility push(hidden)

// The C functions that read the state of a kernel's run.
namespace tfplug::testing {

TFPLUG_FAKE_FUNCTION int TF_NumInputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->inputs.size());
}
TFPLUG_FAKE_FUNCTION TF_DataType TF_InputDatatype(TF_OpKernelContext* context,
                                                  int i) {
  if (!IsInput(context, i)) {
    AbortLikeTensorFlow("TF_InputDatatype", "index out of range");
  }
  return GetInputSlot(context, i).tensor->dtype;
}
// For an absent optional input, returns no tensor and does not set the status.
TFPLUG_FAKE_FUNCTION void TF_GetInput(TF_OpKernelContext* context, int i,
                                      TF_Tensor** tensor, TF_Status* status) {
  if (Fault::Hits("TF_GetInput", status)) return;
  if (!IsInput(context, i)) {
    TF_SetStatus(status, capi::TF_OUT_OF_RANGE, "input index out of range");
    return;
  }
  const auto& input = GetInputSlot(context, i).tensor;
  *tensor = input.has_value() ? new TF_Tensor(*input) : nullptr;
  if (input.has_value()) SetOk(status);
}
// Returns the arguments of a node's op, each with its number of inputs: those in
// the node, or else of the definition that a plug-in has registered, of which one
// argument may be a list.
inline std::vector<std::pair<std::string, int>> InputArgs(
    const TF_OpKernelContext& context) {
  if (!context.node.input_args.empty()) return context.node.input_args;
  std::vector<std::pair<std::string, int>> args;
  const auto* const op = FindRegisteredOp(context.node.op);
  if (op == nullptr) return args;
  int others = static_cast<int>(context.inputs.size() - op->inputs.size());
  for (const std::string& spec : op->inputs) {
    const size_t colon = spec.find(':');
    const bool is_list = spec.find('*', colon) != spec.npos;
    const std::string name =
        spec.substr(0, spec.find_last_not_of(" :", colon) + 1);
    args.emplace_back(name, 1 + (is_list ? std::exchange(others, 0) : 0));
  }
  return args;
}
// Returns the first input of an argument and the one behind its last, or -1 twice
// and sets the status.
inline std::pair<int, int> FindInputs(const TF_OpKernelContext& context,
                                      absl::string_view name,
                                      TF_Status* status) {
  int start = 0;
  for (const auto& [arg, count] : InputArgs(context)) {
    if (arg == name) return {start, start + count};
    start += count;
  }
  TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
               "Unknown input name; set testing::Node::input_args if the op "
               "has it");
  return {-1, -1};
}
TFPLUG_FAKE_FUNCTION void TF_InputRange(TF_OpKernelContext* context,
                                        const char* name,
                                        capi::TF_InputRange_Args* args) {
  args->start = args->stop = -1;
  if (Fault::Hits("TF_InputRange", args->status)) return;
  std::tie(args->start, args->stop) = FindInputs(*context, name, args->status);
  if (args->start >= 0) SetOk(args->status);
}
TFPLUG_FAKE_FUNCTION void TF_GetInputByName(TF_OpKernelContext* context,
                                            const char* name,
                                            TF_Tensor** tensor,
                                            TF_Status* status) {
  const int start = FindInputs(*context, name, status).first;
  if (start >= 0) TF_GetInput(context, start, tensor, status);
}
TFPLUG_FAKE_FUNCTION bool TF_IsHostMemoryInput(TF_OpKernelContext* context,
                                               int i, TF_Status* status) {
  if (Fault::Hits("TF_IsHostMemoryInput", status)) return false;
  if (!IsInput(context, i)) {
    AbortLikeTensorFlow("TF_IsHostMemoryInput", "index out of range");
  }
  return GetInputSlot(context, i).on_host;
}
TFPLUG_FAKE_FUNCTION bool TF_IsHostMemoryOutput(TF_OpKernelContext* context,
                                                int i, TF_Status* status) {
  if (Fault::Hits("TF_IsHostMemoryOutput", status)) return false;
  if (!IsOutput(context, i)) {
    AbortLikeTensorFlow("TF_IsHostMemoryOutput", "index out of range");
  }
  return GetOutputSlot(context, i).on_host;
}
TFPLUG_FAKE_FUNCTION bool TF_IsRefInput(TF_OpKernelContext* context, int i,
                                        TF_Status* status) {
  if (Fault::Hits("TF_IsRefInput", status)) return false;
  const auto& input = GetInputSlot(context, i).tensor;
  return input.has_value() && static_cast<int>(input->dtype) > 100;
}
TFPLUG_FAKE_FUNCTION capi::SP_Stream TF_GetStream(TF_OpKernelContext* context,
                                                  TF_Status* status) {
  if (Fault::Hits("TF_GetStream", status)) return nullptr;
  if (context->stream == nullptr) {
    TF_SetStatus(status, capi::TF_FAILED_PRECONDITION,
                 "Accessing device stream is not supported for a CPU device.");
    return nullptr;
  }
  SetOk(status);
  return context->stream;
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelContext_Failure(
    TF_OpKernelContext* context, TF_Status* status) {
  FailRun(context, ReadStatus(*status));
}

// ---- Names, counts and protos ----------------------------------------------

inline capi::TF_StringView View(const std::string& text) {
  return {text.data(), text.size()};
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_GetOpKernelName(
    TF_OpKernelContext* context) {
  return View(context->node.name);
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_GetOpKernelRequestedInput(
    TF_OpKernelContext* context, size_t i) {
  if (i >= context->requested_inputs.size()) {
    AbortLikeTensorFlow("TF_GetOpKernelRequestedInput", "index out of range");
  }
  return View(context->requested_inputs[i]);
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_GetDeviceName(
    TF_OpKernelContext* context) {
  return View(context->device_name);
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_GetResourceMgrDefaultContainerName(
    TF_OpKernelContext* context) {
  return View(context->container);
}
TFPLUG_FAKE_FUNCTION int64_t TF_StepId(TF_OpKernelContext* context) {
  return context->step_id;
}
TFPLUG_FAKE_FUNCTION int64_t TF_GetStepId(TF_OpKernelContext* context) {
  return context->step_id;
}
TFPLUG_FAKE_FUNCTION uint64_t TF_GetFrameId(TF_OpKernelContext* context) {
  return context->frame_id;
}
TFPLUG_FAKE_FUNCTION int64_t TF_GetIterId(TF_OpKernelContext* context) {
  return context->iteration_id;
}
TFPLUG_FAKE_FUNCTION int TF_GetDeviceId(TF_OpKernelContext* context) {
  return context->device_id;
}
TFPLUG_FAKE_FUNCTION int TF_GetGraphDefVersion(TF_OpKernelContext* context) {
  return context->graph_def_version;
}
TFPLUG_FAKE_FUNCTION void TF_GetSerializedFunctionDefLibrary(
    TF_OpKernelContext* context, TF_Buffer* buffer, TF_Status* status) {
  if (Fault::Hits("TF_GetSerializedFunctionDefLibrary", status)) return;
  FillBuffer(buffer, context->function_library);
}
TFPLUG_FAKE_FUNCTION void TF_GetSerializedConfigProto(
    TF_OpKernelContext* context, TF_Buffer* buffer, TF_Status* status) {
  if (Fault::Hits("TF_GetSerializedConfigProto", status)) return;
  FillBuffer(buffer, context->config);
}
TFPLUG_FAKE_FUNCTION void TF_GetSerializedResourceHandleProto(
    TF_OpKernelContext* context, int i, TF_Buffer* buffer, TF_Status* status) {
  if (TF_InputDatatype(context, i) != capi::TF_RESOURCE) {
    AbortLikeTensorFlow("TF_GetSerializedResourceHandleProto",
                        "the input is not a resource");
  }
  if (Fault::Hits("TF_GetSerializedResourceHandleProto", status)) return;
  FillBuffer(buffer, context->resource_handle);
}

// ---- The end of a run ------------------------------------------------------

TFPLUG_FAKE_FUNCTION void TF_IncNumDeferredOps(TF_OpKernelContext* context) {
  context->max_deferred_ops =
      std::max(context->max_deferred_ops, ++context->deferred_ops);
}
TFPLUG_FAKE_FUNCTION void TF_DecNumDeferredOps(TF_OpKernelContext* context) {
  --context->deferred_ops;
}
// The callback is the address of a std::function, as in TensorFlow.
TFPLUG_FAKE_FUNCTION void TF_RunAsyncOpKernelDoneCallback(
    capi::TF_AsyncOpKernelDoneCallback* done) {
  (*reinterpret_cast<std::function<void()>*>(done))();
}
// Deletes the callback, as TensorFlow does from 2.22 on.
TFPLUG_FAKE_FUNCTION void TF_RunAsyncOpKernelDoneCallback_2_22(
    capi::TF_AsyncOpKernelDoneCallback* done) {
  const std::unique_ptr<std::function<void()>> owned(
      reinterpret_cast<std::function<void()>*>(done));
  (*owned)();
}
// Passes `done` to `compute`, which calls compute_async_func, as TensorFlow
// does: it destroys the callback when the call returns, or, from 2.22 on,
// leaves it to TF_RunAsyncOpKernelDoneCallback.
template <class Compute>
void CallAsync(std::function<void()> done, Compute compute) {
  using capi::TF_AsyncOpKernelDoneCallback;
  if (internal::tensorflow.TF_RunAsyncOpKernelDoneCallback ==
      &TF_RunAsyncOpKernelDoneCallback_2_22) {
    auto* const owned = new std::function<void()>(std::move(done));
    compute(reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(owned));
  } else {
    compute(reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(&done));
    done = [] { std::abort(); };
  }
}

inline void InstallContextFunctions(capi::Functions& functions,
                                    Release release) {
  TFPLUG_FAKE_INSTALL(TF_NumInputs);
  TFPLUG_FAKE_INSTALL(TF_InputDatatype);
  TFPLUG_FAKE_INSTALL(TF_GetInput);
  TFPLUG_FAKE_INSTALL(TF_InputRange);
  TFPLUG_FAKE_INSTALL(TF_GetInputByName);
  TFPLUG_FAKE_INSTALL(TF_IsHostMemoryInput);
  TFPLUG_FAKE_INSTALL(TF_IsHostMemoryOutput);
  TFPLUG_FAKE_INSTALL(TF_IsRefInput);
  TFPLUG_FAKE_INSTALL(TF_GetStream);
  TFPLUG_FAKE_INSTALL(TF_OpKernelContext_Failure);
  TFPLUG_FAKE_INSTALL(TF_GetOpKernelName);
  TFPLUG_FAKE_INSTALL(TF_GetOpKernelRequestedInput);
  TFPLUG_FAKE_INSTALL(TF_GetDeviceName);
  TFPLUG_FAKE_INSTALL(TF_GetResourceMgrDefaultContainerName);
  TFPLUG_FAKE_INSTALL(TF_StepId);
  TFPLUG_FAKE_INSTALL(TF_GetStepId);
  TFPLUG_FAKE_INSTALL(TF_GetFrameId);
  TFPLUG_FAKE_INSTALL(TF_GetIterId);
  TFPLUG_FAKE_INSTALL(TF_GetDeviceId);
  TFPLUG_FAKE_INSTALL(TF_GetGraphDefVersion);
  TFPLUG_FAKE_INSTALL(TF_GetSerializedFunctionDefLibrary);
  TFPLUG_FAKE_INSTALL(TF_GetSerializedConfigProto);
  TFPLUG_FAKE_INSTALL(TF_GetSerializedResourceHandleProto);
  TFPLUG_FAKE_INSTALL(TF_IncNumDeferredOps);
  TFPLUG_FAKE_INSTALL(TF_DecNumDeferredOps);
  TFPLUG_FAKE_INSTALL(TF_RunAsyncOpKernelDoneCallback);
  if (!(release < Release{2, 22})) {
    functions.TF_RunAsyncOpKernelDoneCallback =
        &TF_RunAsyncOpKernelDoneCallback_2_22;
  }
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_CONTEXT_FUNCTIONS_H_
