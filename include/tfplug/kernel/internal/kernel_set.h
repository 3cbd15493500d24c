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
#include "tfplug/kernel/internal/init_kernel.h"

namespace tfplug::internal {

using TypeAttr = std::pair<absl::string_view, DataType>;

// Calls visit(KernelDef) for each kernel of this library that is for
// `device_type` and wanted in this core, until it returns true; whether it did.
template <class Visit>
bool AnyKernel(absl::string_view device_type, Visit visit) {
  for (const KernelRegistration& registration : KernelRegistrations()) {
    const KernelDef& def = registration.def;
    absl::string_view type = def.device_type();
    if (type.empty() && registered_platform.device_type != nullptr) {
      type = absl::string_view(registered_platform.device_type);
    }
    if (type == device_type && def.IsWanted() && visit(def)) return true;
  }
  return false;
}

// The kernels of this library for one device type.
class KernelSet {
 public:
  explicit KernelSet(absl::string_view device_type)
      : device_type_(device_type) {}

  // Whether the library has any: if not, they may be in another one.
  bool IsKnown() const {
    return AnyKernel(device_type_, [](const KernelDef&) { return true; });
  }

  // Whether there is a kernel for `op` with these type attributes.
  bool Has(absl::string_view op, absl::Span<const TypeAttr> types) const {
    return AnyKernel(device_type_, [&](const KernelDef& def) {
      if (def.op() != op) return false;
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
    });
  }

  // The types that the library's kernels for `op` have for `attr`.
  std::vector<DataType> Types(absl::string_view op,
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
  const std::string device_type_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_SET_H_
