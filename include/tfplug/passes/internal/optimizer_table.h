// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_
#define TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/status.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/passes/lower_variable_updates.h"
#include "tfplug/passes/report_fallback.h"

namespace tfplug::internal {

// A class's name as it stands in the source: "my_plugin::FuseBiasAdd".
template <class T>
const char* ClassName() {
  // "const char* ...ClassName() [with T = ns::Name]", or "[T = ns::Name]"
  static const std::string* const name = [](std::string text) {
    const size_t begin = text.find("T = ") + 4;
    return new std::string(text, begin,
                           text.find_first_of(";]", begin) - begin);
  }(__PRETTY_FUNCTION__);
  return name->c_str();
}

template <class PassT>
PassEntry MakePassEntry() {
  static_assert(std::is_base_of_v<GraphPass, PassT>,
                "tfplug: a graph pass is a class derived from "
                "tfplug::GraphPass");
  static_assert(!std::is_abstract_v<PassT>,
                "tfplug: this pass does not override Run(Graph&, const "
                "PassContext&); the compiler says so below");
  static_assert(std::is_default_constructible_v<PassT>,
                "tfplug: a graph pass needs a public constructor without "
                "arguments");
  return {ClassName<PassT>(), []() -> std::unique_ptr<GraphPass> {
            return std::make_unique<PassT>();
          }};
}

// Stands behind the last pass where a macro makes the list.
struct EndOfPasses {};

// The classes of an author's passes, in the order in which they run.
template <class... PassTs>
struct PassList {
  static std::vector<PassEntry> Entries() {
    std::vector<PassEntry> entries;
    (Append<PassTs>(entries), ...);
    return entries;
  }

 private:
  template <class PassT>
  static void Append(std::vector<PassEntry>& entries) {
    if constexpr (!std::is_same_v<PassT, EndOfPasses>) {
      entries.push_back(MakePassEntry<PassT>());
    }
  }
};

// Whether a device type is a plug-in's, not one of TensorFlow's own.
inline bool IsPluggable(std::string_view device_type) {
  if (registered_platform.device_type != nullptr &&
      device_type == registered_platform.device_type) {
    return true;
  }
  return device_type != "CPU" && device_type != "GPU" && device_type != "TPU";
}

// TP_Optimizer's functions.
template <class OptimizerT>
struct OptimizerTable {
  static void* create_func() {
    void* made = nullptr;
    GuardOrLog("create_func", [&]() -> absl::Status {
      std::vector<PassEntry> entries;
      if (OptimizerT::Settings().lower_variable_updates &&
          IsPluggable(OptimizerT::kDeviceType)) {
        entries.push_back(MakePassEntry<LowerVariableUpdates>());
      }
      for (const PassEntry& entry : OptimizerT::Passes::Entries()) {
        entries.push_back(entry);
      }
      if (ReportFallback::IsEnabled() && IsPluggable(OptimizerT::kDeviceType)) {
        entries.push_back(MakePassEntry<ReportFallback>());
      }
      made = new Pipeline(OptimizerT::kDeviceType, std::move(entries));
      return absl::OkStatus();
    });
    return made;
  }

  static void optimize_func(void* optimizer, const capi::TF_Buffer* graph,
                            const capi::TF_GrapplerItem* item,
                            capi::TF_Buffer* optimized_graph,
                            capi::TF_Status* status) {
    Guard(status, "optimize_func", [&]() -> absl::Status {
      if (optimizer == nullptr) {
        return absl::FailedPreconditionError(
            "this optimizer could not be made; the log says why");
      }
      return static_cast<Pipeline*>(optimizer)->Optimize(
          absl::string_view(static_cast<const char*>(graph->data),
                            graph->length),
          item, optimized_graph);
    });
  }

  // As 2.5 calls it: the item has to be asked for.
  static void optimize_func_2_5(void* optimizer, capi::TF_Buffer* graph,
                                capi::TF_Buffer* optimized_graph,
                                capi::TF_Status* status) {
    const capi::TF_GrapplerItem* const item =
        tensorflow.TF_GetGrapplerItem(graph, status);
    if (tensorflow.TF_GetCode(status) != capi::TF_OK) return;
    optimize_func(optimizer, graph, item, optimized_graph, status);
  }

  static void destroy_func(void* optimizer) {
    GuardOrLog("destroy_func", [&] {
      delete static_cast<Pipeline*>(optimizer);
      return absl::OkStatus();
    });
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_PASSES_INTERNAL_OPTIMIZER_TABLE_H_
