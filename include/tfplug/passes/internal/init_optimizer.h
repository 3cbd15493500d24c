// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_INIT_OPTIMIZER_H_
#define TFPLUG_PASSES_INTERNAL_INIT_OPTIMIZER_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/abi/tp_optimizer_registration_params.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/toggle_fields.h"
#include "tfplug/passes/internal/optimizer_class.h"
#include "tfplug/passes/internal/optimizer_table.h"
#include "tfplug/passes/internal/pluggable.h"
#include "tfplug/passes/internal/python_jit.h"
#include "tfplug/passes/internal/shared_settings.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// TensorFlow 2.10 inserted a field in the middle of the struct.
inline absl::Status FillConfigs(capi::TP_OptimizerConfigs* to,
                                const capi::TP_OptimizerConfigs& from) {
  if (auto s = internal::CheckStruct(*to); !s.ok()) return s;
  if (internal::FindLayout(*to)->is_prefix)
    return internal::FillStruct(to, from);
  capi::CopyTo(*reinterpret_cast<capi::TP_OptimizerConfigs_2_5*>(to), from);
  return absl::OkStatus();
}

// TensorFlow 2.5 calls optimize_func with other arguments.
inline absl::Status FillOptimizer(const OptimizerClass& optimizer_class,
                                  capi::TP_Optimizer* to) {
  capi::TP_Optimizer ours = {};
  ours.struct_size = capi::StructInfo<capi::TP_Optimizer>::kSize;
  ours.create_func = optimizer_class.create_func;
  ours.optimize_func = &OptimizerTable::optimize_func;
  ours.destroy_func = &OptimizerTable::destroy_func;
  if (auto s = internal::FillStruct(to, ours); !s.ok()) return s;
  if (internal::tensorflow.TF_GetGrapplerItem != nullptr) {
    auto* const old = reinterpret_cast<capi::TP_Optimizer_2_5*>(to);
    capi::CopyTo(*old, ours);
    old->optimize_func = &OptimizerTable::optimize_func_2_5;
  }
  return absl::OkStatus();
}

TFPLUG_SEPARABLE void InitGraph(const OptimizerClass& optimizer_class,
                                capi::TP_OptimizerRegistrationParams* params,
                                capi::TF_Status* status) {
  if (!internal::LoadTensorFlow()) {
    internal::LogError("TF_InitGraph",
                       "found no TensorFlow in this process; load the plug-in "
                       "through TensorFlow");
    return;
  }
  internal::Guard(status, "TF_InitGraph", [&]() -> absl::Status {
    if (auto s = internal::CheckStruct(*params); !s.ok()) return s;
    if (params->major_version != 0) {
      return absl::FailedPreconditionError(
          "this TensorFlow has version " +
          std::to_string(params->major_version) +
          " of the graph C API, but this plug-in was built for version 0; "
          "rebuild it with a newer tfplug");
    }
    const char* const device_type = optimizer_class.device_type();
    params->device_type = device_type;
    const OptimizerSettings settings = optimizer_class.settings();
    const auto wanted = graph_internal::ToConfigs(settings);
    if (AnswerQuery(params, wanted)) return absl::OkStatus();
    if (auto s = FillOptimizer(optimizer_class, params->optimizer); !s.ok())
      return s;
    if (settings.disable_xla && IsPluggable(device_type)) {
      const absl::Status s = DisableXlaInPython(device_type);
      if (!s.ok()) internal::LogError("TF_InitGraph", s);
    }
    return FillConfigs(params->optimizer_configs,
                       AgreeOnSettings(device_type, wanted));
  });
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_INIT_OPTIMIZER_H_
