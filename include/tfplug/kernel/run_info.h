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
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/run_state.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The part of KernelContext that describes the run: names, ids, the types and
// memory of arguments. A function whose C function this release lacks returns
// UNIMPLEMENTED, with the releases that have it. TensorFlow owns the strings,
// which live as long as the kernel.
//
// A template only to save compile time: a file compiles only the functions that
// it calls.
template <class = void>
class RunInfo {
 public:
  int num_inputs() const { return internal::tensorflow.TF_NumInputs(get()); }
  int num_outputs() const { return internal::tensorflow.TF_NumOutputs(get()); }

  // ---- Names -------------------------------------------------------------

  // Returns the node's name. Since 2.10.
  absl::StatusOr<absl::string_view> GetNodeName() const {
    return GetString(&CApi::TF_GetOpKernelName);
  }
  // Returns the name of the node's input `i` in the graph: "node" or "node:1".
  // Since 2.10.
  absl::StatusOr<absl::string_view> GetRequestedInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return GetString(&CApi::TF_GetOpKernelRequestedInput,
                     static_cast<size_t>(i));
  }
  // Returns the device's full name, such as
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0". Since 2.16.
  absl::StatusOr<absl::string_view> GetDeviceName() const {
    return GetString(&CApi::TF_GetDeviceName);
  }
  // Returns the name of the container for resources that do not name one. Since
  // 2.11.
  absl::StatusOr<absl::string_view> GetDefaultContainer() const {
    return GetString(&CApi::TF_GetResourceMgrDefaultContainerName);
  }

  // ---- Ids and versions --------------------------------------------------

  // Returns the step's id, which is the same for all nodes of one step.
  int64_t step_id() const { return internal::tensorflow.TF_StepId(get()); }
  // Return the id of the control flow frame and of the iteration in it. Since
  // 2.11.
  absl::StatusOr<uint64_t> GetFrameId() const {
    return Call(&CApi::TF_GetFrameId);
  }
  absl::StatusOr<int64_t> GetIterationId() const {
    return Call(&CApi::TF_GetIterId);
  }
  // Returns the device's ordinal. Since 2.12.
  absl::StatusOr<int> GetDeviceId() const {
    return Call(&CApi::TF_GetDeviceId);
  }
  // Returns the producer version of the graph. Since 2.11.
  absl::StatusOr<int> GetGraphDefVersion() const {
    return Call(&CApi::TF_GetGraphDefVersion);
  }

  // ---- Types and memory of arguments ---------------------------------------

  // Returns the type of input `i`. Since 2.12; in older releases call
  // GetInput(i) and Tensor::dtype.
  absl::StatusOr<DataType> GetInputType(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    auto type = Call(&CApi::TF_InputDatatype, i);
    if (!type.ok()) return type.status();
    return static_cast<DataType>(*type);
  }
  // Return whether the argument is in host memory. Since 2.11.
  absl::StatusOr<bool> IsHostMemoryInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return CallWithStatus(&CApi::TF_IsHostMemoryInput, i);
  }
  absl::StatusOr<bool> IsHostMemoryOutput(int i) const {
    if (auto s = CheckOutput(i); !s.ok()) return s;
    return CallWithStatus(&CApi::TF_IsHostMemoryOutput, i);
  }
  // Returns whether the input is a reference to a TensorFlow 1 variable. 2.9 to
  // 2.18.
  absl::StatusOr<bool> IsRefInput(int i) const {
    if (auto s = CheckInput(i); !s.ok()) return s;
    return CallWithStatus(&CApi::TF_IsRefInput, i);
  }

  // ---- Serialized protocol buffers -----------------------------------------

  // Returns a tensorflow.FunctionDefLibrary: the functions that the graph may
  // call. Since 2.11.
  absl::StatusOr<Buffer> GetFunctionLibrary() const {
    return GetBuffer(&CApi::TF_GetSerializedFunctionDefLibrary);
  }
  // Returns the session's tensorflow.ConfigProto. Since 2.11.
  absl::StatusOr<Buffer> GetSessionConfig() const {
    return GetBuffer(&CApi::TF_GetSerializedConfigProto);
  }
  // Returns the tensorflow.ResourceHandleProto of input `i`, a resource. Since
  // 2.12.
  absl::StatusOr<Buffer> GetResourceHandle(int i) const {
    auto type = GetInputType(i);
    if (!type.ok()) return type.status();
    if (*type != DataType::kResource) {
      return absl::InvalidArgumentError("input " + std::to_string(i) + " is " +
                                        DataTypeName(*type) +
                                        ", not a resource");
    }
    return GetBuffer(&CApi::TF_GetSerializedResourceHandleProto, i);
  }

  // Returns the context, for direct calls of C functions.
  capi::TF_OpKernelContext* get() const { return state_.context(); }

 protected:
  friend struct internal::Access;

  explicit RunInfo(capi::TF_OpKernelContext* context) : state_(context) {}
  RunInfo(capi::TF_OpKernelContext* context, kernel_internal::RunCache& cache)
      : state_(context, cache) {}

  // TensorFlow aborts on some indices that are out of range.
  absl::Status CheckInput(int i) const {
    return i >= 0 && i < num_inputs() ? absl::OkStatus()
                                      : OutOfRange("input", i, num_inputs());
  }
  absl::Status CheckOutput(int i) const {
    return i >= 0 && i < num_outputs() ? absl::OkStatus()
                                       : OutOfRange("output", i, num_outputs());
  }
  [[gnu::cold, gnu::noinline]] static absl::Status OutOfRange(
      const char* argument, int i, int size) {
    return absl::OutOfRangeError(std::string("there is no ") + argument + " " +
                                 std::to_string(i) + ": the node has " +
                                 std::to_string(size) + " " + argument +
                                 (size == 1 ? "" : "s"));
  }

  kernel_internal::RunState state_;

 private:
  template <class R, class... Parameters, class... Arguments>
  absl::StatusOr<R> Call(R (*CApi::*function)(capi::TF_OpKernelContext*,
                                              Parameters...),
                         Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    return (internal::tensorflow.*function)(get(), arguments...);
  }
  template <class F, class... Arguments>
  absl::StatusOr<bool> CallWithStatus(F function,
                                      Arguments... arguments) const {
    OwnedStatus status;
    auto result = Call(function, arguments..., status.get());
    if (result.ok() && !status.ok()) return status.ToStatus();
    return result;
  }
  template <class F, class... Arguments>
  absl::StatusOr<absl::string_view> GetString(F function,
                                              Arguments... arguments) const {
    auto view = Call(function, arguments...);
    if (!view.ok()) return view.status();
    return absl::string_view(view->data, view->len);
  }
  template <class F, class... Arguments>
  absl::StatusOr<Buffer> GetBuffer(F function, Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    auto buffer = Buffer::New();
    if (!buffer.ok()) return buffer;
    OwnedStatus status;
    (internal::tensorflow.*function)(get(), arguments..., buffer->get(),
                                     status.get());
    if (!status.ok()) return status.ToStatus();
    return buffer;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_RUN_INFO_H_
