// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_DEVICE_FUNCTIONS_H_
#define TFPLUG_TESTING_FAKE_DEVICE_FUNCTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/testing/internal/buffer_functions.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/log_capture.h"
#include "tfplug/testing/release.h"

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

// Installs the functions that devices call, and sets the result of TF_Version.
inline void InstallDeviceFunctions(capi::Functions& functions,
                                   const FakeOptions& options) {
  InstallStatusFunctions(functions);
  InstallLogFunctions(functions);
  InstallBufferFunctions(functions);
  TFPLUG_FAKE_INSTALL(TF_Version);
  FakeVersion() = std::to_string(options.release.major) + "." +
                  std::to_string(options.release.minor) + ".0";
}

// Removes the functions that `options` leave out.
inline void RemoveFunctions(capi::Functions& functions,
                            const FakeOptions& options) {
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
}

// Replaces TensorFlow, while the object exists, for a device that is linked with
// the test, as ScopedFakeTensorFlow (fake_tensorflow.h) does, but has only the
// functions that devices call: it compiles in less time. With it, kernels and
// graph passes fail as in a TensorFlow that lacks their functions.
class ScopedFakeDeviceFunctions {
 public:
  explicit ScopedFakeDeviceFunctions(const FakeOptions& options = {})
      : before_(std::exchange(internal::tensorflow, Make(options))) {}
  ScopedFakeDeviceFunctions(const ScopedFakeDeviceFunctions&) = delete;
  ScopedFakeDeviceFunctions& operator=(const ScopedFakeDeviceFunctions&) =
      delete;
  ~ScopedFakeDeviceFunctions() { internal::tensorflow = before_; }

 private:
  static capi::Functions Make(const FakeOptions& options) {
    capi::Functions functions;
    InstallDeviceFunctions(functions, options);
    RemoveFunctions(functions, options);
    return functions;
  }

  const capi::Functions before_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_DEVICE_FUNCTIONS_H_
