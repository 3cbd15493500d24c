// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_REGISTER_KERNEL_H_
#define TFPLUG_KERNEL_REGISTER_KERNEL_H_

#include <utility>

#include "tfplug/kernel/internal/init_kernel.h"
#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/internal/kernel_registry.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Adds KernelT to the kernels that this library registers when TensorFlow loads
// it. Call it in a static initializer, as TFPLUG_REGISTER_KERNEL does. Always
// returns true.
template <class KernelT>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved.
bool RegisterKernel(KernelDef def) {
  kernel_internal::DefineInitKernel();
  kernel_internal::AddOp(kernel_internal::RegisteredOps<KernelT>(), def.op());
  kernel_internal::RegisteredKernels().Add(
      std::move(def), kernel_internal::KernelFunctionsOf<KernelT>(),
      kernel_internal::kFitsRegions<KernelT>);
  return true;
}

}  // namespace tfplug

// TFPLUG_REGISTER_KERNEL(Relu, tfplug::KernelDef("Relu")
//                                  .TypeConstraint<float>("T"));
//
// Use it at namespace scope, in any number of files of the library. It defines
// TF_InitKernel.
#define TFPLUG_REGISTER_KERNEL(kernel, ...) \
  TFPLUG_INTERNAL_REGISTER_KERNEL(__COUNTER__, kernel, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_KERNEL(id, kernel, ...) \
  TFPLUG_INTERNAL_REGISTER_KERNEL_(id, kernel, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_KERNEL_(id, kernel, ...) \
  TFPLUG_INTERNAL_CHECK_KERNEL(kernel)                    \
  [[maybe_unused]] static const bool tfplug_kernel_##id = \
      ::tfplug::RegisterKernel<kernel>(__VA_ARGS__)
#define TFPLUG_INTERNAL_CHECK_KERNEL(kernel)                               \
  TFPLUG_INTERNAL_REFUSE_KERNEL(                                           \
      kernel, kBase,                                                       \
      "tfplug: a kernel must be publicly derived from tfplug::Kernel "     \
      "or from tfplug::AsyncKernel")                                       \
  TFPLUG_INTERNAL_REFUSE_KERNEL(                                           \
      kernel, kAbstract,                                                   \
      "tfplug: this kernel does not override Compute (ComputeAsync); "     \
      "copy its declaration from tfplug/kernel/kernel.h (async_kernel.h)") \
  TFPLUG_INTERNAL_REFUSE_KERNEL(                                           \
      kernel, kHidden,                                                     \
      "tfplug: this kernel's Compute (ComputeAsync) must be public; "      \
      "write `public:` above it")                                          \
  TFPLUG_INTERNAL_REFUSE_KERNEL(                                           \
      kernel, kConstructor,                                                \
      "tfplug: this kernel needs a public constructor, without "           \
      "arguments or with (tfplug::KernelConstruction&)")
#define TFPLUG_INTERNAL_REFUSE_KERNEL(kernel, mistake, text)            \
  static_assert(::tfplug::kernel_internal::KernelMistakeOf<kernel>() != \
                    ::tfplug::kernel_internal::KernelMistake::mistake,  \
                text);

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_REGISTER_KERNEL_H_
