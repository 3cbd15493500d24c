// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_REGISTRY_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_REGISTRY_H_

#include <utility>

#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/kernel_def.h"

#pragma GCC visibility push(hidden)

// Every file that registers a kernel compiles this header, so it has few
// templates.
namespace tfplug::kernel_internal {

struct KernelRegistration {
  KernelDef def;
  const KernelFunctions functions;
  // Whether tfplug made the kernel (see AddMade).
  const bool is_made = false;
  // Whether a region may run the kernel (see kFitsRegions).
  const bool fits_regions = false;
  KernelRegistration* next = nullptr;
};

// A linked list of registrations, in the order of registration.
class KernelRegistry {
 public:
  class Iterator {
   public:
    explicit Iterator(KernelRegistration* at) : at_(at) {}
    KernelRegistration& operator*() const { return *at_; }
    Iterator& operator++() { return at_ = at_->next, *this; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    KernelRegistration* at_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  bool empty() const { return first_ == nullptr; }

  void Add(KernelDef def, const KernelFunctions& functions,
           bool fits_regions = false) {
    Append(
        new KernelRegistration{std::move(def), functions, false, fits_regions});
  }
  // Adds a kernel that tfplug made from a backend's primitives: others win.
  void AddMade(KernelDef def, const KernelFunctions& functions,
               bool fits_regions = true) {
    Append(
        new KernelRegistration{std::move(def), functions, true, fits_regions});
    has_made_ = true;
  }
  bool has_made() const { return has_made_; }

  void Clear() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
    last_next_ = &first_;
    has_made_ = false;
  }

 private:
  void Append(KernelRegistration* added) {
    *last_next_ = added;
    last_next_ = &added->next;
  }

  KernelRegistration* first_ = nullptr;
  KernelRegistration** last_next_ = &first_;
  bool has_made_ = false;
};

// Returns all kernels of this library, from all of its files.
inline KernelRegistry& RegisteredKernels() {
  static auto* const kernels = new KernelRegistry;
  return *kernels;
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_REGISTRY_H_
