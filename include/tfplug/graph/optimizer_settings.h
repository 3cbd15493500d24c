// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_
#define TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_

#include "tfplug/abi/tp_optimizer_configs.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A plug-in's setting for one of TensorFlow's rewriters. It applies to each
// graph with a node on the plug-in's device type. A rewriter runs if the user's
// configuration enables it and no plug-in turns it off.
enum class Toggle {
  kDefault = capi::TF_TriState_Default,
  kOff = capi::TF_TriState_Off,
  kOn = capi::TF_TriState_On,
};

// The fields of TP_OptimizerConfigs, and tfplug's own settings. TensorFlow
// treats kDefault as kOn, except where a comment states otherwise.
//
// All plug-ins in a process must have the same toggles: TensorFlow crashes on a
// graph with nodes on the devices of two plug-ins that differ. A library with
// tfplug therefore adapts to the other plug-ins in the process. A toggle that
// is set here and has to be changed is reported in the log. Leave toggles at
// kDefault if you can.
struct OptimizerSettings {
  // ---- Rewriters that the user's configuration enables by default

  // Selects the implementation of Keras layers by device.
  Toggle implementation_selector = Toggle::kDefault;
  // Inlines and specializes functions.
  Toggle function_optimization = Toggle::kDefault;
  // Merges equal nodes. Runs only if arithmetic_optimization runs.
  Toggle common_subgraph_elimination = Toggle::kDefault;
  // Rewrites sums to AddN, x * x to Square, 1 / Sqrt to Rsqrt and so on.
  Toggle arithmetic_optimization = Toggle::kDefault;
  // Evaluates nodes that depend only on constants, on the CPU.
  Toggle constant_folding = Toggle::kDefault;
  // Simplifies computations with shapes.
  Toggle shape_optimization = Toggle::kDefault;
  // Converts NHWC to NCHW and back, on GPUs.
  Toggle layout_optimizer = Toggle::kDefault;
  // Fuses nodes to ops like _FusedMatMul, on CPUs and GPUs.
  Toggle remapping = Toggle::kDefault;
  // Moves loop invariants and removes dead branches.
  Toggle loop_optimization = Toggle::kDefault;
  // Removes redundant control edges.
  Toggle dependency_optimization = Toggle::kDefault;
  // Inserts recomputation and swapping.
  Toggle memory_optimization = Toggle::kDefault;

  // ---- Rewriters that the user's configuration disables by default

  // Removes asserts, checks and prints.
  Toggle debug_stripper = Toggle::kDefault;
  // Inserts casts to half.
  Toggle auto_mixed_precision = Toggle::kDefault;
  // Inserts casts to bfloat16. Since TensorFlow 2.10.
  Toggle auto_mixed_precision_onednn_bfloat16 = Toggle::kDefault;
  // The older name of auto_mixed_precision_onednn_bfloat16.
  Toggle auto_mixed_precision_mkl = Toggle::kDefault;
  // Moves small ops to the CPU.
  Toggle pin_to_host_optimization = Toggle::kDefault;
  // Replicates the graph for data parallelism.
  Toggle auto_parallel = Toggle::kDefault;
  // Allocates the tensors of collective ops contiguously.
  Toggle scoped_allocator_optimization = Toggle::kDefault;

  // ---- A toggle for which kDefault means kOff

  // kOn disables the removal of nodes that no result depends on.
  Toggle disable_model_pruning = Toggle::kDefault;

  // ---- Settings of tfplug

  // Runs LowerVariableUpdates (passes/lower_variable_updates.h) before the
  // author's passes. Has no effect for TensorFlow's own device types (CPU, GPU,
  // TPU).
  bool lower_variable_updates = true;
  // Runs DisableXla (passes/disable_xla.h) before the author's passes, and
  // wraps tf.function in Python likewise. Turn it off only if XLA has a
  // compiler for the device. Has no effect for TensorFlow's own device types
  // (CPU, GPU, TPU).
  bool disable_xla = true;
  // Runs KeepToOwnKernels (passes/keep_to_own_kernels.h) before the author's
  // passes: replaces ops that TensorFlow's rewriters insert and for which this
  // library has no kernel. Has no effect for TensorFlow's own device types
  // (CPU, GPU, TPU), and if the library registers no kernels for the device
  // type.
  bool keep_to_own_kernels = true;
  // Runs FuseElementwise (passes/fuse_elementwise.h) after the author's passes.
  // The environment variable TFPLUG_FUSION=0 or 1 overrides it. Has no effect
  // for TensorFlow's own device types (CPU, GPU, TPU), and if the library's
  // backend has no FusedMapOps.
  bool fuse_elementwise = true;
  // Runs KeepConditionsOnHost (passes/keep_conditions_on_host.h) before the
  // author's passes: the conditions of loops are computed on the host. Has no
  // effect for TensorFlow's own device types (CPU, GPU, TPU), and if the
  // library has no backend.
  bool keep_conditions_on_host = true;
  // Runs KeepOptionalsOnHost (passes/keep_optionals_on_host.h) before the
  // author's passes: loops over datasets do not wait for the device in each
  // iteration. Has no effect for TensorFlow's own device types (CPU, GPU, TPU).
  bool keep_optionals_on_host = true;
  // Runs RecomputeLoopValues (passes/recompute_loop_values.h) before the
  // author's passes: the gradient of a loop computes the loop's counter instead
  // of reading it from a list on the device. Has no effect for TensorFlow's own
  // device types (CPU, GPU, TPU).
  bool recompute_loop_values = true;
  // Runs CastBoolLists (passes/cast_bool_lists.h) and LowerListGradients
  // (passes/lower_list_gradients.h) after the author's passes: loops over lists
  // of tensors, and their gradients, run on the device. Has no effect for
  // TensorFlow's own device types (CPU, GPU, TPU).
  bool replace_list_ops = true;
  // Runs CopyOnStream (passes/copy_on_stream.h) last: tensors are copied between
  // the CPU and the device on the stream of the kernels. Has no effect for
  // TensorFlow's own device types (CPU, GPU, TPU), and if the library's backend
  // has no StreamCopyOps.
  bool copy_on_stream = true;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_OPTIMIZER_SETTINGS_H_
