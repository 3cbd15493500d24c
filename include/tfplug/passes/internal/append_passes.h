// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_APPEND_PASSES_H_
#define TFPLUG_PASSES_INTERNAL_APPEND_PASSES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/passes/cast_bool_lists.h"
#include "tfplug/passes/compile_regions.h"
#include "tfplug/passes/copy_on_stream.h"
#include "tfplug/passes/disable_xla.h"
#include "tfplug/passes/fuse_elementwise.h"
#include "tfplug/passes/internal/pass_list.h"
#include "tfplug/passes/internal/pluggable.h"
#include "tfplug/passes/keep_conditions_on_host.h"
#include "tfplug/passes/keep_optionals_on_host.h"
#include "tfplug/passes/keep_to_own_kernels.h"
#include "tfplug/passes/lower_list_gradients.h"
#include "tfplug/passes/lower_variable_updates.h"
#include "tfplug/passes/recompute_loop_values.h"
#include "tfplug/passes/report_fallback.h"
#include "tfplug/passes/reuse_variable_values.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

TFPLUG_SEPARABLE void AppendFirstPasses(
    absl::string_view device_type, const OptimizerSettings& settings,
    std::vector<graph_internal::PassEntry>& entries) {
  if (!IsPluggable(device_type)) return;
  if (settings.disable_xla) entries.push_back(MakePassEntry<DisableXla>());
  if (settings.lower_variable_updates) {
    entries.push_back(MakePassEntry<LowerVariableUpdates>());
  }
  if (settings.keep_to_own_kernels) {
    entries.push_back(MakePassEntry<KeepToOwnKernels>());
  }
  const bool may_shorten_loops =
      KeepConditionsOnHost::IsSafeIn(internal::CurrentRelease());
  if (may_shorten_loops && settings.keep_conditions_on_host) {
    entries.push_back(MakePassEntry<KeepConditionsOnHost>());
  }
  if (may_shorten_loops && settings.keep_optionals_on_host) {
    entries.push_back(MakePassEntry<KeepOptionalsOnHost>());
  }
  if (may_shorten_loops && settings.recompute_loop_values) {
    entries.push_back(MakePassEntry<RecomputeLoopValues>());
  }
}

TFPLUG_SEPARABLE void AppendLastPasses(
    absl::string_view device_type, const OptimizerSettings& settings,
    std::vector<graph_internal::PassEntry>& entries) {
  if (!IsPluggable(device_type)) return;
  if (settings.replace_list_ops) {
    entries.push_back(MakePassEntry<CastBoolLists>());
    entries.push_back(MakePassEntry<LowerListGradients>());
  }
  if (FuseElementwise::IsEnabled(settings.fuse_elementwise)) {
    entries.push_back(MakePassEntry<ReuseVariableValues>());
    entries.push_back(MakePassEntry<FuseElementwise>());
  }
  if (CompileRegions::IsEnabled()) {
    entries.push_back(MakePassEntry<CompileRegions>());
  }
  if (settings.copy_on_stream) entries.push_back(MakePassEntry<CopyOnStream>());
  if (ReportFallback::IsEnabled()) {
    entries.push_back(MakePassEntry<ReportFallback>());
  }
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_APPEND_PASSES_H_
