// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_
#define TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/kernel/internal/kernel_table.h"

// Every file that registers a kernel compiles this: few templates.
namespace tfplug::internal {

struct KernelRegistration {
  const KernelDef def;
  const KernelFunctions functions;
  const KernelRegistration* next = nullptr;
};

// All kernels of this library, from all of its files.
class KernelList {
 public:
  class Iterator {
   public:
    explicit Iterator(const KernelRegistration* at) : at_(at) {}
    const KernelRegistration& operator*() const { return *at_; }
    Iterator& operator++() { return at_ = at_->next, *this; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const KernelRegistration* at_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

  void Add(KernelDef def, const KernelFunctions& functions) {
    auto* const added = new KernelRegistration{std::move(def), functions};
    *last_next_ = added;
    last_next_ = &added->next;
  }
  void clear() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
    last_next_ = &first_;
  }

 private:
  const KernelRegistration* first_ = nullptr;
  const KernelRegistration** last_next_ = &first_;
};
__attribute__((visibility("hidden"))) inline KernelList& KernelRegistrations() {
  static auto* const registrations = new KernelList;
  return *registrations;
}

// A kernel with one type for each attribute: the combination `number` of those
// that its constraints allow.
struct ConcreteKernel {
  const KernelRegistration& registration;
  const std::string& device_type;
  size_t number;

  static size_t Count(const KernelDef& def) {
    size_t count = 1;
    for (const auto& constraint : def.type_constraints()) {
      count *= constraint.types.size();
    }
    return count;
  }

  // Calls visit(attribute, type) for each constraint; the last attribute's
  // types change first. Until one returns false.
  template <class Visit>
  void ForEachType(Visit visit) const {
    size_t count = Count(registration.def);
    for (const auto& constraint : registration.def.type_constraints()) {
      count /= constraint.types.size();
      const size_t i = number / count % constraint.types.size();
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

class KernelBuilder {
 public:
  KernelBuilder() = default;
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;
  ~KernelBuilder() {
    if (builder_ != nullptr) tensorflow.TF_DeleteKernelBuilder(builder_);
  }

  // An asynchronous kernel where core has none is one that waits.
  absl::Status Make(const KernelRegistration& registration,
                    const std::string& device_type) {
    const KernelFunctions& functions = registration.functions;
    if (device_type.empty()) {
      return absl::FailedPreconditionError(
          "no device type: this library registers no device, so write "
          "KernelDef(...).Device(\"TYPE\")");
    }
    const char* const op = registration.def.op().c_str();
    const bool is_async = functions.compute_async_func != nullptr &&
                          tensorflow.TF_NewAsyncKernelBuilder != nullptr;
    builder_ = is_async
                   ? tensorflow.TF_NewAsyncKernelBuilder(
                         op, device_type.c_str(), functions.create_func,
                         functions.compute_async_func, functions.delete_func)
                   : tensorflow.TF_NewKernelBuilder(
                         op, device_type.c_str(), functions.create_func,
                         functions.compute_func, functions.delete_func);
    if (builder_ != nullptr) return absl::OkStatus();
    return absl::ResourceExhaustedError("core made no kernel builder");
  }

  capi::TF_KernelBuilder* get() const { return builder_; }
  capi::TF_KernelBuilder* release() { return std::exchange(builder_, nullptr); }

 private:
  capi::TF_KernelBuilder* builder_ = nullptr;
};

// All types of a kernel at once, by a KernelDef: the only way to types that
// TF_KernelBuilder_TypeConstraint does not know, and one registration instead
// of many. Since 2.10.
inline absl::Status RegisterWithKernelDef(
    const KernelRegistration& registration, const std::string& device_type) {
  KernelBuilder builder;
  if (auto s = builder.Make(registration, device_type); !s.ok()) return s;
  const std::string kernel_def = registration.def.Serialize(device_type);
  if (kernel_def.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("a name with a NUL byte");
  }
  OwnedStatus status;
  // Core owns the builder from here on.
  tensorflow.TF_RegisterKernelBuilderWithKernelDef(
      kernel_def.c_str(), registration.def.op().c_str(), builder.release(),
      status.get());
  return status.ToStatus();
}

// One combination of types, by the builder's own functions.
inline absl::Status RegisterConcrete(const ConcreteKernel& kernel) {
  const KernelDef& def = kernel.registration.def;
  KernelBuilder builder;
  if (auto s = builder.Make(kernel.registration, kernel.device_type); !s.ok()) {
    return s;
  }
  OwnedStatus status;
  kernel.ForEachType([&](const std::string& attr, DataType type) {
    tensorflow.TF_KernelBuilder_TypeConstraint(
        builder.get(), attr.c_str(), static_cast<capi::TF_DataType>(type),
        status.get());
    return status.ok();
  });
  if (!status.ok()) return status.ToStatus();
  for (const std::string& arg : def.host_memory()) {
    tensorflow.TF_KernelBuilder_HostMemory(builder.get(), arg.c_str());
  }
  if (def.priority() != 0) {
    tensorflow.TF_KernelBuilder_Priority(builder.get(), def.priority());
  }
  if (!def.label().empty()) {
    if (auto s = Require(&CApi::TF_KernelBuilder_Label); !s.ok()) return s;
    tensorflow.TF_KernelBuilder_Label(builder.get(), def.label().c_str());
  }
  // Core owns the builder from here on.
  tensorflow.TF_RegisterKernelBuilder(def.op().c_str(), builder.release(),
                                      status.get());
  return status.ToStatus();
}

// Puts `name` into `seen` unless it is there.
inline bool IsNew(std::vector<std::string>& seen, std::string name) {
  for (const std::string& other : seen) {
    if (other == name) return false;
  }
  seen.push_back(std::move(name));
  return true;
}

// Registers what is new of the kernel: two for the same op and types would make
// core fail at the first use of the op, far from the cause.
inline void RegisterKernelFor(const KernelRegistration& registration,
                              const std::string& device_type,
                              std::vector<std::string>& seen) {
  constexpr char kSlot[] = "TF_InitKernel";
  const size_t count = ConcreteKernel::Count(registration.def);
  const std::string priority = std::to_string(registration.def.priority());
  std::string is_new(count, true);
  bool all_are_new = true;
  for (size_t i = 0; i < count; ++i) {
    const std::string name =
        ConcreteKernel{registration, device_type, i}.ToString();
    if (IsNew(seen, name + "/" + priority)) continue;
    is_new[i] = false;
    all_are_new = false;
    LogFailure(kSlot, absl::AlreadyExistsError(
                          "this library registers two kernels for " + name +
                          "; the second one is left out"));
  }
  const auto log_for = [&](const std::string& name, const absl::Status& s) {
    if (!s.ok()) LogFailure(kSlot, Annotate(s, name.c_str()));
  };
  if (all_are_new &&
      tensorflow.TF_RegisterKernelBuilderWithKernelDef != nullptr) {
    log_for(registration.def.op(),
            RegisterWithKernelDef(registration, device_type));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const ConcreteKernel concrete{registration, device_type, i};
    if (is_new[i]) log_for(concrete.ToString(), RegisterConcrete(concrete));
  }
}

// Gives this library's ops to core; null where it registers none. So a file
// that registers kernels does not compile what registers ops.
__attribute__((visibility("hidden"))) inline void (*init_ops)() = nullptr;

// TF_InitKernel has no status: a kernel that cannot be registered is left out,
// with a line in the log; the others stay.
inline void InitKernels() {
  if (!LoadTensorFlow()) return LogError("TF_InitKernel", "no TensorFlow here");
  std::vector<std::string> seen;
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

#endif  // TFPLUG_KERNEL_INTERNAL_INIT_KERNEL_H_
