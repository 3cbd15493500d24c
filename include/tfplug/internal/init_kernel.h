// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_INIT_KERNEL_H_
#define TFPLUG_INTERNAL_INIT_KERNEL_H_

#include <memory>
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

// One kernel with at most one type for each attribute.
struct ConcreteKernel {
  const KernelRegistration& registration;
  std::string device_type;
  std::vector<std::pair<const char*, DataType>> types;

  // "MatMul on MY_DEVICE with T=float"
  std::string ToString() const {
    std::string text = registration.def.op() + " on " + device_type;
    for (const auto& [attr, type] : types) {
      text += std::string(text.find(" with ") == text.npos ? " with " : ", ") +
              attr + "=" + DataTypeName(type);
    }
    if (!registration.def.label().empty()) {
      text += " labelled " + registration.def.label();
    }
    return text;
  }
};

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

struct KernelBuilderDeleter {
  void operator()(abi::TF_KernelBuilder* builder) const {
    core.TF_DeleteKernelBuilder(builder);
  }
};
using KernelBuilder =
    std::unique_ptr<abi::TF_KernelBuilder, KernelBuilderDeleter>;

// An asynchronous kernel where core has none is one that waits.
inline absl::StatusOr<KernelBuilder> NewKernelBuilder(
    const KernelRegistration& registration, const std::string& device_type) {
  const auto& [def, functions] = registration;
  if (device_type.empty()) {
    return absl::FailedPreconditionError(
        "no device type: this library registers no device, so write "
        "KernelDef(...).Device(\"TYPE\")");
  }
  const bool is_async = functions.compute_async_func != nullptr &&
                        core.TF_NewAsyncKernelBuilder != nullptr;
  KernelBuilder builder(
      is_async
          ? core.TF_NewAsyncKernelBuilder(
                def.op().c_str(), device_type.c_str(), functions.create_func,
                functions.compute_async_func, functions.delete_func)
          : core.TF_NewKernelBuilder(
                def.op().c_str(), device_type.c_str(), functions.create_func,
                functions.compute_func, functions.delete_func));
  if (builder == nullptr) {
    return absl::ResourceExhaustedError("core made no kernel builder");
  }
  return builder;
}

// All types of a kernel at once, by a KernelDef: the only way to types that
// TF_KernelBuilder_TypeConstraint does not know, and one registration instead
// of many. Since 2.10.
inline absl::Status RegisterWithKernelDef(
    const KernelRegistration& registration, const std::string& device_type) {
  auto builder = NewKernelBuilder(registration, device_type);
  if (!builder.ok()) return builder.status();
  const std::string kernel_def = registration.def.Serialize(device_type);
  if (kernel_def.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("a name with a NUL byte");
  }
  OwnedStatus status;
  // Core owns the builder from here on.
  core.TF_RegisterKernelBuilderWithKernelDef(kernel_def.c_str(),
                                             registration.def.op().c_str(),
                                             builder->release(), status.get());
  return status.ToStatus();
}

// One combination of types, by the builder's own functions.
inline absl::Status RegisterConcrete(const ConcreteKernel& kernel) {
  const KernelDef& def = kernel.registration.def;
  auto builder = NewKernelBuilder(kernel.registration, kernel.device_type);
  if (!builder.ok()) return builder.status();
  OwnedStatus status;
  for (const auto& [attr, type] : kernel.types) {
    core.TF_KernelBuilder_TypeConstraint(builder->get(), attr,
                                         static_cast<abi::TF_DataType>(type),
                                         status.get());
    if (!status.ok()) return status.ToStatus();
  }
  for (const std::string& arg : def.host_memory()) {
    core.TF_KernelBuilder_HostMemory(builder->get(), arg.c_str());
  }
  if (def.priority() != 0) {
    core.TF_KernelBuilder_Priority(builder->get(), def.priority());
  }
  if (!def.label().empty()) {
    if (auto s = Require(&CApi::TF_KernelBuilder_Label); !s.ok()) return s;
    core.TF_KernelBuilder_Label(builder->get(), def.label().c_str());
  }
  // Core owns the builder from here on.
  core.TF_RegisterKernelBuilder(def.op().c_str(), builder->release(),
                                status.get());
  return status.ToStatus();
}

// Registers what is new of the kernel: two for the same op and types would make
// core fail at the first use of the op, far from the cause.
inline void RegisterKernelFor(const KernelRegistration& registration,
                              const std::string& device_type,
                              std::set<std::string>& seen) {
  constexpr char kSlot[] = "TF_InitKernel";
  ConcreteKernel kernel{registration, device_type, {}};
  std::vector<ConcreteKernel> fresh;
  bool all_are_new = true;
  ForEachConcreteKernel(kernel, 0, [&](const ConcreteKernel& concrete) {
    const std::string name = concrete.ToString();
    if (seen.insert(name + "/" + std::to_string(registration.def.priority()))
            .second) {
      fresh.push_back(concrete);
      return;
    }
    all_are_new = false;
    LogFailure(kSlot, absl::AlreadyExistsError(
                          "this library registers two kernels for " + name +
                          "; the second one is left out"));
  });
  const auto log_for = [&](const std::string& name, const absl::Status& s) {
    if (!s.ok()) LogFailure(kSlot, Annotate(s, name.c_str()));
  };
  if (all_are_new && core.TF_RegisterKernelBuilderWithKernelDef != nullptr) {
    log_for(registration.def.op(),
            RegisterWithKernelDef(registration, device_type));
    return;
  }
  for (const ConcreteKernel& concrete : fresh) {
    log_for(concrete.ToString(), RegisterConcrete(concrete));
  }
}

// Gives this library's ops to core; null where it registers none. So a file
// that registers kernels does not compile what registers ops.
__attribute__((visibility("hidden"))) inline void (*init_ops)() = nullptr;

// TF_InitKernel has no status: a kernel that cannot be registered is left out,
// with a line in the log; the others stay.
inline void InitKernels() {
  if (!LoadCore()) return LogError("TF_InitKernel", "no TensorFlow here");
  std::set<std::string> seen;
  for (const KernelRegistration& registration : KernelRegistrations()) {
    GuardOrLog("TF_InitKernel", [&] {
      if (!registration.def.IsWanted()) return absl::OkStatus();
      const char* platform_type = registered_platform.device_type;
      std::string device_type = registration.def.device_type();
      if (device_type.empty() && platform_type != nullptr) {
        device_type = platform_type;
      }
      RegisterKernelFor(registration, device_type, seen);
      return absl::OkStatus();
    });
  }
}

}  // namespace tfplug::internal

// Only in libraries that register a kernel: an inline function is emitted where
// it is used, by RegisterKernel.
extern "C" {
__attribute__((visibility("default"))) inline void TF_InitKernel() {
  ::tfplug::internal::GuardOrLog("TF_InitKernel", [] {
    if (::tfplug::internal::init_ops != nullptr) {
      ::tfplug::internal::init_ops();
    }
    ::tfplug::internal::InitKernels();
    return ::absl::OkStatus();
  });
}
}

#endif  // TFPLUG_INTERNAL_INIT_KERNEL_H_
