// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_TOGGLE_FIELDS_H_
#define TFPLUG_GRAPH_INTERNAL_TOGGLE_FIELDS_H_

#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/graph/optimizer_settings.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// A toggle of OptimizerSettings and the field of TP_OptimizerConfigs with the
// same name.
struct ToggleField {
  const char* name;
  Toggle OptimizerSettings::*setting;
  capi::TF_TriState capi::TP_OptimizerConfigs::*field;

  // Returns the value that changes TensorFlow's behavior; it treats the other
  // two as equal.
  capi::TF_TriState EffectiveValue() const {
    return field == &capi::TP_OptimizerConfigs::disable_model_pruning
               ? capi::TF_TriState_On
               : capi::TF_TriState_Off;
  }
  bool IsEffective(const capi::TP_OptimizerConfigs& configs) const {
    return configs.*field == EffectiveValue();
  }
};

inline constexpr ToggleField kToggleFields[] = {
#define TFPLUG_INTERNAL_TOGGLE(name) \
  { #name, &OptimizerSettings::name, &capi::TP_OptimizerConfigs::name }
    TFPLUG_INTERNAL_TOGGLE(disable_model_pruning),
    TFPLUG_INTERNAL_TOGGLE(implementation_selector),
    TFPLUG_INTERNAL_TOGGLE(function_optimization),
    TFPLUG_INTERNAL_TOGGLE(common_subgraph_elimination),
    TFPLUG_INTERNAL_TOGGLE(arithmetic_optimization),
    TFPLUG_INTERNAL_TOGGLE(debug_stripper),
    TFPLUG_INTERNAL_TOGGLE(constant_folding),
    TFPLUG_INTERNAL_TOGGLE(shape_optimization),
    TFPLUG_INTERNAL_TOGGLE(auto_mixed_precision),
    TFPLUG_INTERNAL_TOGGLE(auto_mixed_precision_onednn_bfloat16),
    TFPLUG_INTERNAL_TOGGLE(auto_mixed_precision_mkl),
    TFPLUG_INTERNAL_TOGGLE(pin_to_host_optimization),
    TFPLUG_INTERNAL_TOGGLE(layout_optimizer),
    TFPLUG_INTERNAL_TOGGLE(remapping),
    TFPLUG_INTERNAL_TOGGLE(loop_optimization),
    TFPLUG_INTERNAL_TOGGLE(dependency_optimization),
    TFPLUG_INTERNAL_TOGGLE(auto_parallel),
    TFPLUG_INTERNAL_TOGGLE(memory_optimization),
    TFPLUG_INTERNAL_TOGGLE(scoped_allocator_optimization),
#undef TFPLUG_INTERNAL_TOGGLE
};

inline capi::TP_OptimizerConfigs ToConfigs(const OptimizerSettings& settings) {
  capi::TP_OptimizerConfigs configs = {};
  configs.struct_size = capi::StructInfo<capi::TP_OptimizerConfigs>::kSize;
  for (const ToggleField& toggle : kToggleFields) {
    configs.*toggle.field =
        static_cast<capi::TF_TriState>(settings.*toggle.setting);
  }
  return configs;
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_TOGGLE_FIELDS_H_
