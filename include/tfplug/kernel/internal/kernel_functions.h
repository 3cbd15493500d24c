// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_

#include <type_traits>

#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

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

template <class KernelT>
constexpr KernelFunctions KernelFunctionsOf() {
  static_assert(kIsKernel<KernelT>,
                "tfplug: a kernel must be derived from tfplug::Kernel or from "
                "tfplug::AsyncKernel");
  if constexpr (kIsKernel<KernelT>) {
    return KernelT::template TableOf<KernelT>::kFunctions;
  } else {
    return {};
  }
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_FUNCTIONS_H_
