// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_CHECK_API_H_
#define TFPLUG_TESTS_CHECK_API_H_

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "tfplug/abi/abi.h"
#include "tfplug/abi/functions.h"

// TensorFlow's functions as undefined symbols, as in most plug-ins that are not
// made with tfplug; and the fault that the plug-in has.
namespace tfplug::capi {
#define TFPLUG_DECLARE(name) \
  extern "C" std::remove_pointer_t<decltype(Functions::name)> name
TFPLUG_DECLARE(TF_NewStatus);
TFPLUG_DECLARE(TF_DeleteStatus);
TFPLUG_DECLARE(TF_SetStatus);
TFPLUG_DECLARE(TF_GetCode);
TFPLUG_DECLARE(TF_NewKernelBuilder);
TFPLUG_DECLARE(TF_KernelBuilder_TypeConstraint);
TFPLUG_DECLARE(TF_KernelBuilder_HostMemory);
TFPLUG_DECLARE(TF_RegisterKernelBuilder);
TFPLUG_DECLARE(TF_OpKernelConstruction_GetAttrSize);
TFPLUG_DECLARE(TF_OpKernelContext_Failure);
TFPLUG_DECLARE(TF_GetStream);
TFPLUG_DECLARE(TF_NumInputs);
TFPLUG_DECLARE(TF_GetInput);
TFPLUG_DECLARE(TF_AllocateOutput);
TFPLUG_DECLARE(TF_DeleteTensor);
TFPLUG_DECLARE(TF_TensorData);
TFPLUG_DECLARE(TF_TensorByteSize);
TFPLUG_DECLARE(TF_NumDims);
TFPLUG_DECLARE(TF_Dim);
TFPLUG_DECLARE(TF_NewBuffer);
TFPLUG_DECLARE(TF_DeleteBuffer);
TFPLUG_DECLARE(TF_NewGraphProperties);
TFPLUG_DECLARE(TF_DeleteGraphProperties);
TFPLUG_DECLARE(TF_InferStatically);
TFPLUG_DECLARE(TF_GetInputPropertiesListSize);
TFPLUG_DECLARE(TF_GetInputPropertiesList);
#undef TFPLUG_DECLARE
}  // namespace tfplug::capi

// Returns whether this is the fault that $TFPLUG_TEST_FAULT names.
inline bool Has(const char* fault) {
  static const char* const own = std::getenv("TFPLUG_TEST_FAULT");
  return own != nullptr && std::strcmp(own, fault) == 0;
}

// Returns the device type: a copy of the plug-in named other.so is another one.
inline const char* DeviceType() {
  Dl_info info;
  const bool is_known =
      dladdr(reinterpret_cast<void*>(&DeviceType), &info) != 0;
  if (is_known && std::strstr(info.dli_fname, "other.so") != nullptr) {
    return "OTHER";
  }
  if (Has("type_gpu")) return "GPU";
  return Has("type_with_cpu") ? "FASTCPU" : "HAND";
}

#endif  // TFPLUG_TESTS_CHECK_API_H_
