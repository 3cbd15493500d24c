// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_
#define TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/abi/tp_optimizer_registration_params.h"
#include "tfplug/base/internal/device_type.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/passes/default_passes.h"
#include "tfplug/passes/internal/optimizer_table.h"
#include "tfplug/passes/internal/pass_list.h"
#include "tfplug/passes/internal/python_jit.h"
#include "tfplug/passes/internal/shared_settings.h"
#include "tfplug/passes/internal/toggle_fields.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The base class for TFPLUG_REGISTER_GRAPH_OPTIMIZER. A derived class defines
// kDeviceType, and Settings() to change the defaults.
//
//   struct Optimizer : tfplug::GraphOptimizer<FuseBiasAdd, DropNoise> {
//     static constexpr char kDeviceType[] = "MY_DEVICE";
//     static tfplug::OptimizerSettings Settings() {
//       tfplug::OptimizerSettings settings;
//       settings.constant_folding = tfplug::Toggle::kOff;
//       return settings;
//     }
//   };
template <class... PassTs>
struct GraphOptimizer {
  using Passes = passes_internal::PassList<PassTs...>;
  // Is called when TensorFlow loads the library, and for each optimization.
  static OptimizerSettings Settings() { return {}; }
};

namespace passes_internal {

template <class OptimizerT>
struct OptimizerRegistration {
  static_assert(internal::IsDeviceType(OptimizerT::kDeviceType),
                "tfplug: a device type must begin with a capital letter and "
                "consist of capital letters and underscores");
  static_assert(!internal::IsTakenForCpu(OptimizerT::kDeviceType) ||
                    std::string_view(OptimizerT::kDeviceType) == "CPU",
                "tfplug: a plug-in's device type must not contain \"CPU\"; "
                "for TensorFlow's own device, use \"CPU\"");

  // Implements TF_InitGraph: fills the C structs.
  static void InitGraph(capi::TP_OptimizerRegistrationParams* params,
                        capi::TF_Status* status) {
    if (!internal::LoadTensorFlow()) {
      internal::LogError(
          "TF_InitGraph",
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
      const char* const device_type = OptimizerTable<OptimizerT>::device_type();
      params->device_type = device_type;
      const OptimizerSettings settings = OptimizerT::Settings();
      const auto wanted = ToConfigs(settings);
      if (AnswerQuery(params, wanted)) return absl::OkStatus();
      if (auto s = FillOptimizer(params->optimizer); !s.ok()) return s;
      if (settings.disable_xla && IsPluggable(device_type)) {
        const absl::Status s = DisableXlaInPython(device_type);
        if (!s.ok()) internal::LogError("TF_InitGraph", s);
      }
      return FillConfigs(params->optimizer_configs,
                         AgreeOnSettings(device_type, wanted));
    });
  }

 private:
  // TensorFlow 2.10 inserted a field in the middle of the struct.
  static absl::Status FillConfigs(capi::TP_OptimizerConfigs* to,
                                  const capi::TP_OptimizerConfigs& from) {
    if (auto s = internal::CheckStruct(*to); !s.ok()) return s;
    if (internal::FindLayout(*to)->is_prefix)
      return internal::FillStruct(to, from);
    capi::CopyTo(*reinterpret_cast<capi::TP_OptimizerConfigs_2_5*>(to), from);
    return absl::OkStatus();
  }

  // TensorFlow 2.5 calls optimize_func with other arguments.
  static absl::Status FillOptimizer(capi::TP_Optimizer* to) {
    using Table = OptimizerTable<OptimizerT>;
    capi::TP_Optimizer ours = {};
    ours.struct_size = capi::StructInfo<capi::TP_Optimizer>::kSize;
    ours.create_func = &Table::create_func;
    ours.optimize_func = &Table::optimize_func;
    ours.destroy_func = &Table::destroy_func;
    if (auto s = internal::FillStruct(to, ours); !s.ok()) return s;
    if (internal::tensorflow.TF_GetGrapplerItem != nullptr) {
      auto* const old = reinterpret_cast<capi::TP_Optimizer_2_5*>(to);
      capi::CopyTo(*old, ours);
      old->optimize_func = &Table::optimize_func_2_5;
    }
    return absl::OkStatus();
  }
};

}  // namespace passes_internal
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_
