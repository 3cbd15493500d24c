// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_LIFETIME_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_LIFETIME_H_

#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/intern_string.h"
#include "tfplug/kernel/internal/report_failure.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Stores the op of a kernel's node, which the C API does not pass to a run. A
// class that is registered for one op needs no look at the node; `registered`
// is empty if the class is registered for many.
[[gnu::cold, gnu::noinline]] inline void RememberOp(
    const KernelConstruction& construction, const std::string& registered,
    RunCache& cache) {
  if (!registered.empty() && registered.find(' ') == std::string::npos) {
    cache.set_op(registered.c_str());
  } else {
    cache.set_op(
        internal::InternString(construction.GetOp().value_or(registered)));
  }
}

// The functions that construct and destroy a synchronous or asynchronous
// kernel; Base is tfplug::Kernel or tfplug::AsyncKernel.
template <class KernelT, class Base>
struct KernelLifetime {
  static void* create_func(capi::TF_OpKernelConstruction* c_construction) {
    KernelConstruction construction(c_construction);
    internal::Owned<KernelT> kernel;
    absl::Status result;
    TFPLUG_INTERNAL_TRY {
      kernel = internal::Construct<KernelT>(construction);
      result = kernel->KernelT::Init(construction);
      if (ABSL_PREDICT_FALSE(!result.ok())) {
        kernel.reset();
      } else {
        RememberOp(construction, RegisteredOps<KernelT>(),
                   internal::Access::run_cache<Base>(*kernel));
      }
    }
    TFPLUG_INTERNAL_CATCH_ALL {
      result = internal::CurrentException();
      internal::Destroy("create_func", kernel.release());
    }
    if (ABSL_PREDICT_FALSE(!result.ok())) {
      FailConstruction(construction, result);
      return nullptr;
    }
    return kernel.release();
  }

  static void delete_func(void* kernel) {
    internal::Destroy("delete_func", static_cast<KernelT*>(kernel));
  }

 private:
  [[gnu::cold, gnu::noinline]] static void FailConstruction(
      const KernelConstruction& construction,
      const absl::Status& result) noexcept {
    OwnedStatus status;
    TFPLUG_INTERNAL_TRY {
      const std::string op = construction.GetOp().value_or("");
      const std::string node = DescribeNode(
          op.empty() ? RegisteredOps<KernelT>() : op, construction.name());
      SetStatus(status.get(), internal::Annotate(result, node.c_str()));
    }
    TFPLUG_INTERNAL_CATCH_ALL {
      internal::tensorflow.TF_SetStatus(
          status.get(), capi::TF_RESOURCE_EXHAUSTED, "out of host memory");
    }
    internal::tensorflow.TF_OpKernelConstruction_Failure(construction.get(),
                                                         status.get());
  }
};

// Fails the run of a kernel whose construction failed. No known release of
// TensorFlow runs such a kernel.
[[gnu::cold, gnu::noinline]] inline void FailUnconstructed(
    capi::TF_OpKernelContext* c_context, OpsFunction ops) noexcept {
  KernelContext context(c_context);
  FailRun(context,
          absl::FailedPreconditionError(
              "TensorFlow ran a kernel whose construction had failed; see the "
              "error of its construction"),
          ops);
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_LIFETIME_H_
