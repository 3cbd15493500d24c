// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUN_INFO_H_
#define TFPLUG_RUN_INFO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/buffer.h"
#include "tfplug/capability.h"
#include "tfplug/data_type.h"
#include "tfplug/internal/core.h"
#include "tfplug/status.h"

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
  int num_inputs() const { return internal::core.TF_NumInputs(context_); }
  int num_outputs() const { return internal::core.TF_NumOutputs(context_); }

  // ---- Names -------------------------------------------------------------

  // Of the node. Since 2.10.
  absl::StatusOr<absl::string_view> node_name() const {
    return AskString(&CApi::TF_GetOpKernelName);
  }
  // What the node's input `i` is called in the graph: "node" or "node:1". Since
  // 2.10.
  absl::StatusOr<absl::string_view> requested_input(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskString(&CApi::TF_GetOpKernelRequestedInput,
                     static_cast<size_t>(i));
  }
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0". Since 2.16.
  absl::StatusOr<absl::string_view> device_name() const {
    return AskString(&CApi::TF_GetDeviceName);
  }
  // The container where resources are that name none. Since 2.11.
  absl::StatusOr<absl::string_view> default_container() const {
    return AskString(&CApi::TF_GetResourceMgrDefaultContainerName);
  }

  // ---- Numbers -----------------------------------------------------------

  // The same for all nodes of one step.
  int64_t step_id() const { return internal::core.TF_StepId(context_); }
  // The frame of control flow and the iteration in it. Since 2.11.
  absl::StatusOr<uint64_t> frame_id() const {
    return Ask(&CApi::TF_GetFrameId);
  }
  absl::StatusOr<int64_t> iter_id() const { return Ask(&CApi::TF_GetIterId); }
  // The ordinal of the device. Since 2.12.
  absl::StatusOr<int> device_id() const { return Ask(&CApi::TF_GetDeviceId); }
  // The version of the graph's producer. Since 2.11.
  absl::StatusOr<int> graph_def_version() const {
    return Ask(&CApi::TF_GetGraphDefVersion);
  }

  // ---- Types and places of arguments ---------------------------------------

  // Of input `i`. Since 2.12; before, ask the tensor.
  absl::StatusOr<DataType> input_dtype(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    auto type = Ask(&CApi::TF_InputDatatype, i);
    if (!type.ok()) return type.status();
    return static_cast<DataType>(*type);
  }
  // Whether the argument is in host memory. Since 2.11.
  absl::StatusOr<bool> is_host_memory_input(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsHostMemoryInput, i);
  }
  absl::StatusOr<bool> is_host_memory_output(int i) const {
    if (auto s = CheckOutput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsHostMemoryOutput, i);
  }
  // Whether the input is a reference of TensorFlow 1's. 2.9 to 2.18.
  absl::StatusOr<bool> is_ref_input(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return AskWithStatus(&CApi::TF_IsRefInput, i);
  }

  // ---- Protocol buffers, serialised ----------------------------------------

  // tensorflow.FunctionDefLibrary: the functions that the graph may call.
  // Since 2.11.
  absl::StatusOr<Buffer> function_library() const {
    return AskBuffer(&CApi::TF_GetSerializedFunctionDefLibrary);
  }
  // tensorflow.ConfigProto: the session's. Since 2.11.
  absl::StatusOr<Buffer> config() const {
    return AskBuffer(&CApi::TF_GetSerializedConfigProto);
  }
  // tensorflow.ResourceHandleProto of input `i`, a resource. Since 2.12.
  absl::StatusOr<Buffer> resource_handle(int i) const {
    auto type = input_dtype(i);
    if (!type.ok()) return type.status();
    if (*type != DataType::kResource) {
      return absl::InvalidArgumentError("input " + std::to_string(i) +
                                        " is no resource but " +
                                        DataTypeName(*type));
    }
    return AskBuffer(&CApi::TF_GetSerializedResourceHandleProto, i);
  }

  // For calls of C functions by hand.
  abi::TF_OpKernelContext* get() const { return context_; }

 protected:
  explicit RunInfo(abi::TF_OpKernelContext* context) : context_(context) {}

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
  absl::StatusOr<R> Ask(R (*CApi::*function)(abi::TF_OpKernelContext*,
                                             Parameters...),
                        Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    return (internal::core.*function)(context_, arguments...);
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
    (internal::core.*function)(context_, arguments..., buffer->get(),
                               status.get());
    if (!status.ok()) return status.ToStatus();
    return buffer;
  }

 protected:
  abi::TF_OpKernelContext* const context_;
};

}  // namespace tfplug

#endif  // TFPLUG_RUN_INFO_H_
