// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_
#define TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/check_kernels.h"
#include "tfplug/kernel/internal/kernel_registry.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/kernel/internal/op_list.h"
#include "tfplug/kernel/internal/update_ops.h"

#pragma GCC visibility push(hidden)

// TF_InitKernel: registers the library's kernels with TensorFlow. Every file
// that registers a kernel compiles this header, so it has few templates.
namespace tfplug::kernel_internal {

// One combination of the types that a kernel's constraints allow, with one type
// for each constrained attribute. `index` selects the combination.
struct TypeCombination {
  const KernelRegistration& registration;
  const std::string& device_type;
  size_t index;

  static size_t Count(const KernelDef& def) {
    size_t count = 1;
    for (const auto& constraint : def.type_constraints()) {
      count *= constraint.types.size();
    }
    return count;
  }

  // Calls visit(attribute, type) for each constraint until it returns false.
  // The type of the last attribute varies fastest.
  template <class Visit>
  void ForEachType(Visit visit) const {
    size_t count = Count(registration.def);
    for (const auto& constraint : registration.def.type_constraints()) {
      count /= constraint.types.size();
      const size_t i = index / count % constraint.types.size();
      if (!visit(constraint.attr, constraint.types[i])) return;
    }
  }

  // "MatMul on MY_DEVICE with T=float"
  std::string ToString() const {
    std::string text = registration.def.op() + " on " + device_type;
    const char* separator = " with ";
    ForEachType([&](const std::string& attr, DataType type) {
      text += separator + attr + "=" + DataTypeName(type);
      separator = ", ";
      return true;
    });
    if (!registration.def.label().empty()) {
      text += " labelled " + registration.def.label();
    }
    return text;
  }
};

// Owns a TF_KernelBuilder.
class KernelBuilder {
 public:
  KernelBuilder() = default;
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;
  ~KernelBuilder() {
    if (builder_ != nullptr)
      internal::tensorflow.TF_DeleteKernelBuilder(builder_);
  }

  // Creates the kernel builder. In a release without asynchronous kernels, an
  // asynchronous kernel is registered as a synchronous kernel that waits.
  absl::Status Create(const KernelRegistration& registration,
                      const std::string& device_type) {
    const KernelFunctions& functions = registration.functions;
    if (device_type.empty()) {
      return absl::FailedPreconditionError(
          "the kernel has no device type, because this library registers no "
          "device; link the file with TFPLUG_REGISTER_DEVICE into it, or name "
          "the type behind the op, as in "
          "tfplug::ops::Relu().T<float>().Device(\"MY_DEVICE\")");
    }
    const char* const op = registration.def.op().c_str();
    const bool is_async =
        functions.compute_async_func != nullptr &&
        internal::tensorflow.TF_NewAsyncKernelBuilder != nullptr;
    builder_ = is_async
                   ? internal::tensorflow.TF_NewAsyncKernelBuilder(
                         op, device_type.c_str(), functions.create_func,
                         functions.compute_async_func, functions.delete_func)
                   : internal::tensorflow.TF_NewKernelBuilder(
                         op, device_type.c_str(), functions.create_func,
                         functions.compute_func, functions.delete_func);
    if (builder_ != nullptr) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        "TensorFlow returned no TF_KernelBuilder");
  }

  capi::TF_KernelBuilder* get() const { return builder_; }
  capi::TF_KernelBuilder* release() { return std::exchange(builder_, nullptr); }

 private:
  capi::TF_KernelBuilder* builder_ = nullptr;
};

// Registers all type combinations of a kernel at once. Only a KernelDef can
// have the types that TF_KernelBuilder_TypeConstraint does not support. Since
// 2.10.
inline absl::Status RegisterWithKernelDef(
    const KernelRegistration& registration, const std::string& device_type) {
  KernelBuilder builder;
  if (auto s = builder.Create(registration, device_type); !s.ok()) return s;
  const std::string kernel_def = registration.def.Serialize(device_type);
  if (kernel_def.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        "a name in the KernelDef contains a NUL byte");
  }
  OwnedStatus status;
  // Ownership of the builder passes to TensorFlow.
  internal::tensorflow.TF_RegisterKernelBuilderWithKernelDef(
      kernel_def.c_str(), registration.def.op().c_str(), builder.release(),
      status.get());
  return status.ToStatus();
}

// Registers one type combination with the functions of the builder.
inline absl::Status RegisterCombination(const TypeCombination& kernel) {
  const KernelDef& def = kernel.registration.def;
  KernelBuilder builder;
  if (auto s = builder.Create(kernel.registration, kernel.device_type);
      !s.ok()) {
    return s;
  }
  OwnedStatus status;
  kernel.ForEachType([&](const std::string& attr, DataType type) {
    internal::tensorflow.TF_KernelBuilder_TypeConstraint(
        builder.get(), attr.c_str(), static_cast<capi::TF_DataType>(type),
        status.get());
    return status.ok();
  });
  if (!status.ok()) return status.ToStatus();
  for (const std::string& arg : def.host_memory()) {
    internal::tensorflow.TF_KernelBuilder_HostMemory(builder.get(),
                                                     arg.c_str());
  }
  if (def.priority() != 0) {
    internal::tensorflow.TF_KernelBuilder_Priority(builder.get(),
                                                   def.priority());
  }
  if (!def.label().empty()) {
    if (auto s = Require(&CApi::TF_KernelBuilder_Label); !s.ok()) return s;
    internal::tensorflow.TF_KernelBuilder_Label(builder.get(),
                                                def.label().c_str());
  }
  // Ownership of the builder passes to TensorFlow.
  internal::tensorflow.TF_RegisterKernelBuilder(
      def.op().c_str(), builder.release(), status.get());
  return status.ToStatus();
}

// Registers the type combinations that are not in `registered` yet. Two kernels
// for the same op and types would make TensorFlow fail at the first use of the
// op, far from the cause.
inline void RegisterKernelFor(const KernelRegistration& registration,
                              const std::string& device_type,
                              std::vector<std::string>& registered) {
  constexpr char kSlot[] = "TF_InitKernel";
  const size_t count = TypeCombination::Count(registration.def);
  const std::string suffix = "/" + std::to_string(registration.def.priority());
  std::string is_new(count, true);
  bool all_are_new = true;
  for (size_t i = 0; i < count; ++i) {
    const std::string name =
        TypeCombination{registration, device_type, i}.ToString();
    if (AddName(registered, name + suffix)) continue;
    is_new[i] = false;
    all_are_new = false;
    internal::LogFailure(kSlot,
                         absl::AlreadyExistsError(
                             "this library registers two kernels for " + name +
                             "; the second is skipped, so remove one"));
  }
  const auto log_for = [&](const std::string& name, const absl::Status& s) {
    if (!s.ok())
      internal::LogFailure(kSlot, internal::Annotate(s, name.c_str()));
  };
  if (all_are_new &&
      internal::tensorflow.TF_RegisterKernelBuilderWithKernelDef != nullptr) {
    log_for(registration.def.op(),
            RegisterWithKernelDef(registration, device_type));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const TypeCombination kernel{registration, device_type, i};
    if (is_new[i]) log_for(kernel.ToString(), RegisterCombination(kernel));
  }
}

// The function that registers this library's ops; null if it has none. It is
// called through a pointer, so that a file that registers only kernels does not
// compile init_op.h.
inline void (*init_ops)() = nullptr;

// Wraps the Python functions that update variables (see python_updates.h),
// except those for which the device has a kernel. Where TensorFlow lacks the
// functions for variables, kernels cannot update any variable, so all of them
// are wrapped.
inline absl::Status WrapUpdatesWithoutKernel() {
  if (internal::registered_platform.wrap_python_updates == nullptr) {
    return absl::OkStatus();
  }
  const std::string device_type = internal::registered_platform.device_type;
  std::vector<internal::OpAndType> kept;
  for (const KernelRegistration& registration : RegisteredKernels()) {
    const KernelDef& def = registration.def;
    if (!Has(&CApi::TF_GetInputTensorFromVariable)) break;
    const bool is_update = absl::StartsWith(def.op(), "Assign") ||
                           absl::StartsWith(def.op(), "Resource");
    const bool is_ours =
        def.device_type().empty() || def.device_type() == device_type;
    if (!is_ours || !def.IsEnabled()) continue;
    // The state of a random generator.
    if (absl::StartsWith(def.op(), "Rng")) {
      kept.emplace_back(def.op(), DataType::kInt64);
    }
    if (!is_update) continue;
    for (const KernelDef::Constraint& constraint : def.type_constraints()) {
      if (constraint.attr != "dtype" && constraint.attr != "T") continue;
      for (DataType type : constraint.types) kept.emplace_back(def.op(), type);
    }
  }
  std::vector<internal::UpdateByValues> by_values;
  for (const kernel::UpdateOp& op : kernel::UpdateOps()) {
    by_values.push_back({op.op, op.values_op,
                         op.option != nullptr ? op.option : "",
                         KernelSet(device_type).GetTypes(op.values_op, "T")});
  }
  return internal::registered_platform.wrap_python_updates(device_type, kept,
                                                           by_values);
}

// TF_InitKernel has no status: a kernel that cannot be registered is skipped
// and logged, and the others are registered.
inline void RegisterKernels() {
  const OpList ops;
  std::vector<std::string> registered;
  for (KernelRegistration& registration : RegisteredKernels()) {
    internal::GuardOrLog("TF_InitKernel", [&]() -> absl::Status {
      if (!registration.def.IsEnabled()) return absl::OkStatus();
      TFPLUG_RETURN_IF_ERROR(RemoveWrongNames(registration, ops));
      RemoveTypesThatOpsForbid(registration, ops);
      if (TypeCombination::Count(registration.def) == 0) {
        return absl::OkStatus();
      }
      const char* platform_type = internal::registered_platform.device_type;
      std::string device_type = registration.def.device_type();
      if (device_type.empty() && platform_type != nullptr) {
        device_type = platform_type;
      }
      const KernelDef& kernel = registration.def;
      // Above the priorities of the kernels that tfplug makes.
      const bool is_raised =
          RegisteredKernels().has_made() && !registration.is_made;
      if (!kernel.all_in_host_memory() && !is_raised) {
        RegisterKernelFor(registration, device_type, registered);
        return absl::OkStatus();
      }
      absl::StatusOr<KernelDef> def = kernel;
      if (kernel.all_in_host_memory()) {
        def = WithArgumentsInHostMemory(kernel, ops);
        if (!def.ok()) return def.status();
      }
      if (is_raised) def = (*std::move(def)).Priority(kernel.priority() + 2);
      RegisterKernelFor({*std::move(def), registration.functions}, device_type,
                        registered);
      return absl::OkStatus();
    });
  }
  WarnAboutUnknownOps(ops);
  WarnAboutOtherDevices();
}

inline void InitKernels() {
  if (!internal::LoadTensorFlow()) {
    return internal::LogError(
        "TF_InitKernel",
        "found no TensorFlow in this process; load the plug-in "
        "through TensorFlow");
  }
  if (!RegisteredKernels().empty()) RegisterKernels();
  internal::GuardOrLog("TF_InitKernel", &WrapUpdatesWithoutKernel);
}

}  // namespace tfplug::kernel_internal

// RegisterKernel, RegisterOp and RegisterBackend refer to this inline function:
// only libraries that use them export it. The files in tfplug/separate/ leave
// it to the plug-in's own, because the linker hides what an archive defines.
extern "C" {
#ifdef TFPLUG_SEPARATE_PART
__attribute__((visibility("default"))) void TF_InitKernel();
#else
__attribute__((visibility("default"))) inline void TF_InitKernel() {
  ::tfplug::internal::GuardOrLog("TF_InitKernel", [] {
    if (::tfplug::kernel_internal::init_ops != nullptr) {
      ::tfplug::kernel_internal::init_ops();
    }
    ::tfplug::kernel_internal::InitKernels();
    return ::absl::OkStatus();
  });
}
#endif
}

namespace tfplug::kernel_internal {

// Refers to TF_InitKernel, so that the compiler emits it.
inline void DefineInitKernel() {
  static void (*const volatile entry_point)() = &TF_InitKernel;
  static_cast<void>(entry_point);
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_
