// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_DEFAULT_PASSES_H_
#define TFPLUG_PASSES_DEFAULT_PASSES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/graph/optimizer_settings.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/passes/internal/append_passes.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Appends the passes that run before the author's own, unless a setting turns
// them off. Appends none for TensorFlow's own device types.
TFPLUG_SEPARABLE void AppendFirstPasses(
    absl::string_view device_type, const OptimizerSettings& settings,
    std::vector<graph_internal::PassEntry>& entries);

// Appends the passes that run after the author's own.
TFPLUG_SEPARABLE void AppendLastPasses(
    absl::string_view device_type, const OptimizerSettings& settings,
    std::vector<graph_internal::PassEntry>& entries);

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_DEFAULT_PASSES_H_
