// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PASSES_FIRST_PASSES_H_
#define TFPLUG_TESTS_PASSES_FIRST_PASSES_H_

#include <doctest/doctest.h>
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

// Checks that the pass runs if the setting is on, except in 2.17.
inline void CheckFirstExceptIn217(const std::string& name,
                                  bool OptimizerSettings::*setting) {
  OptimizerSettings settings;
  CHECK(IsFirstPass(name, settings, {2, 16}));
  CHECK_FALSE(IsFirstPass(name, settings, {2, 17}));
  CHECK(IsFirstPass(name, settings, {2, 18}));
  settings.*setting = false;
  CHECK_FALSE(IsFirstPass(name, settings, {2, 18}));
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PASSES_FIRST_PASSES_H_
