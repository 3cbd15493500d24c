// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_TENSORFLOW_H_
#define TFPLUG_TESTING_FAKE_TENSORFLOW_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/testing/fake_graph.h"
#include "tfplug/testing/fake_kernel.h"
#include "tfplug/testing/fake_log.h"
#include "tfplug/testing/fake_status.h"
#include "tfplug/testing/release.h"

namespace tfplug::testing {

// Which TensorFlow the stand-in plays, as far as its functions go.
struct FakeOptions {
  // It has the functions that this release exports.
  Release release = capi::kNewestRelease;
  // Functions that it lacks besides, such as "TF_SetPayload".
  std::vector<std::string> missing;
};

// The stand-in's table of functions: those that are implemented here, less
// those that the core which is played has not got.
inline capi::Functions MakeFakeTensorFlow(const FakeOptions& options = {}) {
  capi::Functions core;
  InstallStatusFunctions(core);
  InstallLogFunctions(core);
  InstallKernelFunctions(core);
  InstallGraphFunctions(core);
  PlayedVersion() = std::to_string(options.release.major) + "." +
                    std::to_string(options.release.minor) + ".0";
  for (size_t i = 0; i < capi::kFunctionCount; ++i) {
    const capi::FunctionInfo function = capi::DescribeFunction(i);
    bool has = IsExportedIn(options.release, function.releases);
    for (const std::string& name : options.missing) {
      if (name == function.name) has = false;
    }
    if (has) continue;
    std::memset(reinterpret_cast<char*>(&core) + i * sizeof(void*), 0,
                sizeof(void*));
  }
  return core;
}

// Puts the stand-in in TensorFlow's place for a plug-in that is linked with the
// test, while it lives:
//
//   tfplug::testing::ScopedFakeTensorFlow core;
//   auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
//
// The first one must exist before the plug-in's first entry point is called.
// A plug-in loaded with dlopen has functions of its own: see core_status.h.
class ScopedFakeTensorFlow {
 public:
  explicit ScopedFakeTensorFlow(const FakeOptions& options = {})
      : before_(
            std::exchange(internal::tensorflow, MakeFakeTensorFlow(options))) {}
  ScopedFakeTensorFlow(const ScopedFakeTensorFlow&) = delete;
  ScopedFakeTensorFlow& operator=(const ScopedFakeTensorFlow&) = delete;
  ~ScopedFakeTensorFlow() { internal::tensorflow = before_; }

 private:
  const capi::Functions before_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_TENSORFLOW_H_
