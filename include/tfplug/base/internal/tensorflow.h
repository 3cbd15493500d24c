// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_TENSORFLOW_H_
#define TFPLUG_BASE_INTERNAL_TENSORFLOW_H_

#include <dlfcn.h>

#include "tfplug/abi/functions.h"

namespace tfplug::internal {

// The C API as the process's TensorFlow has it. A null pointer: it lacks it.
// Hidden: two plug-ins in one process never share state.
__attribute__((visibility("hidden"))) inline capi::Functions tensorflow;

// Looks in the global scope, then in the libraries that hold the C API, if they
// are loaded: the first two since 2.12, Python's extension before that; the
// last is TensorFlow for C. A plug-in links none of them.
inline void* FindInProcess(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  static void* const libraries[] = {
      dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD),
      dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD),
      dlopen("_pywrap_tensorflow_internal.so", RTLD_LAZY | RTLD_NOLOAD),
      dlopen("libtensorflow.so.2", RTLD_LAZY | RTLD_NOLOAD),
  };
  for (void* library : libraries) {
    if (library == nullptr) continue;
    if (void* found = dlsym(library, name)) return found;
  }
  return nullptr;
}

// Every entry point calls this first; the first call fills `tensorflow`. False:
// there is no TensorFlow in this process, not even a TF_SetStatus to say so
// with.
inline bool LoadTensorFlow() {
  static const bool loaded = [] {
    if (tensorflow.TF_SetStatus == nullptr)
      capi::LoadFunctions(tensorflow, &FindInProcess);
    return tensorflow.TF_SetStatus != nullptr &&
           tensorflow.TF_GetCode != nullptr &&
           tensorflow.TF_NewStatus != nullptr &&
           tensorflow.TF_DeleteStatus != nullptr &&
           tensorflow.TF_Message != nullptr;
  }();
  return loaded;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_TENSORFLOW_H_
