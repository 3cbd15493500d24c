// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_
#define TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/separate.h"
#include "tfplug/base/status.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/passes/default_passes.h"
#include "tfplug/passes/internal/optimizer_class.h"
#include "tfplug/passes/internal/shared_settings.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

TFPLUG_SEPARABLE void* CreateOptimizer(const OptimizerClass& optimizer_class) {
  void* optimizer = nullptr;
  internal::GuardOrLog("create_func", [&]() -> absl::Status {
    const char* const device_type = optimizer_class.device_type();
    WarnOfLaterSettings(device_type);
    std::vector<graph_internal::PassEntry> entries;
    AppendFirstPasses(device_type, optimizer_class.settings(), entries);
    optimizer_class.append_passes(entries);
    AppendLastPasses(device_type, optimizer_class.settings(), entries);
    optimizer = new graph_internal::Pipeline(device_type, std::move(entries));
    return absl::OkStatus();
  });
  return optimizer;
}

// The functions of TP_Optimizer that are the same for every class.
struct OptimizerTable {
  static void optimize_func(void* optimizer, const capi::TF_Buffer* graph,
                            const capi::TF_GrapplerItem* item,
                            capi::TF_Buffer* optimized_graph,
                            capi::TF_Status* status) {
    internal::Guard(status, "optimize_func", [&]() -> absl::Status {
      if (optimizer == nullptr) {
        return absl::FailedPreconditionError(
            "the graph optimizer could not be constructed; see the log for "
            "the reason");
      }
      return static_cast<graph_internal::Pipeline*>(optimizer)->Optimize(
          absl::string_view(static_cast<const char*>(graph->data),
                            graph->length),
          item, optimized_graph);
    });
  }

  // optimize_func as TensorFlow 2.5 calls it, without the item.
  static void optimize_func_2_5(void* optimizer, capi::TF_Buffer* graph,
                                capi::TF_Buffer* optimized_graph,
                                capi::TF_Status* status) {
    const capi::TF_GrapplerItem* const item =
        internal::tensorflow.TF_GetGrapplerItem(graph, status);
    if (internal::tensorflow.TF_GetCode(status) != capi::TF_OK) return;
    optimize_func(optimizer, graph, item, optimized_graph, status);
  }

  static void destroy_func(void* optimizer) {
    internal::GuardOrLog("destroy_func", [&] {
      delete static_cast<graph_internal::Pipeline*>(optimizer);
      return absl::OkStatus();
    });
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_
