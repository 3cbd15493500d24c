// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_CORE_H_
#define TFPLUG_INTERNAL_CORE_H_

#include <dlfcn.h>

#include "tfplug/abi/functions.h"

namespace tfplug::internal {

// The C API as the process's TensorFlow has it. A null pointer: it lacks it.
// Hidden: two plug-ins in one process never share state.
__attribute__((visibility("hidden"))) inline abi::Functions core;

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

// Every entry point calls this first; the first call fills `core`. False: there
// is no TensorFlow in this process, not even a TF_SetStatus to say so with.
inline bool LoadCore() {
  static const bool loaded = [] {
    if (core.TF_SetStatus == nullptr) abi::LoadFunctions(core, &FindInProcess);
    return core.TF_SetStatus != nullptr && core.TF_GetCode != nullptr &&
           core.TF_NewStatus != nullptr && core.TF_DeleteStatus != nullptr &&
           core.TF_Message != nullptr;
  }();
  return loaded;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_CORE_H_
