// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_REGISTRY_H_
#define TFPLUG_TESTS_FAULT_CORE_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fault_core/run.h"

namespace tfplug::capi {

// The stand-in's TF_KernelBuilder: what the plug-in has said of a kernel.
struct TF_KernelBuilder {
  TF_KernelBuilder() { ++live; }
  TF_KernelBuilder(const TF_KernelBuilder&) = delete;
  ~TF_KernelBuilder() { --live; }

  std::string op, device;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*,
                        TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*destroy)(void*) = nullptr;
  std::vector<std::pair<std::string, int>> types;
  std::vector<std::string> host_memory;
  int32_t priority = 0;
  std::string label;
  std::string kernel_def;  // Serialised, if it was registered with one.

  static inline std::atomic<int64_t> live{0};
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_KernelBuilder;

// The kernels that core has taken, in order. A test clears it in the end.
inline std::vector<std::unique_ptr<TF_KernelBuilder>>& RegisteredKernels() {
  static std::vector<std::unique_ptr<TF_KernelBuilder>> kernels;
  return kernels;
}
inline int64_t LiveKernelBuilderCount() { return TF_KernelBuilder::live; }

TFPLUG_TESTING_CORE_FUNCTION TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op, const char* device,
    void* (*create)(capi::TF_OpKernelConstruction*),
    void (*compute)(void*, capi::TF_OpKernelContext*), void (*destroy)(void*)) {
  if (Fault::Hits("TF_NewKernelBuilder")) return nullptr;
  auto* const builder = new TF_KernelBuilder;
  builder->op = op;
  builder->device = device;
  builder->create = create;
  builder->compute = compute;
  builder->destroy = destroy;
  return builder;
}
TFPLUG_TESTING_CORE_FUNCTION TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op, const char* device,
    void* (*create)(capi::TF_OpKernelConstruction*),
    void (*compute)(void*, capi::TF_OpKernelContext*,
                    capi::TF_AsyncOpKernelDoneCallback*),
    void (*destroy)(void*)) {
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder(op, device, create, nullptr, destroy);
  if (builder != nullptr) builder->compute_async = compute;
  return builder;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteKernelBuilder(
    TF_KernelBuilder* builder) {
  delete builder;
}
// Core knows no types of 4 bits and fewer here.
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_TypeConstraint(
    TF_KernelBuilder* builder, const char* attr, capi::TF_DataType type,
    TF_Status* status) {
  if (Fault::Hits("TF_KernelBuilder_TypeConstraint", status)) return;
  if (type >= capi::TF_INT4) {
    TF_SetStatus(status, capi::TF_UNIMPLEMENTED, "Unexpected type");
    return;
  }
  builder->types.emplace_back(attr, type);
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_HostMemory(
    TF_KernelBuilder* builder, const char* arg) {
  builder->host_memory.emplace_back(arg);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_Priority(
    TF_KernelBuilder* builder, int32_t priority) {
  builder->priority = priority;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_KernelBuilder_Label(
    TF_KernelBuilder* builder, const char* label) {
  builder->label = label;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_RegisterKernelBuilderWithKernelDef(
    const char* kernel_def, const char*, TF_KernelBuilder* builder,
    TF_Status* status) {
  std::unique_ptr<TF_KernelBuilder> owned(builder);
  if (Fault::Hits("TF_RegisterKernelBuilder", status)) return;
  if (kernel_def != nullptr) owned->kernel_def = kernel_def;
  RegisteredKernels().push_back(std::move(owned));
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_RegisterKernelBuilder(
    const char* name, TF_KernelBuilder* builder, TF_Status* status) {
  TF_RegisterKernelBuilderWithKernelDef(nullptr, name, builder, status);
}

inline void InstallRegistryFunctions(capi::Functions& core) {
  core.TF_NewKernelBuilder = &TF_NewKernelBuilder;
  core.TF_NewAsyncKernelBuilder = &TF_NewAsyncKernelBuilder;
  core.TF_DeleteKernelBuilder = &TF_DeleteKernelBuilder;
  core.TF_KernelBuilder_TypeConstraint = &TF_KernelBuilder_TypeConstraint;
  core.TF_KernelBuilder_HostMemory = &TF_KernelBuilder_HostMemory;
  core.TF_KernelBuilder_Priority = &TF_KernelBuilder_Priority;
  core.TF_KernelBuilder_Label = &TF_KernelBuilder_Label;
  core.TF_RegisterKernelBuilderWithKernelDef =
      &TF_RegisterKernelBuilderWithKernelDef;
  core.TF_RegisterKernelBuilder = &TF_RegisterKernelBuilder;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_REGISTRY_H_
