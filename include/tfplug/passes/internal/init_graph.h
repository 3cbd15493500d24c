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
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/passes/internal/optimizer_table.h"
#include "tfplug/passes/internal/pass_list.h"
#include "tfplug/passes/safe_rewriting.h"

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
  using Passes = internal::PassList<PassTs...>;
  // Called when TensorFlow loads the library, and for each optimization.
  static OptimizerSettings Settings() { return {}; }
};

namespace internal {

inline capi::TP_OptimizerConfigs ToConfigs(const OptimizerSettings& settings) {
  capi::TP_OptimizerConfigs configs = {};
  configs.struct_size = capi::StructInfo<capi::TP_OptimizerConfigs>::kSize;
  const auto set = [](capi::TF_TriState& to, Toggle from) {
    to = static_cast<capi::TF_TriState>(from);
  };
#define TFPLUG_INTERNAL_SET(name) set(configs.name, settings.name)
  TFPLUG_INTERNAL_SET(disable_model_pruning);
  TFPLUG_INTERNAL_SET(implementation_selector);
  TFPLUG_INTERNAL_SET(function_optimization);
  TFPLUG_INTERNAL_SET(common_subgraph_elimination);
  TFPLUG_INTERNAL_SET(arithmetic_optimization);
  TFPLUG_INTERNAL_SET(debug_stripper);
  TFPLUG_INTERNAL_SET(constant_folding);
  TFPLUG_INTERNAL_SET(shape_optimization);
  TFPLUG_INTERNAL_SET(auto_mixed_precision);
  TFPLUG_INTERNAL_SET(auto_mixed_precision_onednn_bfloat16);
  TFPLUG_INTERNAL_SET(auto_mixed_precision_mkl);
  TFPLUG_INTERNAL_SET(pin_to_host_optimization);
  TFPLUG_INTERNAL_SET(layout_optimizer);
  TFPLUG_INTERNAL_SET(remapping);
  TFPLUG_INTERNAL_SET(loop_optimization);
  TFPLUG_INTERNAL_SET(dependency_optimization);
  TFPLUG_INTERNAL_SET(auto_parallel);
  TFPLUG_INTERNAL_SET(memory_optimization);
  TFPLUG_INTERNAL_SET(scoped_allocator_optimization);
#undef TFPLUG_INTERNAL_SET
  return configs;
}

template <class OptimizerT>
struct OptimizerRegistration {
  static_assert(IsDeviceType(OptimizerT::kDeviceType),
                "tfplug: a device type must begin with a capital letter and "
                "consist of capital letters and underscores");
  static_assert(!IsTakenForCpu(OptimizerT::kDeviceType) ||
                    std::string_view(OptimizerT::kDeviceType) == "CPU",
                "tfplug: a plug-in's device type must not contain \"CPU\"; "
                "for TensorFlow's own device, use \"CPU\"");

  // Implements TF_InitGraph: fills the C structs.
  static void InitGraph(capi::TP_OptimizerRegistrationParams* params,
                        capi::TF_Status* status) {
    if (!LoadTensorFlow()) {
      LogError("TF_InitGraph", "no TensorFlow in this process");
      return;
    }
    Guard(status, "TF_InitGraph", [&]() -> absl::Status {
      if (auto s = CheckStruct(*params); !s.ok()) return s;
      if (params->major_version != 0) {
        return absl::FailedPreconditionError(
            "this TensorFlow has version " +
            std::to_string(params->major_version) +
            " of the graph C API, but this plug-in was built for version 0; "
            "rebuild it with a newer tfplug");
      }
      OptimizerSettings settings = OptimizerT::Settings();
      const char* const device_type =
          OptimizerTable<OptimizerT>::kDeviceType.text;
      const KernelSet kernels(device_type);
      if (settings.keep_to_own_kernels && kernels.HasAny()) {
        settings = TurnOffUnsafeRewriters(settings, kernels);
      }
      if (auto s = FillConfigs(params->optimizer_configs, ToConfigs(settings));
          !s.ok()) {
        return s;
      }
      if (auto s = FillOptimizer(params->optimizer); !s.ok()) return s;
      params->device_type = device_type;
      return absl::OkStatus();
    });
  }

 private:
  // TensorFlow 2.10 inserted a field in the middle of the struct.
  static absl::Status FillConfigs(capi::TP_OptimizerConfigs* to,
                                  const capi::TP_OptimizerConfigs& from) {
    if (auto s = CheckStruct(*to); !s.ok()) return s;
    if (FindLayout(*to)->is_prefix) return FillStruct(to, from);
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
    if (auto s = FillStruct(to, ours); !s.ok()) return s;
    if (tensorflow.TF_GetGrapplerItem != nullptr) {
      auto* const old = reinterpret_cast<capi::TP_Optimizer_2_5*>(to);
      capi::CopyTo(*old, ours);
      old->optimize_func = &Table::optimize_func_2_5;
    }
    return absl::OkStatus();
  }
};

}  // namespace internal
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_
