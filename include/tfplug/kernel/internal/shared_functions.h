// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_SHARED_FUNCTIONS_H_
#define TFPLUG_KERNEL_INTERNAL_SHARED_FUNCTIONS_H_

#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/internal/kernel_lifetime.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_construction.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Constructs and destroys kernels that inherit Compute or ComputeAsync from
// Computing. Only the constructor is compiled for each class; Init and the
// destructor are called virtually.
template <class Computing, class Base>
struct SharedLifetime {
  template <class KernelT>
  static void* create_func(capi::TF_OpKernelConstruction* c_construction) {
    static constexpr KernelClass kClass = {
        &Construct<KernelT>, &Init, &delete_func, &RegisteredOps<Computing>};
    return CreateKernel(kClass, c_construction);
  }
  static void delete_func(void* kernel) {
    internal::GuardOrLog("delete_func", [&] {
      delete static_cast<Computing*>(kernel);
      return absl::OkStatus();
    });
  }

 private:
  template <class KernelT>
  static void* Construct(KernelConstruction& construction) {
    if constexpr (std::is_constructible_v<KernelT, KernelConstruction&>) {
      return static_cast<Computing*>(new KernelT(construction));
    } else {
      return static_cast<Computing*>(new KernelT());
    }
  }
  static absl::Status Init(void* kernel, KernelConstruction& construction,
                           RunCache*& cache) {
    auto* const self = static_cast<Computing*>(kernel);
    cache = &internal::Access::run_cache<Base>(*self);
    return self->Init(construction);
  }
};

template <class Function>
struct ClassOf;
template <class C, class Argument>
struct ClassOf<absl::Status (C::*)(Argument&)> {
  using type = C;
};

// Returns the functions of KernelT. All classes that inherit Compute or
// ComputeAsync from one class share them.
template <class KernelT>
constexpr KernelFunctions SharedFunctionsOf() {
  if constexpr (std::is_base_of_v<AsyncKernel, KernelT>) {
    using Computing = typename ClassOf<decltype(&KernelT::ComputeAsync)>::type;
    if constexpr (!std::is_same_v<Computing, KernelT>) {
      using Lifetime = SharedLifetime<Computing, AsyncKernel>;
      using Table = AsyncKernel::TableOf<Computing>;
      return {&Lifetime::template create_func<KernelT>, &Table::compute_func,
              &Lifetime::delete_func, &Table::compute_async_func};
    }
  } else {
    using Computing = typename ClassOf<decltype(&KernelT::Compute)>::type;
    if constexpr (!std::is_same_v<Computing, KernelT>) {
      using Lifetime = SharedLifetime<Computing, Kernel>;
      using Table = Kernel::TableOf<Computing>;
      return {&Lifetime::template create_func<KernelT>, &Table::compute_func,
              &Lifetime::delete_func, nullptr};
    }
  }
  return KernelFunctionsOf<KernelT>();
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_SHARED_FUNCTIONS_H_
