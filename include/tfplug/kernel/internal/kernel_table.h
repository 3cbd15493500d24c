// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_

#include <type_traits>
#include <utility>

#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/internal/kernel_failure.h"
#include "tfplug/kernel/kernel.h"

namespace tfplug::internal {

// The functions that TF_NewKernelBuilder and TF_NewAsyncKernelBuilder take;
// compute_async_func is null unless the kernel is asynchronous.
struct KernelFunctions {
  void* (*create_func)(capi::TF_OpKernelConstruction*);
  void (*compute_func)(void*, capi::TF_OpKernelContext*);
  void (*delete_func)(void*);
  void (*compute_async_func)(void*, capi::TF_OpKernelContext*,
                             capi::TF_AsyncOpKernelDoneCallback*);
};

// What both kinds of kernels have in common.
template <class KernelT>
struct KernelLife {
  static void* create_func(capi::TF_OpKernelConstruction* c_construction) {
    KernelConstruction construction(c_construction);
    Owned<KernelT> kernel;
    absl::Status result;
    TFPLUG_INTERNAL_TRY {
      kernel = Construct<KernelT>(construction);
      result = kernel->KernelT::Init(construction);
      if (ABSL_PREDICT_FALSE(!result.ok())) kernel.reset();
    }
    TFPLUG_INTERNAL_CATCH_ALL {
      result = CurrentException();
      Destroy("create_func", kernel.release());
    }
    if (ABSL_PREDICT_FALSE(!result.ok())) {
      FailConstruction(construction, result);
      return nullptr;
    }
    return kernel.release();
  }

  static void delete_func(void* kernel) {
    Destroy("delete_func", static_cast<KernelT*>(kernel));
  }

 private:
  [[gnu::cold, gnu::noinline]] static void FailConstruction(
      const KernelConstruction& construction,
      const absl::Status& result) noexcept {
    OwnedStatus status;
    TFPLUG_INTERNAL_TRY {
      const std::string op = construction.op();
      const std::string where = WhereInGraph(
          op.empty() ? RegisteredOps<KernelT>() : op, construction.name());
      SetStatus(status.get(), Annotate(result, where.c_str()));
    }
    TFPLUG_INTERNAL_CATCH_ALL {
      tensorflow.TF_SetStatus(status.get(), capi::TF_RESOURCE_EXHAUSTED,
                              "out of host memory");
    }
    tensorflow.TF_OpKernelConstruction_Failure(construction.get(),
                                               status.get());
  }
};

// Core does not run a kernel whose construction failed; should it do so, the
// run fails.
[[gnu::cold, gnu::noinline]] inline void FailNeverMade(
    capi::TF_OpKernelContext* c_context, OpsFunction ops) noexcept {
  KernelContext context(c_context);
  FailRun(context, absl::FailedPreconditionError("this kernel was never made"),
          ops);
}

template <class KernelT>
struct SyncKernelTable : KernelLife<KernelT> {
  static void compute_func(void* kernel, capi::TF_OpKernelContext* c_context) {
    constexpr OpsFunction kOps = &RegisteredOps<KernelT>;
    if (ABSL_PREDICT_FALSE(kernel == nullptr)) {
      return FailNeverMade(c_context, kOps);
    }
    KernelT& self = *static_cast<KernelT*>(kernel);
    KernelContext context(c_context, self.tfplug::Kernel::run_cache_);
    TFPLUG_INTERNAL_TRY {
      const auto compute = [&] { return self.KernelT::Compute(context); };
      Returned<absl::Status> returned(compute);
      if (IsGood(context, returned.result)) return;
      FailRun(context, std::move(returned.result), kOps);
    }
    TFPLUG_INTERNAL_CATCH_ALL { FailRun(context, CurrentException(), kOps); }
  }

  static constexpr KernelFunctions kFunctions = {
      &KernelLife<KernelT>::create_func, &compute_func,
      &KernelLife<KernelT>::delete_func, nullptr};
};

// Which of the two kinds KernelT is: its base class says.
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

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_TABLE_H_
