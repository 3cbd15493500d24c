// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_CORE_H_
#define TFPLUG_TESTING_CORE_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/abi/function_info.h"
#include "tfplug/internal/core.h"
#include "tfplug/testing/core_graph.h"
#include "tfplug/testing/core_kernel.h"
#include "tfplug/testing/core_log.h"
#include "tfplug/testing/core_status.h"
#include "tfplug/testing/release.h"

namespace tfplug::testing {

// Which TensorFlow the stand-in plays, as far as its functions go.
struct CoreOptions {
  // It has the functions that this release exports.
  Release release = abi::kNewestRelease;
  // Functions that it lacks besides, such as "TF_SetPayload".
  std::vector<std::string> missing;
};

// The stand-in's table of functions: those that are implemented here, less
// those that the core which is played has not got.
inline abi::Functions MakeCore(const CoreOptions& options = {}) {
  abi::Functions core;
  InstallStatusFunctions(core);
  InstallLogFunctions(core);
  InstallKernelFunctions(core);
  InstallGraphFunctions(core);
  PlayedVersion() = std::to_string(options.release.major) + "." +
                    std::to_string(options.release.minor) + ".0";
  for (size_t i = 0; i < abi::kFunctionCount; ++i) {
    const abi::FunctionInfo function = abi::DescribeFunction(i);
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
//   tfplug::testing::ScopedCore core;
//   auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
//
// The first one must exist before the plug-in's first entry point is called.
// A plug-in loaded with dlopen has functions of its own: see core_status.h.
class ScopedCore {
 public:
  explicit ScopedCore(const CoreOptions& options = {})
      : before_(std::exchange(internal::core, MakeCore(options))) {}
  ScopedCore(const ScopedCore&) = delete;
  ScopedCore& operator=(const ScopedCore&) = delete;
  ~ScopedCore() { internal::core = before_; }

 private:
  const abi::Functions before_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_CORE_H_
