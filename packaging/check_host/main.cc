// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's side of one check of a plug-in: see check.py, which compiles
// this program on the user's machine.
//
//   check_host CHECK PLUGIN.so... [--lazy] [--first LIBRARY]... [--ops OPLIST]
//       [--release 2.21] [--layout 2.5] [--seed N]
//
// Writes lines of JSON on standard output, to which nothing else is written.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "define_ops.h"
#include "graphs.h"
#include "interpose.h"
#include "kernels.h"
#include "memory.h"
#include "more_functions.h"
#include "plugin.h"
#include "profiler.h"
#include "registration.h"
#include "results.h"
#include "streams.h"
#include "stress.h"
#include "tfplug/testing/functions_by_name.h"

namespace tfplug::check {
namespace {

constexpr struct {
  const char* name;
  void (*run)(Plugin&);
} kChecks[] = {
    {"load", CheckLoad},
    {"names", CheckNames},
    {"struct-sizes", CheckStructSizes},
    {"registration", CheckRegistration},
    {"type-name", CheckTypeName},
    {"layouts", CheckLayouts},
    {"devices", CheckDevices},
    {"handles", CheckHandles},
    {"allocation", CheckAllocation},
    {"alignment", CheckAlignment},
    {"aligned-alloc", CheckAlignedAlloc},
    {"huge-allocation", CheckHugeAllocation},
    {"statistics", CheckStatistics},
    {"copies", CheckCopies},
    {"fills", CheckFills},
    {"host-callback", CheckHostCallback},
    {"events", CheckEvents},
    {"order", CheckOrder},
    {"late-reads", CheckLateReads},
    {"timers", CheckTimers},
    {"environment", CheckEnvironment},
    {"random-programs", CheckRandomPrograms},
    {"threads", CheckThreads},
    {"kernels", CheckKernels},
    {"kernel-ops", WriteKernels},
    {"kernel-sets", WriteKernelsAndSettings},
    {"kernel-results", CheckKernelResults},
    {"kernel-empty", CheckKernelEmpty},
    {"kernel-faults", CheckKernelFaults},
    {"graph-registration", CheckGraphRegistration},
    {"graph-type", CheckGraphType},
    {"graph-small", CheckGraphSmall},
    {"graph-empty", CheckGraphEmpty},
    {"graph-foreign-device", CheckGraphForeignDevice},
    {"graph-large", CheckGraphLarge},
    {"graph-cyclic", CheckGraphCyclic},
    {"graph-malformed", CheckGraphMalformed},
    {"graph-leaks", CheckGraphLeaks},
    {"graph-results", CheckGraphResults},
    {"profiler", CheckProfiler},
};

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  // A plug-in's own output goes to standard error.
  Report report(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  dup2(STDERR_FILENO, STDOUT_FILENO);
  // Freed memory is overwritten, so that a later read of it fails each time.
  mallopt(M_PERTURB, 0x5a);
  DefineUnknownOp();

  Plugins plugins;
  bool is_lazy = false;
  testing::Release release = capi::kNewestRelease;
  std::string layout;
  uint64_t seed = 1;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
      report.Step(std::string("loading ") + argv[++i]);
      if (dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        report.Error(dlerror());
        return 0;
      }
    } else if (std::strcmp(argv[i], "--ops") == 0 && i + 1 < argc) {
      if (!report.Ok(DefineOps(argv[++i]), "--ops")) return 0;
    } else if (std::strcmp(argv[i], "--release") == 0 && i + 1 < argc) {
      release = testing::ParseRelease(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--layout") == 0 && i + 1 < argc) {
      layout = argv[++i];
    } else if (std::strcmp(argv[i], "--lazy") == 0) {
      is_lazy = true;
    } else {
      plugins.push_back(std::make_unique<Plugin>(argv[i], report));
    }
  }
  if (plugins.empty()) return 2;
  // Decides what dlsym finds, and TF_Version.
  internal::tensorflow = testing::MakeFakeTensorFlow({release, {}});
  calls().path = plugins[0]->path().c_str();
  for (auto& plugin : plugins) {
    plugin->release = release;
    plugin->layout = layout;
    plugin->seed = seed;
    if (!plugin->Load(is_lazy)) return 0;
  }
  if (std::strcmp(argv[1], "together") == 0) {
    CheckTogether(plugins);
    return 0;
  }
  for (const auto& check : kChecks) {
    if (std::strcmp(argv[1], check.name) != 0) continue;
    check.run(*plugins[0]);
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace tfplug::check

int main(int argc, char** argv) {
  const int result = tfplug::check::Main(argc, argv);
  std::fflush(nullptr);
  // TensorFlow destroys no plug-in, so its destructors are not run.
  _exit(result);
}
