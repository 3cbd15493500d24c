// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_KERNEL_TABLE_H_
#define TFPLUG_INTERNAL_KERNEL_TABLE_H_

#include <type_traits>
#include <utility>

#include "tfplug/internal/construct.h"
#include "tfplug/internal/guard.h"
#include "tfplug/kernel.h"

namespace tfplug::internal {

// The functions that TF_NewKernelBuilder takes.
struct KernelFunctions {
  void* (*create_func)(abi::TF_OpKernelConstruction*);
  void (*compute_func)(void*, abi::TF_OpKernelContext*);
  void (*delete_func)(void*);
};

template <class KernelT>
struct KernelTable {
  static_assert(std::is_base_of_v<Kernel, KernelT>,
                "tfplug: a kernel must be derived from tfplug::Kernel");

  static void* create_func(abi::TF_OpKernelConstruction* c_construction) {
    Owned<KernelT> kernel;
    OwnedStatus status;
    Guard(status.get(), "create_func", [&]() -> absl::Status {
      KernelConstruction construction(c_construction);
      Owned<KernelT> made = Construct<KernelT>(construction);
      if (auto s = made->KernelT::Init(construction); !s.ok()) return s;
      kernel = std::move(made);
      return absl::OkStatus();
    });
    if (kernel == nullptr) {
      core.TF_OpKernelConstruction_Failure(c_construction, status.get());
    }
    return kernel.release();
  }

  static void compute_func(void* kernel, abi::TF_OpKernelContext* c_context) {
    KernelContext context(c_context);
    absl::Status result;
    TFPLUG_INTERNAL_TRY {
      if (ABSL_PREDICT_TRUE(kernel != nullptr)) {
        result = static_cast<KernelT*>(kernel)->KernelT::Compute(context);
      } else {
        result = absl::FailedPreconditionError("this kernel was never made");
      }
    }
    TFPLUG_INTERNAL_CATCH_ALL { result = CurrentException(); }
    if (ABSL_PREDICT_FALSE(!result.ok())) FailRun(context, result);
  }

  static void delete_func(void* kernel) {
    Destroy("delete_func", static_cast<KernelT*>(kernel));
  }

  static constexpr KernelFunctions kFunctions = {&create_func, &compute_func,
                                                 &delete_func};

 private:
  [[gnu::cold, gnu::noinline]] static void FailRun(
      KernelContext& context, const absl::Status& result) noexcept {
    TFPLUG_INTERNAL_TRY { SetStatus(context.status(), result); }
    TFPLUG_INTERNAL_CATCH_ALL {
      core.TF_SetStatus(context.status(), abi::TF_RESOURCE_EXHAUSTED,
                        "out of host memory");
    }
    core.TF_OpKernelContext_Failure(context.get(), context.status());
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_KERNEL_TABLE_H_
