// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_RUN_INFO_H_
#define TFPLUG_KERNEL_RUN_INFO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"

namespace tfplug {

// What a kernel may ask about its run, beside inputs and outputs: the part of
// KernelContext that is not on the way of every run. What this release lacks is
// UNIMPLEMENTED in words that name the releases which have it. The strings
// belong to core and live as long as the kernel.
//
// A template only so that a file's compilation pays for what it asks.
template <class = void>
class RunInfo {
 public:
  int num_inputs() const { return internal::tensorflow.TF_NumInputs(context_); }
  int num_outputs() const {
    return internal::tensorflow.TF_NumOutputs(context_);
  }

  // ---- Names -------------------------------------------------------------

  // Of the node. Since 2.10.
  absl::StatusOr<absl::string_view> GetNodeName() const {
    return AskString(&CApi::TF_GetOpKernelName);
  }
  // What the node's input `i` is called in the graph: "node" or "node:1". Since
  // 2.10.
  absl::StatusOr<absl::string_view> GetRequestedInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskString(&CApi::TF_GetOpKernelRequestedInput,
                     static_cast<size_t>(i));
  }
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0". Since 2.16.
  absl::StatusOr<absl::string_view> GetDeviceName() const {
    return AskString(&CApi::TF_GetDeviceName);
  }
  // The container where resources are that name none. Since 2.11.
  absl::StatusOr<absl::string_view> GetDefaultContainer() const {
    return AskString(&CApi::TF_GetResourceMgrDefaultContainerName);
  }

  // ---- Numbers -----------------------------------------------------------

  // The same for all nodes of one step.
  int64_t step_id() const { return internal::tensorflow.TF_StepId(context_); }
  // The frame of control flow and the iteration in it. Since 2.11.
  absl::StatusOr<uint64_t> GetFrameId() const {
    return Ask(&CApi::TF_GetFrameId);
  }
  absl::StatusOr<int64_t> GetIterationId() const {
    return Ask(&CApi::TF_GetIterId);
  }
  // The ordinal of the device. Since 2.12.
  absl::StatusOr<int> GetDeviceId() const { return Ask(&CApi::TF_GetDeviceId); }
  // The version of the graph's producer. Since 2.11.
  absl::StatusOr<int> GetGraphDefVersion() const {
    return Ask(&CApi::TF_GetGraphDefVersion);
  }

  // ---- Types and places of arguments ---------------------------------------

  // Of input `i`. Since 2.12; before, ask the tensor.
  absl::StatusOr<DataType> GetInputType(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    auto type = Ask(&CApi::TF_InputDatatype, i);
    if (!type.ok()) return type.status();
    return static_cast<DataType>(*type);
  }
  // Whether the argument is in host memory. Since 2.11.
  absl::StatusOr<bool> IsHostMemoryInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsHostMemoryInput, i);
  }
  absl::StatusOr<bool> IsHostMemoryOutput(int i) const {
    if (auto s = CheckOutput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsHostMemoryOutput, i);
  }
  // Whether the input is a reference of TensorFlow 1's. 2.9 to 2.18.
  absl::StatusOr<bool> IsRefInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsRefInput, i);
  }

  // ---- Protocol buffers, serialised ----------------------------------------

  // tensorflow.FunctionDefLibrary: the functions that the graph may call.
  // Since 2.11.
  absl::StatusOr<Buffer> GetFunctionLibrary() const {
    return AskBuffer(&CApi::TF_GetSerializedFunctionDefLibrary);
  }
  // tensorflow.ConfigProto: the session's. Since 2.11.
  absl::StatusOr<Buffer> GetSessionConfig() const {
    return AskBuffer(&CApi::TF_GetSerializedConfigProto);
  }
  // tensorflow.ResourceHandleProto of input `i`, a resource. Since 2.12.
  absl::StatusOr<Buffer> GetResourceHandle(int i) const {
    auto type = GetInputType(i);
    if (!type.ok()) return type.status();
    if (*type != DataType::kResource) {
      return absl::InvalidArgumentError("input " + std::to_string(i) +
                                        " is no resource but " +
                                        DataTypeName(*type));
    }
    return AskBuffer(&CApi::TF_GetSerializedResourceHandleProto, i);
  }

  // For calls of C functions by hand.
  capi::TF_OpKernelContext* get() const { return context_; }

 protected:
  explicit RunInfo(capi::TF_OpKernelContext* context) : context_(context) {}

  // Core ends the process over some indices that are out of range.
  absl::Status CheckInput(int i) const {
    return i >= 0 && i < num_inputs() ? absl::OkStatus()
                                      : OutOfRange("input", i, num_inputs());
  }
  absl::Status CheckOutput(int i) const {
    return i >= 0 && i < num_outputs() ? absl::OkStatus()
                                       : OutOfRange("output", i, num_outputs());
  }
  [[gnu::cold, gnu::noinline]] static absl::Status OutOfRange(const char* what,
                                                              int i, int size) {
    return absl::OutOfRangeError(std::string("there is no ") + what + " " +
                                 std::to_string(i) + ", the node has " +
                                 std::to_string(size));
  }

 private:
  template <class R, class... Parameters, class... Arguments>
  absl::StatusOr<R> Ask(R (*CApi::*function)(capi::TF_OpKernelContext*,
                                             Parameters...),
                        Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    return (internal::tensorflow.*function)(context_, arguments...);
  }
  template <class F, class... Arguments>
  absl::StatusOr<absl::string_view> AskString(F function,
                                              Arguments... arguments) const {
    auto view = Ask(function, arguments...);
    if (!view.ok()) return view.status();
    return absl::string_view(view->data, view->len);
  }
  template <class F, class... Arguments>
  absl::StatusOr<bool> AskWithStatus(F function, Arguments... arguments) const {
    OwnedStatus status;
    auto answer = Ask(function, arguments..., status.get());
    if (answer.ok() && !status.ok()) return status.ToStatus();
    return answer;
  }
  template <class F, class... Arguments>
  absl::StatusOr<Buffer> AskBuffer(F function, Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    auto buffer = Buffer::New();
    if (!buffer.ok()) return buffer;
    OwnedStatus status;
    (internal::tensorflow.*function)(context_, arguments..., buffer->get(),
                                     status.get());
    if (!status.ok()) return status.ToStatus();
    return buffer;
  }

 protected:
  capi::TF_OpKernelContext* const context_;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_RUN_INFO_H_
