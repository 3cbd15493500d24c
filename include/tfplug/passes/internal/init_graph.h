// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_
#define TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/abi/tp_optimizer_registration_params.h"
#include "tfplug/base/internal/device_type.h"
#include "tfplug/base/internal/static_text.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/type_setting.h"
#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/passes/internal/optimizer_class.h"
#include "tfplug/passes/internal/pass_list.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/passes/internal/init_optimizer.h"
#endif

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

// True if OptimizerT is publicly derived from GraphOptimizer.
template <class... PassTs>
std::true_type IsOptimizer(const GraphOptimizer<PassTs...>&);
std::false_type IsOptimizer(...);
template <class OptimizerT>
inline constexpr bool kIsOptimizer =
    decltype(IsOptimizer(std::declval<const OptimizerT&>()))::value;

// Returns whether no pass of the optimizer has this mistake.
template <class OptimizerT>
constexpr bool IsFree(PassMistake mistake) {
  if constexpr (kIsOptimizer<OptimizerT>) {
    return !OptimizerT::Passes::Has(mistake);
  } else {
    return true;
  }
}

// Implements TF_InitGraph: fills the C structs.
TFPLUG_SEPARABLE void InitGraph(const OptimizerClass& optimizer_class,
                                capi::TP_OptimizerRegistrationParams* params,
                                capi::TF_Status* status);

// Implements create_func: constructs the pipeline of the default passes and the
// author's.
TFPLUG_SEPARABLE void* CreateOptimizer(const OptimizerClass& optimizer_class);

template <class OptimizerT>
struct OptimizerRegistration {
  // Implements TF_InitGraph: fills the C structs.
  static void InitGraph(capi::TP_OptimizerRegistrationParams* params,
                        capi::TF_Status* status) {
    passes_internal::InitGraph(kClass, params, status);
  }

 private:
  static constexpr auto kDeviceType =
      internal::CopyText<std::string_view(OptimizerT::kDeviceType).size()>(
          OptimizerT::kDeviceType);
  static const char* device_type() {
    return internal::RegisteredType(kDeviceType.text);
  }
  static void* create_func() { return CreateOptimizer(kClass); }

  static constexpr OptimizerClass kClass = {&device_type, &OptimizerT::Settings,
                                            &OptimizerT::Passes::AppendTo,
                                            &create_func};
};

}  // namespace passes_internal
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_INIT_GRAPH_H_
