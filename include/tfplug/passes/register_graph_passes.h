// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_
#define TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_

#include "tfplug/passes/internal/init_graph.h"

// TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", FuseBiasAdd, DropNoise);
//
// Registers passes for graphs that have a node on a device of this type, which
// may be this library's, another library's, or "CPU". They run after
// TensorFlow's rewriters, in this order. The passes of passes/default_passes.h
// run before and after them. To register only those:
//
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE");
//
// The device type is a string literal, that of Platform::kType.
//
// Use the macro at namespace scope, once in a library. TensorFlow aborts if two
// libraries register the same device type. The macro defines TF_InitGraph and,
// under the name of RFC 318, TF_InitGraphPlugin.
#define TFPLUG_REGISTER_GRAPH_PASSES(...)                           \
  struct __attribute__((visibility("hidden"))) TfplugGraphOptimizer \
      : ::tfplug::GraphOptimizer<TFPLUG_INTERNAL_PASSES(            \
            __VA_ARGS__, ::tfplug::passes_internal::EndOfPasses)> { \
    static constexpr char kDeviceType[] =                           \
        TFPLUG_INTERNAL_DEVICE_TYPE(__VA_ARGS__, );                 \
  };                                                                \
  TFPLUG_REGISTER_GRAPH_OPTIMIZER(TfplugGraphOptimizer)
#define TFPLUG_INTERNAL_DEVICE_TYPE(device_type, ...) device_type
#define TFPLUG_INTERNAL_PASSES(device_type, ...) __VA_ARGS__

// Does the same as TFPLUG_REGISTER_GRAPH_PASSES for a class derived from
// tfplug::GraphOptimizer, which also has settings.
#define TFPLUG_REGISTER_GRAPH_OPTIMIZER(...)                                  \
  struct TFPLUG_REGISTER_GRAPH_PASSES_is_allowed_only_once_in_a_library {};   \
  extern "C" __attribute__((visibility("default"))) void TF_InitGraph(        \
      ::tfplug::capi::TP_OptimizerRegistrationParams* params,                 \
      ::tfplug::capi::TF_Status* status) {                                    \
    ::tfplug::passes_internal::OptimizerRegistration<__VA_ARGS__>::InitGraph( \
        params, status);                                                      \
  }                                                                           \
  extern "C" __attribute__((visibility("default"))) void TF_InitGraphPlugin(  \
      ::tfplug::capi::TP_OptimizerRegistrationParams* params,                 \
      ::tfplug::capi::TF_Status* status) {                                    \
    TF_InitGraph(params, status);                                             \
  }                                                                           \
  static_assert(true, "")

#endif  // TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_
