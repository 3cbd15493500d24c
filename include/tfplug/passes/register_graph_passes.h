// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_
#define TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_

#include "tfplug/passes/internal/init_graph.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Tell a constant from a class: of IsConstant<bool(*(x))>(), the argument is the
// first character of x or the type of a function that takes an x.
template <bool>
constexpr bool IsConstant() {
  return true;
}
template <class>
constexpr bool IsConstant() {
  return false;
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

// TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", FuseBiasAdd, DropNoise);
//
// Registers passes for graphs that have a node on a device of this type, which
// may be this library's, another library's, or "CPU". They run after
// TensorFlow's rewriters, in this order. The passes of passes/default_passes.h
// run before and after them. To register only those:
//
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE");
//
// The device type is a constant: a string literal, or Platform::kType.
//
// Use the macro at namespace scope, once in a library. TensorFlow aborts if two
// libraries register the same device type. The macro defines TF_InitGraph and,
// under the name of RFC 318, TF_InitGraphPlugin.
#define TFPLUG_REGISTER_GRAPH_PASSES(...)                                     \
  static_assert(::tfplug::passes_internal::IsConstant<bool(                   \
                    *(TFPLUG_INTERNAL_DEVICE_TYPE(__VA_ARGS__, )))>(),        \
                "tfplug: the first argument of TFPLUG_REGISTER_GRAPH_PASSES " \
                "is a device type, "                                          \
                "not a class: write Platform::kType or \"MY_DEVICE\" before " \
                "the passes");                                                \
  struct __attribute__((visibility("hidden"))) TfplugGraphOptimizer           \
      : ::tfplug::GraphOptimizer<TFPLUG_INTERNAL_PASSES(                      \
            __VA_ARGS__, ::tfplug::passes_internal::EndOfPasses)> {           \
    static constexpr const char* kDeviceType =                                \
        TFPLUG_INTERNAL_DEVICE_TYPE(__VA_ARGS__, );                           \
  };                                                                          \
  TFPLUG_REGISTER_GRAPH_OPTIMIZER(TfplugGraphOptimizer)
#define TFPLUG_INTERNAL_DEVICE_TYPE(device_type, ...) device_type
#define TFPLUG_INTERNAL_PASSES(device_type, ...) __VA_ARGS__

// Does the same as TFPLUG_REGISTER_GRAPH_PASSES for a class derived from
// tfplug::GraphOptimizer, which also has settings.
#define TFPLUG_REGISTER_GRAPH_OPTIMIZER(...)                              \
  struct TFPLUG_REGISTER_GRAPH_PASSES_is_allowed_only_once_in_a_library { \
    using RegisteredOptimizer = __VA_ARGS__;                              \
  };                                                                      \
  TFPLUG_INTERNAL_OPTIMIZER(                                              \
      TFPLUG_REGISTER_GRAPH_PASSES_is_allowed_only_once_in_a_library::    \
          RegisteredOptimizer)
#define TFPLUG_INTERNAL_OPTIMIZER(optimizer)                                 \
  static_assert(::tfplug::passes_internal::kIsOptimizer<optimizer>,          \
                "tfplug: TFPLUG_REGISTER_GRAPH_OPTIMIZER takes a class "     \
                "publicly derived from tfplug::GraphOptimizer");             \
  TFPLUG_INTERNAL_DEVICE_TYPE_MISTAKES(TFPLUG_INTERNAL_REFUSE_OPTIMIZER,     \
                                       optimizer)                            \
  TFPLUG_INTERNAL_REFUSE_PASS(                                               \
      optimizer, kBase,                                                      \
      "tfplug: a graph pass must be a class publicly derived from "          \
      "tfplug::GraphPass")                                                   \
  TFPLUG_INTERNAL_REFUSE_PASS(                                               \
      optimizer, kAbstract,                                                  \
      "tfplug: a pass does not override Run(Graph&, const PassContext&); "   \
      "the compiler names its class below")                                  \
  TFPLUG_INTERNAL_REFUSE_PASS(                                               \
      optimizer, kConstructor,                                               \
      "tfplug: a graph pass needs a public constructor without arguments")   \
  extern "C" __attribute__((visibility("default"))) void TF_InitGraph(       \
      ::tfplug::capi::TP_OptimizerRegistrationParams* params,                \
      ::tfplug::capi::TF_Status* status) {                                   \
    ::tfplug::passes_internal::OptimizerRegistration<optimizer>::InitGraph(  \
        params, status);                                                     \
  }                                                                          \
  extern "C" __attribute__((visibility("default"))) void TF_InitGraphPlugin( \
      ::tfplug::capi::TP_OptimizerRegistrationParams* params,                \
      ::tfplug::capi::TF_Status* status) {                                   \
    TF_InitGraph(params, status);                                            \
  }                                                                          \
  static_assert(true, "")
#define TFPLUG_INTERNAL_REFUSE_OPTIMIZER(type, mistake, text)       \
  static_assert(::tfplug::internal::kDeviceTypeMistake<type> !=     \
                    ::tfplug::internal::DeviceTypeMistake::mistake, \
                text);
#define TFPLUG_INTERNAL_REFUSE_PASS(optimizer, mistake, text)         \
  static_assert(::tfplug::passes_internal::IsFree<optimizer>(         \
                    ::tfplug::passes_internal::PassMistake::mistake), \
                text);

#endif  // TFPLUG_PASSES_REGISTER_GRAPH_PASSES_H_
