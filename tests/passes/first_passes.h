// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PASSES_FIRST_PASSES_H_
#define TFPLUG_TESTS_PASSES_FIRST_PASSES_H_

#include <tfplug/passes/default_passes.h>
#include <tfplug/testing.h>

#include <string>
#include <vector>

namespace tfplug {

// Returns whether the pass is one of those that run before an author's own.
inline bool IsFirstPass(const std::string& name,
                        const OptimizerSettings& settings,
                        testing::Release release,
                        const char* device_type = "SIM") {
  const testing::ScopedFakeTensorFlow fake({release, {}});
  std::vector<graph_internal::PassEntry> entries;
  passes_internal::AppendFirstPasses(device_type, settings, entries);
  for (const graph_internal::PassEntry& entry : entries) {
    if (name == entry.name) return true;
  }
  return false;
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PASSES_FIRST_PASSES_H_
