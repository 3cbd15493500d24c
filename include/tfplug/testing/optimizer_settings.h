// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_OPTIMIZER_SETTINGS_H_
#define TFPLUG_TESTING_OPTIMIZER_SETTINGS_H_

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/graph/internal/toggle_fields.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The rewriters of TensorFlow that the optimizers of plug-ins turn off, for a
// graph with nodes on the devices of each. Each name is a field of
// TP_OptimizerConfigs.
struct MergedSettings {
  std::vector<std::string> off;
  // Whether a plug-in has turned off the removal of unused nodes.
  bool keeps_unused_nodes = false;
  // The fields in which plug-ins differ. TensorFlow warns of them.
  std::vector<std::string> conflicts;
};

// Merges settings as TensorFlow does: what one plug-in turns off is off; On and
// Default are the same. Without `use_plugin_optimizers`, an option of the user's,
// nothing is off and no optimizer runs.
//
// ABORTED if plug-ins differ: TensorFlow 2.10 to 2.22 pads the names of the
// settings in its warning, and throws std::length_error for one that is longer
// than 32 letters.
inline absl::StatusOr<MergedSettings> MergeSettings(
    const std::vector<capi::TP_OptimizerConfigs>& configs,
    bool use_plugin_optimizers = true) {
  MergedSettings merged;
  constexpr size_t kWidth = 32;
  bool is_too_long = false;
  for (const auto& toggle : graph_internal::kToggleFields) {
    size_t count = 0;
    for (const capi::TP_OptimizerConfigs& each : configs) {
      if (use_plugin_optimizers && toggle.IsEffective(each)) ++count;
    }
    is_too_long = is_too_long || std::strlen(toggle.name) > kWidth;
    if (count == 0) continue;
    if (count < configs.size()) merged.conflicts.push_back(toggle.name);
    if (toggle.field == &capi::TP_OptimizerConfigs::disable_model_pruning) {
      merged.keeps_unused_nodes = true;
    } else {
      merged.off.push_back(toggle.name);
    }
  }
  if (merged.conflicts.empty() || !is_too_long) return merged;
  return absl::AbortedError(absl::StrCat(
      "the graph optimizers of plug-ins differ in ",
      absl::StrJoin(merged.conflicts, ", "),
      ": TensorFlow 2.10 to 2.22 throw std::length_error while they format the "
      "warning, and the process ends. Give all plug-ins the same settings"));
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_OPTIMIZER_SETTINGS_H_
