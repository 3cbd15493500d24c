// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_REGION_OP_H_
#define TFPLUG_KERNEL_REGION_OP_H_

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tfplug/base/internal/environment.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The op that the pass CompileRegions (passes/compile_regions.h) creates, whose
// kernel is in op_kernels/region.h. The name carries the version of the
// attributes.
//
// `graph` is a serialized GraphDef whose nodes are in the order in which they
// run: an _Arg with the attribute `index` for each input of the op, constants
// in host memory, nodes that have a kernel of the kernel library, and a _Retval
// with `index` for each output. The inputs and outputs in host memory are the
// last ones.
inline constexpr char kRegionOp[] = "TfplugRegionV1";

// The largest subgraph: `graph` comes from files, too.
inline constexpr size_t kMaxRegionNodes = 4096;
inline constexpr size_t kMaxRegionBytes = size_t{4} << 20;
// The largest constant that a region contains, in bytes.
inline constexpr size_t kMaxRegionConstant = 1024;

// Returns whether regions are turned on, by the environment variable
// TFPLUG_REGIONS.
inline bool AreRegionsEnabled() {
  return internal::IsTurnedOn("TFPLUG_REGIONS");
}

// Returns whether decisions about regions are logged.
inline bool AreRegionsLogged() {
  return internal::IsTurnedOn("TFPLUG_LOG_REGIONS");
}

// Logs a decision, on stderr, or at the end of the file whose path
// TFPLUG_LOG_REGIONS is; a path contains a slash. A file that cannot be written
// is ignored. tools/coverage and tools/profile read these lines
// (tools/lib/region_log.py).
inline void LogRegions(const std::string& decision) {
  const char* const value = std::getenv("TFPLUG_LOG_REGIONS");
  const std::string line = "tfplug: " + decision + "\n";
  if (value == nullptr || std::string(value).find('/') == std::string::npos) {
    std::fputs(line.c_str(), stderr);
    return;
  }
  std::FILE* const file = std::fopen(value, "a");
  if (file == nullptr) return;
  std::fputs(line.c_str(), file);
  std::fclose(file);
}

inline OpDef RegionOp() {
  return OpDef(kRegionOp)
      .Attr("Tin: list(type) >= 0")
      .Attr("Thost_in: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("Thost_out: list(type) >= 0")
      .Attr("graph: string")
      .Input("inputs: Tin")
      .Input("host_inputs: Thost_in")
      .Output("outputs: Tout")
      .Output("host_outputs: Thost_out")
      .AllowExisting();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_REGION_OP_H_
