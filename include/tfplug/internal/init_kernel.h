// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_INIT_KERNEL_H_
#define TFPLUG_INTERNAL_INIT_KERNEL_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/internal/kernel_table.h"
#include "tfplug/internal/registered_platform.h"

namespace tfplug::internal {

struct KernelRegistration {
  KernelDef def;
  KernelFunctions functions;
};

// All kernels of this library, from all of its files.
__attribute__((visibility("hidden"))) inline std::vector<KernelRegistration>&
KernelRegistrations() {
  static auto* const registrations = new std::vector<KernelRegistration>;
  return *registrations;
}

// One kernel as core takes it: with at most one type for each attribute.
struct ConcreteKernel {
  const KernelRegistration& registration;
  std::string device_type;
  std::vector<std::pair<const char*, DataType>> types;

  // "MatMul on MY_DEVICE with T=1"
  std::string ToString() const {
    std::string text = registration.def.op() + " on " + device_type;
    for (const auto& [attr, type] : types) {
      text += std::string(text.find(" with ") == text.npos ? " with " : ", ") +
              attr + "=" + std::to_string(static_cast<int>(type));
    }
    return text;
  }
};

inline absl::Status Register(const ConcreteKernel& kernel) {
  const auto& [def, functions] = kernel.registration;
  if (kernel.device_type.empty()) {
    return absl::FailedPreconditionError(
        "no device type: this library registers no device, so write "
        "KernelDef(...).Device(\"TYPE\")");
  }
  OwnedStatus status;
  abi::TF_KernelBuilder* builder = core.TF_NewKernelBuilder(
      def.op().c_str(), kernel.device_type.c_str(), functions.create_func,
      functions.compute_func, functions.delete_func);
  for (const auto& [attr, type] : kernel.types) {
    core.TF_KernelBuilder_TypeConstraint(
        builder, attr, static_cast<abi::TF_DataType>(type), status.get());
    if (!status.ok()) {
      core.TF_DeleteKernelBuilder(builder);
      return status.ToStatus();
    }
  }
  for (const std::string& arg : def.host_memory()) {
    core.TF_KernelBuilder_HostMemory(builder, arg.c_str());
  }
  if (def.priority() != 0) {
    core.TF_KernelBuilder_Priority(builder, def.priority());
  }
  // Core owns the builder from here on.
  core.TF_RegisterKernelBuilder(def.op().c_str(), builder, status.get());
  return status.ToStatus();
}

// Every combination of the types that the constraints from `next` on allow.
template <class Visit>
void ForEachConcreteKernel(ConcreteKernel& kernel, size_t next, Visit visit) {
  const auto& constraints = kernel.registration.def.type_constraints();
  if (next == constraints.size()) return visit(kernel);
  for (DataType type : constraints[next].types) {
    kernel.types.emplace_back(constraints[next].attr.c_str(), type);
    ForEachConcreteKernel(kernel, next + 1, visit);
    kernel.types.pop_back();
  }
}

// TF_InitKernel has no status: a kernel that cannot be registered is left out,
// with a line in the log; the others stay.
inline void InitKernels() {
  if (!LoadCore()) return LogError("TF_InitKernel", "no TensorFlow here");
  std::set<std::string> seen;
  for (const KernelRegistration& registration : KernelRegistrations()) {
    const char* platform_type = registered_platform.device_type;
    std::string device_type = registration.def.device_type();
    if (device_type.empty() && platform_type != nullptr) {
      device_type = platform_type;
    }
    ConcreteKernel kernel{registration, device_type, {}};
    ForEachConcreteKernel(kernel, 0, [&](const ConcreteKernel& concrete) {
      const std::string name = concrete.ToString();
      const int32_t priority = registration.def.priority();
      GuardOrLog("TF_InitKernel", [&]() -> absl::Status {
        if (!seen.insert(name + "/" + std::to_string(priority)).second) {
          return absl::AlreadyExistsError(
              "this library registers two kernels for " + name +
              "; the second one is left out");
        }
        return Register(concrete);
      });
    });
  }
}

}  // namespace tfplug::internal

// Only in libraries that register a kernel: an inline function is emitted where
// it is used, by RegisterKernel.
extern "C" {
__attribute__((visibility("default"))) inline void TF_InitKernel() {
  ::tfplug::internal::GuardOrLog("TF_InitKernel", [] {
    ::tfplug::internal::InitKernels();
    return ::absl::OkStatus();
  });
}
}

#endif  // TFPLUG_INTERNAL_INIT_KERNEL_H_
