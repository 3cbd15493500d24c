// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_TENSORFLOW_H_
#define TFPLUG_TESTING_FAKE_TENSORFLOW_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/testing/fake_rendezvous.h"
#include "tfplug/testing/internal/attribute_functions.h"
#include "tfplug/testing/internal/buffer_functions.h"
#include "tfplug/testing/internal/context_functions.h"
#include "tfplug/testing/internal/graph_functions.h"
#include "tfplug/testing/internal/output_functions.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/string_functions.h"
#include "tfplug/testing/internal/tensor_functions.h"
#include "tfplug/testing/internal/variable_functions.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/log_capture.h"
#include "tfplug/testing/op_registry.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/shape_inference.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Selects the functions of the fake TensorFlow.
struct FakeOptions {
  // The release whose functions the fake exports.
  Release release = capi::kNewestRelease;
  // Functions to leave out in addition, such as "TF_SetPayload".
  std::vector<std::string> missing;
};

// Returns the version of the fake TensorFlow, such as "2.21.0".
inline std::string& FakeVersion() {
  static auto* const version = new std::string;
  return *version;
}
TFPLUG_FAKE_FUNCTION const char* TF_Version() { return FakeVersion().c_str(); }

// Returns the fake's table of functions, and sets the result of TF_Version.
inline capi::Functions MakeFakeTensorFlow(const FakeOptions& options = {}) {
  capi::Functions functions;
  InstallStatusFunctions(functions);
  InstallLogFunctions(functions);
  InstallBufferFunctions(functions);
  InstallStringFunctions(functions);
  InstallTensorFunctions(functions);
  InstallAttributeFunctions(functions);
  InstallRegistryFunctions(functions);
  InstallContextFunctions(functions, options.release);
  InstallOutputFunctions(functions);
  InstallVariableFunctions(functions, options.release);
  InstallRendezvousFunctions(functions);
  InstallOpDefinitionFunctions(functions);
  InstallShapeInferenceFunctions(functions);
  InstallGraphFunctions(functions);
  TFPLUG_FAKE_INSTALL(TF_Version);
  FakeVersion() = std::to_string(options.release.major) + "." +
                  std::to_string(options.release.minor) + ".0";
  for (size_t i = 0; i < capi::kFunctionCount; ++i) {
    const capi::FunctionInfo function = capi::DescribeFunction(i);
    const auto& missing = options.missing;
    if (IsExportedIn(options.release, function.releases) &&
        std::find(missing.begin(), missing.end(), function.name) ==
            missing.end()) {
      continue;
    }
    std::memset(reinterpret_cast<char*>(&functions) + i * sizeof(void*), 0,
                sizeof(void*));
  }
  return functions;
}

// Replaces TensorFlow, while the object exists, for plug-ins that are linked
// with the test:
//
//   tfplug::testing::ScopedFakeTensorFlow tensorflow;
//   auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
//
// Construct the first one before any entry point of the plug-in is called.
// Plug-ins loaded with dlopen look functions up by themselves: see Host::Load.
// The destructor removes all registered kernels and ops.
class ScopedFakeTensorFlow {
 public:
  explicit ScopedFakeTensorFlow(const FakeOptions& options = {})
      : before_(
            std::exchange(internal::tensorflow, MakeFakeTensorFlow(options))) {}
  ScopedFakeTensorFlow(const ScopedFakeTensorFlow&) = delete;
  ScopedFakeTensorFlow& operator=(const ScopedFakeTensorFlow&) = delete;
  ~ScopedFakeTensorFlow() {
    KernelRegistry::Get().Clear();
    RegisteredOps().clear();
    internal::tensorflow = before_;
  }

 private:
  const capi::Functions before_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_TENSORFLOW_H_
