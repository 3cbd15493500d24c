// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_TENSORFLOW_H_
#define TFPLUG_BASE_INTERNAL_TENSORFLOW_H_

#include "tfplug/abi/functions.h"
#include "tfplug/base/internal/gdb_script.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/base/version.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The C API of the TensorFlow in this process; functions that it lacks are
// null. Hidden, because plug-ins in one process must not share it.
inline capi::Functions tensorflow;

// Looks up a symbol in the global scope, then in the loaded libraries that may
// contain the C API: libtensorflow_framework and libtensorflow_cc since 2.12,
// the Python extension in older releases, and libtensorflow, the distribution
// for C. A plug-in links none of them.
inline void* FindInProcess(const char* name) {
  if (void* found = FindGlobal(name)) return found;
  static const LibraryHandle libraries[] = {
      FindLibrary("libtensorflow_framework.so.2"),
      FindLibrary("libtensorflow_cc.so.2"),
      FindLibrary("_pywrap_tensorflow_internal.so"),
      FindLibrary("libtensorflow.so.2"),
  };
  for (LibraryHandle library : libraries) {
    if (library == nullptr) continue;
    if (void* found = FindIn(library, name)) return found;
  }
  return nullptr;
}

// Fills `tensorflow` on the first call; every entry point calls this function.
// Returns false if the process has no TensorFlow; the caller must log the
// error, because TF_SetStatus is missing, too. Thread-safe.
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

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_TENSORFLOW_H_
