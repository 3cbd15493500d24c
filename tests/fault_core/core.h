// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_CORE_H_
#define TFPLUG_TESTS_FAULT_CORE_CORE_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fault_core/faults.h"
#include "fault_core/node.h"
#include "fault_core/ops.h"
#include "fault_core/registry.h"
#include "fault_core/rendezvous.h"
#include "fault_core/run.h"
#include "fault_core/tensor.h"
#include "fault_core/variables.h"
#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/testing/fake_graph.h"
#include "tfplug/testing/fake_log.h"
#include "tfplug/testing/fake_status.h"
#include "tfplug/testing/release.h"

// The kernel side of core once more, beside the stand-in that tests of plug-ins
// use: this one has every function, refuses what would end a real process, and
// can fail each call (Fault). A program has the one or the other.
namespace tfplug::testing {

// Which TensorFlow is played, as far as its functions go.
struct FakeOptions {
  Release release = capi::kNewestRelease;
  std::vector<std::string> missing;  // Functions that it lacks besides.
  const char* version = nullptr;  // What TF_Version says, if not the release.
};

inline std::string& SaidVersion() {
  static std::string version;
  return version;
}

inline capi::Functions MakeFakeTensorFlow(const FakeOptions& options = {}) {
  capi::Functions core;
  InstallStatusFunctions(core);
  InstallLogFunctions(core);
  InstallTensorFunctions(core);
  InstallRunFunctions(core);
  InstallRendezvousFunctions(core);
  InstallNodeFunctions(core);
  InstallRegistryFunctions(core);
  InstallOpFunctions(core);
  InstallGraphFunctions(core);
  FailGraphCall() = [](const char* function, TF_Status* status) {
    return status == nullptr ? Fault::Hits(function)
                             : Fault::Hits(function, status);
  };
  InstallVariableFunctions(core, !(options.release < Release{2, 10}));
  SaidVersion() = options.version != nullptr
                      ? options.version
                      : std::to_string(options.release.major) + "." +
                            std::to_string(options.release.minor) + ".0";
  core.TF_Version = [] { return SaidVersion().c_str(); };
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

class ScopedFakeTensorFlow {
 public:
  explicit ScopedFakeTensorFlow(const FakeOptions& options = {})
      : before_(
            std::exchange(internal::tensorflow, MakeFakeTensorFlow(options))) {}
  ScopedFakeTensorFlow(const ScopedFakeTensorFlow&) = delete;
  ScopedFakeTensorFlow& operator=(const ScopedFakeTensorFlow&) = delete;
  ~ScopedFakeTensorFlow() {
    RegisteredKernels().clear();
    RegisteredOps().clear();
    internal::tensorflow = before_;
  }

 private:
  const capi::Functions before_;
};

// How many objects of core's exist in all: the same before and after a test.
inline int64_t LiveObjectCount() {
  return LiveStatusCount() + LiveTensorCount() + LiveBufferCount() +
         LiveKernelBuilderCount() + LiveLockCount() + LiveOpObjectCount() +
         LiveGraphObjectCount();
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_CORE_H_
