// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_

#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/internal/kernel_lifetime.h"
#include "tfplug/kernel/internal/profile_run.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// The C functions of KernelT. Its base class tfplug::Kernel, which refers to
// this table, passes itself as Base.
template <class KernelT, class Base>
struct KernelTable : KernelLifetime<KernelT, Base> {
  // The result type of T's hook, if it can be called from outside.
  template <class T>
  using ResultOf =
      decltype(std::declval<T&>().T::Compute(std::declval<KernelContext&>()));

  static void compute_func(void* kernel, capi::TF_OpKernelContext* c_context) {
    constexpr OpsFunction kOps = &RegisteredOps<KernelT>;
    if (ABSL_PREDICT_FALSE(internal::IsNullOrProfiled(kernel))) {
      return ProfileRun<Base>(static_cast<KernelT*>(kernel), c_context, kOps);
    }
    KernelT& self = *static_cast<KernelT*>(kernel);
    KernelContext context(c_context, internal::Access::run_cache<Base>(self));
    TFPLUG_INTERNAL_TRY {
      const auto compute = [&] { return self.KernelT::Compute(context); };
      internal::Returned<absl::Status> returned(compute);
      if (HasSucceeded(context, returned.result)) return;
      FailRun(context, std::move(returned.result), kOps);
    }
    TFPLUG_INTERNAL_CATCH_ALL {
      FailRun(context, internal::CurrentException(), kOps);
    }
  }

  static constexpr KernelFunctions kFunctions = {
      &KernelLifetime<KernelT, Base>::create_func, &compute_func,
      &KernelLifetime<KernelT, Base>::delete_func, nullptr};
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_
