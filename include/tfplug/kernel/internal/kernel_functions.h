// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_

#include <type_traits>

#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
class KernelConstruction;
}  // namespace tfplug

namespace tfplug::kernel_internal {

// The functions that TF_NewKernelBuilder and TF_NewAsyncKernelBuilder take.
// compute_async_func is null unless the kernel is asynchronous.
struct KernelFunctions {
  void* (*create_func)(capi::TF_OpKernelConstruction*);
  void (*compute_func)(void*, capi::TF_OpKernelContext*);
  void (*delete_func)(void*);
  void (*compute_async_func)(void*, capi::TF_OpKernelContext*,
                             capi::TF_AsyncOpKernelDoneCallback*);
};

// True if KernelT is derived from tfplug::Kernel or tfplug::AsyncKernel, which
// define the template TableOf.
template <class KernelT, class = void>
inline constexpr bool kIsKernel = false;
template <class KernelT>
inline constexpr bool kIsKernel<
    KernelT, std::void_t<typename KernelT::template TableOf<KernelT>>> = true;

// True if Compute or ComputeAsync of KernelT can be called from outside.
template <class KernelT, class = void>
inline constexpr bool kCanCompute = false;
template <class KernelT>
inline constexpr bool
    kCanCompute<KernelT, std::void_t<typename KernelT::template TableOf<
                             KernelT>::template ResultOf<KernelT>>> = true;

// True if KernelT enqueues its work with a launcher only, so that a region can
// repeat it (op_kernels/op_run.h).
template <class KernelT, bool kByDefault = false, class = void>
inline constexpr bool kFitsRegions = kByDefault;
template <class KernelT, bool kByDefault>
inline constexpr bool kFitsRegions<
    KernelT, kByDefault, std::void_t<decltype(KernelT::kFitsRegions)>> =
    KernelT::kFitsRegions;

// The first mistake in a kernel's class. Registration macros assert each of them
// themselves, so that the compiler begins with the sentence.
enum class KernelMistake { kNone, kBase, kAbstract, kHidden, kConstructor };

template <class KernelT>
constexpr KernelMistake KernelMistakeOf() {
  if constexpr (!kIsKernel<KernelT>) {
    return KernelMistake::kBase;
  } else if constexpr (std::is_abstract_v<KernelT>) {
    return KernelMistake::kAbstract;
  } else if constexpr (!kCanCompute<KernelT>) {
    return KernelMistake::kHidden;
  } else if constexpr (!std::is_default_constructible_v<KernelT> &&
                       !std::is_constructible_v<KernelT, KernelConstruction&>) {
    return KernelMistake::kConstructor;
  } else {
    return KernelMistake::kNone;
  }
}

// Returns no functions for a class with a mistake, so that the compiler reports
// nothing but the mistake.
template <class KernelT>
constexpr KernelFunctions KernelFunctionsOf() {
  if constexpr (KernelMistakeOf<KernelT>() == KernelMistake::kNone) {
    return KernelT::template TableOf<KernelT>::kFunctions;
  } else {
    return {};
  }
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_
