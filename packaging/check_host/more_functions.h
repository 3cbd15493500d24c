// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_MORE_FUNCTIONS_H_
#define TFPLUG_CHECK_MORE_FUNCTIONS_H_

#include <string>

#include "tfplug/base/internal/wire.h"
#include "tfplug/testing.h"
#include "tfplug/testing/internal/executor_nodes.h"

// Functions of TensorFlow's C API that are not for plug-ins, but that shipped
// ones call, as far as these need them.
namespace tfplug::capi {

#define TFPLUG_EXPORT extern "C" __attribute__((visibility("default")))

// No graph of the checks has a node with state.
TFPLUG_EXPORT unsigned char TF_OpIsStateful(const char*, TF_Status* status) {
  testing::SetOk(status);
  return 0;
}

TFPLUG_EXPORT TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name,
                                                      TF_Status* status) {
  using internal::AppendField;
  std::string list;
  for (const auto& kernel : testing::KernelRegistry::Get().kernels()) {
    if (kernel->op != name) continue;
    std::string def;
    AppendField(def, 1, kernel->op);
    AppendField(def, 2, kernel->device_type);
    AppendField(list, 1, def);
  }
  testing::SetOk(status);
  return testing::MakeBuffer(list);
}

TFPLUG_EXPORT void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to,
                                      TF_Status* status) {
  const auto constant = Constant::Parse(
      std::string(static_cast<const char*>(from->data), from->length));
  if (constant.ok()) *to = testing::ToTensor(*constant);
  SetStatus(status, constant.status());
}

#undef TFPLUG_EXPORT

}  // namespace tfplug::capi

#endif  // TFPLUG_CHECK_MORE_FUNCTIONS_H_
