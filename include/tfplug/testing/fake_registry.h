// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_REGISTRY_H_
#define TFPLUG_TESTING_FAKE_REGISTRY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/fake_node.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::capi {

// A kernel as a plug-in registers it.
struct TF_KernelBuilder {
  std::string op;
  std::string device_type;
  void* (*create_func)(TF_OpKernelConstruction*);
  void (*compute_func)(void*, TF_OpKernelContext*);
  void (*compute_async_func)(void*, TF_OpKernelContext*,
                             TF_AsyncOpKernelDoneCallback*);
  void (*delete_func)(void*);
  std::map<std::string, std::vector<TF_DataType>> type_constraints;
  std::vector<std::string> host_memory;
  int32_t priority = 0;
  std::string label;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_KernelBuilder;

// The kernels that plug-ins have registered in this process.
class KernelRegistry {
 public:
  static KernelRegistry& Get() {
    static auto* const registry = new KernelRegistry;
    return *registry;
  }

  const std::vector<std::unique_ptr<TF_KernelBuilder>>& kernels() const {
    return kernels_;
  }
  void Add(TF_KernelBuilder* kernel) { kernels_.emplace_back(kernel); }

  // Forgets all kernels, and has a plug-in's TF_InitKernel register its own.
  void Refill(void (*init_kernel)()) {
    kernels_.clear();
    init_kernel();
  }

  // The kernel for a node: of the right op, device and types, and of the
  // highest priority. Null if there is none.
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
    const auto label = node.attrs.find("_kernel");
    const auto* asked = label == node.attrs.end()
                            ? nullptr
                            : std::get_if<std::string>(&label->second);
    if ((asked == nullptr ? "" : *asked) != kernel.label) return false;
    for (const auto& [attr, allowed] : kernel.type_constraints) {
      const auto found = node.attrs.find(attr);
      if (found == node.attrs.end()) return false;
      std::vector<DataType> types;
      if (const auto* type = std::get_if<DataType>(&found->second)) {
        types = {*type};
      } else if (const auto* list =
                     std::get_if<std::vector<DataType>>(&found->second)) {
        types = *list;
      } else {
        return false;
      }
      for (const DataType type : types) {
        if (std::find(allowed.begin(), allowed.end(),
                      static_cast<capi::TF_DataType>(type)) == allowed.end()) {
          return false;
        }
      }
    }
    return true;
  }

  std::vector<std::unique_ptr<TF_KernelBuilder>> kernels_;
};

TFPLUG_TESTING_CORE_FUNCTION TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op, const char* device,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, capi::TF_OpKernelContext*),
    void (*delete_func)(void*)) {
  return new TF_KernelBuilder{op,
                              device,
                              create_func,
                              compute_func,
                              nullptr,
                              delete_func,
                              {},
                              {},
                              /*priority=*/0,
                              ""};
}
TFPLUG_TESTING_CORE_FUNCTION TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op, const char* device,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, capi::TF_OpKernelContext*,
                               capi::TF_AsyncOpKernelDoneCallback*),
    void (*delete_func)(void*)) {
  return new TF_KernelBuilder{op,
                              device,
                              create_func,
                              nullptr,
                              compute_async_func,
                              delete_func,
                              {},
                              {},
                              /*priority=*/0,
                              ""};
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteKernelBuilder(
    TF_KernelBuilder* builder) {
  delete builder;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_TypeConstraint(
    TF_KernelBuilder* builder, const char* attr_name, capi::TF_DataType type,
    TF_Status* status) {
  builder->type_constraints[attr_name].push_back(type);
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_HostMemory(
    TF_KernelBuilder* builder, const char* arg_name) {
  builder->host_memory.push_back(arg_name);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_Priority(
    TF_KernelBuilder* builder, int32_t priority) {
  builder->priority = priority;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_Label(
    TF_KernelBuilder* builder, const char* label) {
  builder->label = label;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_RegisterKernelBuilder(
    const char* /*name*/, TF_KernelBuilder* builder, TF_Status* status) {
  KernelRegistry::Get().Add(builder);
  TF_SetStatus(status, capi::TF_OK, "");
}

// What the serialised KernelDef says replaces what the builder was told.
TFPLUG_TESTING_CORE_FUNCTION void TF_RegisterKernelBuilderWithKernelDef(
    const char* kernel_def, const char* /*name*/, TF_KernelBuilder* builder,
    TF_Status* status) {
  using internal::WireReader;
  builder->type_constraints.clear();
  builder->host_memory.clear();
  WireReader def(kernel_def);
  while (def.Next()) {
    if (def.number() == 1) builder->op = std::string(def.bytes());
    if (def.number() == 2) builder->device_type = std::string(def.bytes());
    if (def.number() == 3) {
      std::string attr;
      std::vector<capi::TF_DataType> types;
      for (WireReader constraint(def.bytes()); constraint.Next();) {
        if (constraint.number() == 1) attr = std::string(constraint.bytes());
        if (constraint.number() != 2) continue;
        for (WireReader value(constraint.bytes()); value.Next();) {
          for (WireReader list(value.bytes()); list.Next();) {
            if (list.number() != 6) continue;
            for (const char type : list.bytes()) {  // one byte each: below 128
              types.push_back(static_cast<capi::TF_DataType>(type));
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
  if (!def.ok()) {
    delete builder;
    return TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                        "not a serialised KernelDef");
  }
  TF_RegisterKernelBuilder("", builder, status);
}

inline void InstallRegistryFunctions(capi::Functions& core) {
  core.TF_NewKernelBuilder = &TF_NewKernelBuilder;
  core.TF_NewAsyncKernelBuilder = &TF_NewAsyncKernelBuilder;
  core.TF_DeleteKernelBuilder = &TF_DeleteKernelBuilder;
  core.TF_KernelBuilder_TypeConstraint = &TF_KernelBuilder_TypeConstraint;
  core.TF_KernelBuilder_HostMemory = &TF_KernelBuilder_HostMemory;
  core.TF_KernelBuilder_Priority = &TF_KernelBuilder_Priority;
  core.TF_KernelBuilder_Label = &TF_KernelBuilder_Label;
  core.TF_RegisterKernelBuilder = &TF_RegisterKernelBuilder;
  core.TF_RegisterKernelBuilderWithKernelDef =
      &TF_RegisterKernelBuilderWithKernelDef;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_REGISTRY_H_
