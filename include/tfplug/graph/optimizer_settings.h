// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_
#define TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_

#include "tfplug/abi/tp_optimizer_configs.h"

namespace tfplug {

// What a plug-in thinks of one of TensorFlow's own rewriters, for each graph
// that has a node on the plug-in's device type. It can forbid, not demand: a
// rewriter runs if the user's configuration wants it and no plug-in says kOff.
enum class Toggle {
  kDefault = capi::TF_TriState_Default,
  kOff = capi::TF_TriState_Off,
  kOn = capi::TF_TriState_On,
};

// TP_OptimizerConfigs, and what tfplug does besides. Of a Toggle that is left
// at kDefault TensorFlow makes kOn, except where the comment says otherwise.
// What keep_to_own_kernels turns off, it finds among those at kDefault.
struct OptimizerSettings {
  // ---- TensorFlow's rewriters: kDefault lets them run, and users have them on

  // Keras' layers' choice of an implementation by device.
  Toggle implementation_selector = Toggle::kDefault;
  // Inlining and specialization of functions.
  Toggle function_optimization = Toggle::kDefault;
  // Equal nodes become one. Runs only where arithmetic_optimization does.
  Toggle common_subgraph_elimination = Toggle::kDefault;
  // Sums to AddN, x * x to Square, 1 / Sqrt to Rsqrt and the like.
  Toggle arithmetic_optimization = Toggle::kDefault;
  // Runs, on the CPU, what depends on constants only.
  Toggle constant_folding = Toggle::kDefault;
  // Computations with shapes.
  Toggle shape_optimization = Toggle::kDefault;
  // NHWC to NCHW and back, on GPUs.
  Toggle layout_optimizer = Toggle::kDefault;
  // Fusion to ops like _FusedMatMul, on CPUs and GPUs.
  Toggle remapping = Toggle::kDefault;
  // Loop invariants and dead branches.
  Toggle loop_optimization = Toggle::kDefault;
  // Control edges.
  Toggle dependency_optimization = Toggle::kDefault;
  // Recomputation and swapping.
  Toggle memory_optimization = Toggle::kDefault;

  // ---- kDefault lets them run, but users have them off: nothing runs

  // Asserts, checks and prints go.
  Toggle debug_stripper = Toggle::kDefault;
  // Casts to half or bfloat16.
  Toggle auto_mixed_precision = Toggle::kDefault;
  // Since 2.10.
  Toggle auto_mixed_precision_onednn_bfloat16 = Toggle::kDefault;
  Toggle auto_mixed_precision_mkl = Toggle::kDefault;
  // Small ops go to the CPU.
  Toggle pin_to_host_optimization = Toggle::kDefault;
  // Copies of the graph for data parallelism.
  Toggle auto_parallel = Toggle::kDefault;
  // Tensors of collective ops side by side.
  Toggle scoped_allocator_optimization = Toggle::kDefault;

  // ---- The other way round: kDefault is kOff

  // kOn turns the pruning of nodes off that nothing needs.
  Toggle disable_model_pruning = Toggle::kDefault;

  // ---- tfplug's own

  // Runs LowerVariableUpdates (passes/lower_variable_updates.h) before the
  // author's passes. Not for the device types CPU and GPU of TensorFlow itself.
  bool lower_variable_updates = true;
  // Turns off what would rewrite to ops that this library has no kernel for:
  // passes/safe_rewriting.h. Only where the library registers kernels for the
  // device type.
  bool keep_to_own_kernels = true;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_
