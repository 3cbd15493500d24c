// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_KERNEL_REGISTRY_H_
#define TFPLUG_TESTING_KERNEL_REGISTRY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/internal/attribute_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

// A kernel as a plug-in registers it.
struct TF_KernelBuilder : testing::Counted<TF_KernelBuilder> {
  std::string op;
  std::string device_type;
  void* (*create_func)(TF_OpKernelConstruction*) = nullptr;
  // compute_func is null for an asynchronous kernel, compute_async_func for a
  // synchronous one.
  void (*compute_func)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async_func)(void*, TF_OpKernelContext*,
                             TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*delete_func)(void*) = nullptr;
  // The allowed types by attribute.
  std::map<std::string, std::vector<TF_DataType>> type_constraints;
  std::vector<std::string> host_memory;
  int32_t priority = 0;
  std::string label;
  // The serialized KernelDef, if the kernel was registered with one. Its values
  // have replaced those above.
  std::string kernel_def;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_KernelBuilder;

// The kernels that plug-ins have registered in this process.
// The destructor of ScopedFakeTensorFlow clears it.
class KernelRegistry {
 public:
  static KernelRegistry& Get() {
    static auto* const registry = new KernelRegistry;
    return *registry;
  }

  // Returns the kernels in the order of their registration.
  const std::vector<std::unique_ptr<TF_KernelBuilder>>& kernels() const {
    return kernels_;
  }
  void Add(std::unique_ptr<TF_KernelBuilder> kernel) {
    kernels_.push_back(std::move(kernel));
  }
  void Clear() { kernels_.clear(); }

  // Replaces all kernels with those that a plug-in's TF_InitKernel registers.
  void Refill(void (*init_kernel)()) {
    Clear();
    init_kernel();
  }

  // Returns the kernel with the highest priority among those for the node's op,
  // types and label; null if there is none.
  const TF_KernelBuilder* Find(const Node& node,
                               const std::string& device_type) const {
    const TF_KernelBuilder* found = nullptr;
    for (const auto& kernel : kernels_) {
      if (kernel->op != node.op || kernel->device_type != device_type ||
          !Fits(*kernel, node)) {
        continue;
      }
      if (found == nullptr || kernel->priority > found->priority) {
        found = kernel.get();
      }
    }
    return found;
  }

 private:
  static bool Fits(const TF_KernelBuilder& kernel, const Node& node) {
    const auto* label = GetAttr<std::string>(node, "_kernel");
    if ((label == nullptr ? "" : *label) != kernel.label) return false;
    for (const auto& [attr, allowed] : kernel.type_constraints) {
      std::vector<DataType> types;
      if (const auto* type = GetAttr<DataType>(node, attr)) {
        types = {*type};
      } else if (const auto* list =
                     GetAttr<std::vector<DataType>>(node, attr)) {
        types = *list;
      } else {
        return false;
      }
      for (const DataType type : types) {
        if (std::find(allowed.begin(), allowed.end(),
                      static_cast<TF_DataType>(type)) == allowed.end()) {
          return false;
        }
      }
    }
    return true;
  }
  template <class T>
  static const T* GetAttr(const Node& node, const std::string& name) {
    const auto found = node.attrs.find(name);
    return found == node.attrs.end() ? nullptr : std::get_if<T>(&found->second);
  }

  std::vector<std::unique_ptr<TF_KernelBuilder>> kernels_;
};

TFPLUG_FAKE_FUNCTION TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op, const char* device_type,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, capi::TF_OpKernelContext*),
    void (*delete_func)(void*)) {
  if (Fault::Hits("TF_NewKernelBuilder")) return nullptr;
  auto* const builder = new TF_KernelBuilder;
  builder->op = op;
  builder->device_type = device_type;
  builder->create_func = create_func;
  builder->compute_func = compute_func;
  builder->delete_func = delete_func;
  return builder;
}
TFPLUG_FAKE_FUNCTION TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op, const char* device_type,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, capi::TF_OpKernelContext*,
                               capi::TF_AsyncOpKernelDoneCallback*),
    void (*delete_func)(void*)) {
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder(op, device_type, create_func, nullptr, delete_func);
  if (builder != nullptr) builder->compute_async_func = compute_async_func;
  return builder;
}
TFPLUG_FAKE_FUNCTION void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) {
  delete builder;
}
// TensorFlow rejects types of 4 bits or fewer here and accepts them only in a
// KernelDef.
TFPLUG_FAKE_FUNCTION void TF_KernelBuilder_TypeConstraint(
    TF_KernelBuilder* builder, const char* attr, TF_DataType type,
    TF_Status* status) {
  if (Fault::Hits("TF_KernelBuilder_TypeConstraint", status)) return;
  if (type >= capi::TF_INT4) {
    TF_SetStatus(status, capi::TF_UNIMPLEMENTED, "Unexpected type");
    return;
  }
  builder->type_constraints[attr].push_back(type);
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_KernelBuilder_HostMemory(TF_KernelBuilder* builder,
                                                      const char* arg) {
  builder->host_memory.emplace_back(arg);
}
TFPLUG_FAKE_FUNCTION void TF_KernelBuilder_Priority(TF_KernelBuilder* builder,
                                                    int32_t priority) {
  builder->priority = priority;
}
TFPLUG_FAKE_FUNCTION void TF_KernelBuilder_Label(TF_KernelBuilder* builder,
                                                 const char* label) {
  builder->label = label;
}

// Replaces the builder's values with those of a serialized KernelDef. Returns
// false if it is malformed.
inline bool ReadKernelDef(const char* kernel_def, TF_KernelBuilder* builder) {
  using internal::WireReader;
  builder->kernel_def = kernel_def;
  builder->type_constraints.clear();
  builder->host_memory.clear();
  builder->priority = 0;
  builder->label.clear();
  WireReader def(kernel_def);
  while (def.Next()) {
    if (def.number() == 1) builder->op = std::string(def.bytes());
    if (def.number() == 2) builder->device_type = std::string(def.bytes());
    if (def.number() == 3) {
      std::string attr;
      std::vector<TF_DataType> types;
      for (WireReader constraint(def.bytes()); constraint.Next();) {
        if (constraint.number() == 1) attr = std::string(constraint.bytes());
        if (constraint.number() != 2) continue;
        for (WireReader value(constraint.bytes()); value.Next();) {
          for (WireReader list(value.bytes()); list.Next();) {
            if (list.number() != 6) continue;
            for (const char type : list.bytes()) {  // types are below 128
              types.push_back(static_cast<TF_DataType>(type));
            }
          }
        }
      }
      builder->type_constraints[attr] = types;
    }
    if (def.number() == 4) builder->host_memory.emplace_back(def.bytes());
    if (def.number() == 5) builder->label = std::string(def.bytes());
    if (def.number() == 6) {
      builder->priority = static_cast<int32_t>(def.varint());
    }
  }
  return def.ok();
}

// `kernel_def` is a C string: TensorFlow stops reading at a NUL byte.
TFPLUG_FAKE_FUNCTION void TF_RegisterKernelBuilderWithKernelDef(
    const char* kernel_def, const char* /*name*/, TF_KernelBuilder* builder,
    TF_Status* status) {
  std::unique_ptr<TF_KernelBuilder> owned(builder);
  if (Fault::Hits("TF_RegisterKernelBuilder", status)) return;
  if (kernel_def != nullptr && !ReadKernelDef(kernel_def, builder)) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "Error parsing serialized KernelDef.");
    return;
  }
  KernelRegistry::Get().Add(std::move(owned));
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_RegisterKernelBuilder(const char* name,
                                                   TF_KernelBuilder* builder,
                                                   TF_Status* status) {
  TF_RegisterKernelBuilderWithKernelDef(nullptr, name, builder, status);
}

inline void InstallRegistryFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NewKernelBuilder);
  TFPLUG_FAKE_INSTALL(TF_NewAsyncKernelBuilder);
  TFPLUG_FAKE_INSTALL(TF_DeleteKernelBuilder);
  TFPLUG_FAKE_INSTALL(TF_KernelBuilder_TypeConstraint);
  TFPLUG_FAKE_INSTALL(TF_KernelBuilder_HostMemory);
  TFPLUG_FAKE_INSTALL(TF_KernelBuilder_Priority);
  TFPLUG_FAKE_INSTALL(TF_KernelBuilder_Label);
  TFPLUG_FAKE_INSTALL(TF_RegisterKernelBuilderWithKernelDef);
  TFPLUG_FAKE_INSTALL(TF_RegisterKernelBuilder);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_KERNEL_REGISTRY_H_
