// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_DISPATCH_H_
#define TFPLUG_RUNTIME_DISPATCH_H_

#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "tfplug/abi/functions.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/abi/tf_rendezvous.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/runtime/constructed_node.h"
#include "tfplug/runtime/handles.h"
#include "tfplug/runtime/node_run.h"

#pragma GCC visibility push(hidden)

// Replaces functions in the table of TensorFlow's C API by ones that also take
// the handles of a region's kernels.
namespace tfplug::runtime {

// Calls function(T&, arguments...) for our handles.
template <class T, auto member, auto function>
struct Ours;
template <class T, class R, class C, class... A,
          R (*capi::Functions::*member)(C*, A...), auto function>
struct Ours<T, member, function> {
  static R Call(C* handle, A... a) {
    if (ABSL_PREDICT_FALSE(IsOurs(handle))) {
      return function(FromHandle<T>(handle), a...);
    }
    return (original.*member)(handle, a...);
  }
};

// Calls TensorFlow's function for the region's own run.
template <auto member>
struct Outer;
template <class R, class... A,
          R (*capi::Functions::*member)(capi::TF_OpKernelContext*, A...)>
struct Outer<member> {
  static R Call(capi::TF_OpKernelContext* handle, A... a) {
    if (ABSL_PREDICT_FALSE(IsOurs(handle))) {
      handle = FromHandle<NodeRun>(handle).outer();
    }
    return (original.*member)(handle, a...);
  }
};

// Fails for our handles: no kernel in a region calls such a function.
inline void Refuse(capi::TF_Status* status) {
  original.TF_SetStatus(
      status, capi::TF_UNIMPLEMENTED,
      "tfplug runs no kernel that calls this function in a region; set "
      "TFPLUG_REGIONS=0 and report the op");
}
template <class A>
void RefuseWith(A argument) {
  if constexpr (std::is_same_v<A, capi::TF_Status*>) Refuse(argument);
  if constexpr (std::is_same_v<A, capi::TF_InputRange_Args*>) {
    argument->start = argument->stop = -1;
    Refuse(argument->status);
  }
}
template <auto member>
struct Never;
template <class R, class... A,
          R (*capi::Functions::*member)(capi::TF_OpKernelContext*, A...)>
struct Never<member> {
  static R Call(capi::TF_OpKernelContext* handle, A... a) {
    if (ABSL_PREDICT_FALSE(IsOurs(handle))) {
      (RefuseWith(a), ...);
      return R();
    }
    return (original.*member)(handle, a...);
  }
};

// Replaces the functions in the table, unless they are replaced already.
// TF_InitKernel calls it while TensorFlow loads the library, before any kernel
// is constructed.
inline void InstallDispatch() {
  using F = capi::Functions;
  F& table = internal::tensorflow;
  if (table.TF_NumInputs ==
      &Ours<NodeRun, &F::TF_NumInputs, &NodeRun::NumInputs>::Call) {
    return;
  }
  original = table;
  const auto set = [&](auto member, auto function) {
    if (table.*member != nullptr) table.*member = function;
  };
#define TFPLUG_INTERNAL_OURS(T, name, function) \
  set(&F::name, &Ours<T, &F::name, function>::Call)
#define TFPLUG_INTERNAL_ATTR(name)                                       \
  TFPLUG_INTERNAL_OURS(NodeConstruction, TF_OpKernelConstruction_##name, \
                       &runtime::name)
  TFPLUG_INTERNAL_ATTR(GetAttrBool);
  TFPLUG_INTERNAL_ATTR(GetAttrBoolList);
  TFPLUG_INTERNAL_ATTR(GetAttrInt32);
  TFPLUG_INTERNAL_ATTR(GetAttrInt32List);
  TFPLUG_INTERNAL_ATTR(GetAttrInt64);
  TFPLUG_INTERNAL_ATTR(GetAttrInt64List);
  TFPLUG_INTERNAL_ATTR(GetAttrFloat);
  TFPLUG_INTERNAL_ATTR(GetAttrFloatList);
  TFPLUG_INTERNAL_ATTR(GetAttrType);
  TFPLUG_INTERNAL_ATTR(GetAttrTypeList);
  TFPLUG_INTERNAL_ATTR(GetAttrString);
  TFPLUG_INTERNAL_ATTR(GetAttrStringList);
  TFPLUG_INTERNAL_ATTR(GetAttrTensor);
  TFPLUG_INTERNAL_ATTR(GetAttrTensorList);
  TFPLUG_INTERNAL_ATTR(GetAttrTensorShape);
  TFPLUG_INTERNAL_ATTR(GetAttrFunction);
  TFPLUG_INTERNAL_ATTR(GetAttrSize);
  TFPLUG_INTERNAL_ATTR(HasAttr);
  TFPLUG_INTERNAL_ATTR(GetName);
  TFPLUG_INTERNAL_ATTR(GetNodeDef);
  TFPLUG_INTERNAL_OURS(NodeConstruction, TF_OpKernelConstruction_Failure,
                       &NodeConstruction::Failure);
#define TFPLUG_INTERNAL_RUN(name) \
  TFPLUG_INTERNAL_OURS(NodeRun, TF_##name, &NodeRun::name)
  TFPLUG_INTERNAL_RUN(AllocateOutput);
  TFPLUG_INTERNAL_RUN(AllocateTemp);
  TFPLUG_INTERNAL_RUN(ExpectedOutputDataType);
  TFPLUG_INTERNAL_RUN(ForwardInputOrAllocateOutput);
  TFPLUG_INTERNAL_RUN(GetInput);
  TFPLUG_INTERNAL_RUN(GetMutableOutput);
  TFPLUG_INTERNAL_RUN(GetOpKernelName);
  TFPLUG_INTERNAL_RUN(GetStream);
  TFPLUG_INTERNAL_RUN(InputDatatype);
  TFPLUG_INTERNAL_RUN(IsHostMemoryInput);
  TFPLUG_INTERNAL_RUN(IsHostMemoryOutput);
  TFPLUG_INTERNAL_RUN(IsRefInput);
  TFPLUG_INTERNAL_RUN(NumInputs);
  TFPLUG_INTERNAL_RUN(NumOutputs);
  TFPLUG_INTERNAL_RUN(SetOutput);
  TFPLUG_INTERNAL_OURS(NodeRun, TF_OpKernelContext_Failure, &NodeRun::Failure);
#undef TFPLUG_INTERNAL_RUN
#undef TFPLUG_INTERNAL_ATTR
#undef TFPLUG_INTERNAL_OURS
#define TFPLUG_INTERNAL_OUTER(name) set(&F::name, &Outer<&F::name>::Call)
  TFPLUG_INTERNAL_OUTER(TF_DecNumDeferredOps);
  TFPLUG_INTERNAL_OUTER(TF_GetDeviceId);
  TFPLUG_INTERNAL_OUTER(TF_GetDeviceName);
  TFPLUG_INTERNAL_OUTER(TF_GetFrameId);
  TFPLUG_INTERNAL_OUTER(TF_GetGraphDefVersion);
  TFPLUG_INTERNAL_OUTER(TF_GetIterId);
  TFPLUG_INTERNAL_OUTER(TF_GetRendezvous);
  TFPLUG_INTERNAL_OUTER(TF_GetResourceMgrDefaultContainerName);
  TFPLUG_INTERNAL_OUTER(TF_GetSerializedConfigProto);
  TFPLUG_INTERNAL_OUTER(TF_GetSerializedFunctionDefLibrary);
  TFPLUG_INTERNAL_OUTER(TF_GetStepId);
  TFPLUG_INTERNAL_OUTER(TF_IncNumDeferredOps);
  TFPLUG_INTERNAL_OUTER(TF_StepId);
#undef TFPLUG_INTERNAL_OUTER
#define TFPLUG_INTERNAL_NEVER(name) set(&F::name, &Never<&F::name>::Call)
  TFPLUG_INTERNAL_NEVER(TF_AddNVariant);
  TFPLUG_INTERNAL_NEVER(TF_AssignRefVariable);
  TFPLUG_INTERNAL_NEVER(TF_AssignUpdateVariable);
  TFPLUG_INTERNAL_NEVER(TF_AssignVariable);
  TFPLUG_INTERNAL_NEVER(TF_DestroyTemporaryVariable);
  TFPLUG_INTERNAL_NEVER(TF_GetInputByName);
  TFPLUG_INTERNAL_NEVER(TF_GetInputTensorFromVariable);
  TFPLUG_INTERNAL_NEVER(TF_GetOpKernelRequestedInput);
  TFPLUG_INTERNAL_NEVER(TF_GetSerializedResourceHandleProto);
  TFPLUG_INTERNAL_NEVER(TF_InputRange);
  TFPLUG_INTERNAL_NEVER(TF_MaybeLockVariableInputMutexesInOrder);
  TFPLUG_INTERNAL_NEVER(TF_OpKernelContext_ForwardRefInputToRefOutput);
  TFPLUG_INTERNAL_NEVER(TF_TemporaryVariable);
  TFPLUG_INTERNAL_NEVER(TF_ZerosLikeVariant);
#undef TFPLUG_INTERNAL_NEVER
}

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_DISPATCH_H_
