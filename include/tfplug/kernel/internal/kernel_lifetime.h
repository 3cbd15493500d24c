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

// A class of kernels, as functions. `init` calls the hook Init and sets `cache`.
struct KernelClass {
  void* (*construct)(KernelConstruction&);
  absl::Status (*init)(void* kernel, KernelConstruction&, RunCache*& cache);
  void (*delete_func)(void* kernel);
  OpsFunction ops;
};

[[gnu::cold, gnu::noinline]] inline void FailConstruction(
    const KernelConstruction& construction, const absl::Status& result,
    OpsFunction ops) noexcept {
  OwnedStatus status;
  TFPLUG_INTERNAL_TRY {
    const std::string op = construction.GetOp().value_or("");
    const std::string node =
        DescribeNode(op.empty() ? ops() : op, construction.name());
    SetStatus(status.get(), internal::Annotate(result, node.c_str()));
  }
  TFPLUG_INTERNAL_CATCH_ALL {
    internal::tensorflow.TF_SetStatus(status.get(), capi::TF_RESOURCE_EXHAUSTED,
                                      "out of host memory");
  }
  internal::tensorflow.TF_OpKernelConstruction_Failure(construction.get(),
                                                       status.get());
}

// Implements create_func.
[[gnu::noinline]] inline void* CreateKernel(
    const KernelClass& kernel_class,
    capi::TF_OpKernelConstruction* c_construction) {
  KernelConstruction construction(c_construction);
  void* kernel = nullptr;
  absl::Status result;
  TFPLUG_INTERNAL_TRY {
    kernel = kernel_class.construct(construction);
    RunCache* cache = nullptr;
    result = kernel_class.init(kernel, construction, cache);
    if (ABSL_PREDICT_TRUE(result.ok())) {
      RememberOp(construction, kernel_class.ops(), *cache);
      return kernel;
    }
  }
  TFPLUG_INTERNAL_CATCH_ALL { result = internal::CurrentException(); }
  kernel_class.delete_func(kernel);
  FailConstruction(construction, result, kernel_class.ops);
  return nullptr;
}

// The functions that construct and destroy a synchronous or asynchronous
// kernel; Base is tfplug::Kernel or tfplug::AsyncKernel. What does not depend on
// the class is in CreateKernel, because libraries have hundreds of classes.
template <class KernelT, class Base>
struct KernelLifetime {
  static void* create_func(capi::TF_OpKernelConstruction* c_construction) {
    return CreateKernel(kClass, c_construction);
  }
  static void delete_func(void* kernel) {
    internal::Destroy("delete_func", static_cast<KernelT*>(kernel));
  }

 private:
  static void* Construct(KernelConstruction& construction) {
    return internal::ConstructObject<KernelT>(construction);
  }
  static absl::Status Init(void* kernel, KernelConstruction& construction,
                           RunCache*& cache) {
    KernelT& self = *static_cast<KernelT*>(kernel);
    cache = &internal::Access::run_cache<Base>(self);
    return self.KernelT::Init(construction);
  }
  static constexpr KernelClass kClass = {&Construct, &Init, &delete_func,
                                         &RegisteredOps<KernelT>};
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
