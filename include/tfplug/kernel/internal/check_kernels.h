// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_CHECK_KERNELS_H_
#define TFPLUG_KERNEL_INTERNAL_CHECK_KERNELS_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/internal/kernel_registry.h"
#include "tfplug/kernel/internal/op_list.h"

#pragma GCC visibility push(hidden)

// Compares kernels with the ops of this TensorFlow before they are registered.
namespace tfplug::kernel_internal {

// Adds `name` to `names`; returns false if it is already present.
inline bool AddName(std::vector<std::string>& names, std::string name) {
  for (const std::string& other : names) {
    if (other == name) return false;
  }
  names.push_back(std::move(name));
  return true;
}

// Returns `def` with each argument of its op in host memory.
[[gnu::cold, gnu::noinline]] inline absl::StatusOr<KernelDef>
WithArgumentsInHostMemory(KernelDef def, const OpList& ops) {
  const std::vector<std::string> arguments = ops.GetArguments(def.op());
  if (arguments.empty()) {
    return absl::UnimplementedError(
        "this TensorFlow does not describe the op " + def.op() +
        ", so its kernel in host memory is left out");
  }
  std::vector<std::string> present = def.host_memory();
  for (const std::string& name : arguments) {
    if (AddName(present, name)) def = std::move(def).HostMemory(name);
  }
  return def;
}

// Logs a warning for each op that has a kernel of the author but does not exist
// in TensorFlow, which accepts a kernel for any name. Usually the name is
// misspelt. The kernels that tfplug makes are for the ops of all releases.
inline void WarnAboutUnknownOps(const OpList& ops) {
  if (!ops.is_known()) return;
  std::vector<std::string> warned;
  for (const KernelRegistration& registration : RegisteredKernels()) {
    const std::string& op = registration.def.op();
    if (registration.is_made || ops.Has(op)) continue;
    if (!registration.def.IsEnabled()) continue;
    if (!AddName(warned, op)) continue;
    internal::LogWarning(
        "TF_InitKernel",
        ("TensorFlow has no op \"" + op +
         "\", so its kernel cannot be used; check the spelling, or use "
         "a typed op such as tfplug::ops::MatMul()")
            .c_str());
  }
}

// Warns of each type of device that kernels are registered for, and that is
// neither this library's nor one of TensorFlow's own.
inline void WarnAboutOtherDevices() {
  const char* const own = internal::registered_platform.device_type;
  if (own == nullptr) return;
  std::vector<std::string> known = {"", own, "CPU", "GPU", "DEFAULT"};
  for (const KernelRegistration& registration : RegisteredKernels()) {
    const KernelDef& def = registration.def;
    if (!def.IsEnabled() || !AddName(known, def.device_type())) continue;
    internal::LogWarning(
        "TF_InitKernel",
        absl::StrCat("the kernel of ", def.op(), " is for a device of type \"",
                     def.device_type(), "\", and this library's is \"", own,
                     "\", which kernels that name no type are for")
            .c_str());
  }
}

// Returns an error if a kernel names an attribute or argument that its op
// lacks.
inline absl::Status CheckNames(const KernelDef& def, const OpList& ops) {
  if (!ops.Has(def.op())) return absl::OkStatus();
  const auto check = [&](const std::vector<std::string>& names,
                         const std::string& name, absl::string_view kind) {
    return std::count(names.begin(), names.end(), name) > 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat(
                     "TensorFlow's op ", def.op(), " has no ", kind, " \"",
                     name, "\", so its kernel is left out; it has [",
                     absl::StrJoin(names, ", "), "]"));
  };
  for (const KernelDef::Constraint& constraint : def.type_constraints()) {
    TFPLUG_RETURN_IF_ERROR(
        check(ops.GetAttributes(def.op()), constraint.attr, "attribute"));
  }
  for (const std::string& name : def.host_memory()) {
    TFPLUG_RETURN_IF_ERROR(
        check(ops.GetArguments(def.op()), name, "input or output"));
  }
  return absl::OkStatus();
}

// Disables a kernel that names an attribute or argument that its op lacks, and
// returns the error: TensorFlow would register it, and the op would fail on
// this device.
inline absl::Status RemoveWrongNames(KernelRegistration& registration,
                                     const OpList& ops) {
  absl::Status status = CheckNames(registration.def, ops);
  if (!status.ok()) {
    registration.def = std::move(registration.def).OnlyIf([] { return false; });
  }
  return status;
}

// Removes the types that the op of this TensorFlow does not allow: a node that
// a graph pass made with one of them would fail. Logs a warning if the author
// named the type; tfplug names all that the backend has.
inline void RemoveTypesThatOpsForbid(KernelRegistration& registration,
                                     const OpList& ops) {
  const std::string& op = registration.def.op();
  registration.def.RemoveTypes([&](const std::string& attr, DataType type) {
    const auto allowed = ops.GetAllowedTypes(op, attr);
    if (!allowed.has_value()) return false;
    for (const DataType other : *allowed) {
      if (other == type) return false;
    }
    if (!registration.is_made) {
      internal::LogWarning(
          "TF_InitKernel",
          ("TensorFlow's op " + op + " does not allow " + DataTypeName(type) +
           " for " + attr +
           ", so its kernel is left out for that type; remove the "
           "type unless other releases allow it")
              .c_str());
    }
    return true;
  });
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_CHECK_KERNELS_H_
