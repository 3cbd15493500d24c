// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_SET_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_SET_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/kernel/internal/kernel_registry.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

using TypeAttr = std::pair<absl::string_view, DataType>;

// Calls visit(KernelDef) for each enabled kernel of this library for
// `device_type`, until a call returns true. Returns whether one did. Leaves out
// kernels that tfplug made if `only_authors` is true.
template <class Visit>
bool AnyKernel(absl::string_view device_type, Visit visit,
               bool only_authors = false) {
  for (const KernelRegistration& registration : RegisteredKernels()) {
    if (only_authors && registration.is_made) continue;
    const KernelDef& def = registration.def;
    absl::string_view type = def.device_type();
    if (type.empty() && internal::registered_platform.device_type != nullptr) {
      type = absl::string_view(internal::registered_platform.device_type);
    }
    if (type == device_type && def.IsEnabled() && visit(def)) return true;
  }
  return false;
}

// The kernels of this library for one device type.
class KernelSet {
 public:
  explicit KernelSet(absl::string_view device_type)
      : device_type_(device_type) {}

  // Returns false if this library has no kernels for the device type; another
  // library may have some.
  bool HasAny() const {
    return AnyKernel(device_type_, [](const KernelDef&) { return true; });
  }

  // Returns whether there is a kernel for `op` with these type attributes.
  bool Has(absl::string_view op, absl::Span<const TypeAttr> types) const {
    return AnyKernel(device_type_, [&](const KernelDef& def) {
      return IsFor(def, op, types);
    });
  }
  // Does the same as Has for kernels that the library's author registered.
  bool HasAuthors(absl::string_view op,
                  absl::Span<const TypeAttr> types) const {
    return AnyKernel(
        device_type_,
        [&](const KernelDef& def) { return IsFor(def, op, types); },
        /*only_authors=*/true);
  }

  // Returns the types that the kernels for `op` support for `attr`.
  std::vector<DataType> GetTypes(absl::string_view op,
                                 absl::string_view attr) const {
    std::vector<DataType> types;
    AnyKernel(device_type_, [&](const KernelDef& def) {
      if (def.op() != op) return false;
      for (const KernelDef::Constraint& constraint : def.type_constraints()) {
        if (constraint.attr != attr) continue;
        types.insert(types.end(), constraint.types.begin(),
                     constraint.types.end());
      }
      return false;
    });
    return types;
  }

 private:
  static bool IsFor(const KernelDef& def, absl::string_view op,
                    absl::Span<const TypeAttr> types) {
    if (def.op() != op || !def.label().empty()) return false;
    for (const KernelDef::Constraint& constraint : def.type_constraints()) {
      for (const TypeAttr& type : types) {
        if (type.first != constraint.attr) continue;
        if (std::find(constraint.types.begin(), constraint.types.end(),
                      type.second) == constraint.types.end()) {
          return false;
        }
      }
    }
    return true;
  }

  const std::string device_type_;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_SET_H_
