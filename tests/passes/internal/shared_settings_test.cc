// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/internal/shared_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "leak_checked_fake.h"
#include "tfplug/graph_pass.h"

namespace tfplug::shared_settings_test {
namespace {

using passes_internal::MergeSettings;
using passes_internal::OtherSettings;

// Settings with `remapping`, which TensorFlow enables by default.
capi::TP_OptimizerConfigs Remapping(Toggle toggle) {
  OptimizerSettings settings;
  settings.remapping = toggle;
  return graph_internal::ToConfigs(settings);
}
capi::TP_OptimizerConfigs NoPruning(Toggle toggle) {
  OptimizerSettings settings;
  settings.disable_model_pruning = toggle;
  return graph_internal::ToConfigs(settings);
}

OtherSettings Fixed(const capi::TP_OptimizerConfigs& configs) {
  return {"OTHER", "/lib/other.so", configs, true};
}
OtherSettings Adaptive(const capi::TP_OptimizerConfigs& configs) {
  return {"OTHER", "/lib/other.so", configs, false};
}

// Returns the merged settings. `num_refused`: the expected number of messages.
capi::TP_OptimizerConfigs Merge(const capi::TP_OptimizerConfigs& wanted,
                                const std::vector<OtherSettings>& others,
                                size_t num_refused) {
  std::vector<std::string> refused;
  const auto merged = MergeSettings("SIM", wanted, others, refused);
  CHECK(refused.size() == num_refused);
  return merged;
}

constexpr auto kDefault = Toggle::kDefault;
constexpr auto kOff = Toggle::kOff;
constexpr auto kOn = Toggle::kOn;

TEST_CASE("alone, a library has its own settings") {
  for (const Toggle toggle : {kDefault, kOff, kOn}) {
    CHECK(Merge(Remapping(toggle), {}, 0).remapping ==
          static_cast<capi::TF_TriState>(toggle));
  }
}

TEST_CASE("fixed settings of another library win") {
  CHECK(Merge(Remapping(kDefault), {Fixed(Remapping(kOff))}, 0).remapping ==
        capi::TF_TriState_Off);
  CHECK(Merge(Remapping(kOn), {Fixed(Remapping(kOff))}, 1).remapping ==
        capi::TF_TriState_Off);
  CHECK(Merge(Remapping(kOff), {Fixed(Remapping(kDefault))}, 1).remapping ==
        capi::TF_TriState_Default);
  // TensorFlow treats kOn and kDefault as equal.
  CHECK(Merge(Remapping(kOn), {Fixed(Remapping(kDefault))}, 0).remapping ==
        capi::TF_TriState_On);
}

TEST_CASE("of adaptive libraries, any can turn a rewriter off") {
  CHECK(Merge(Remapping(kDefault), {Adaptive(Remapping(kOff))}, 0).remapping ==
        capi::TF_TriState_Off);
  CHECK(Merge(Remapping(kOff), {Adaptive(Remapping(kOn))}, 0).remapping ==
        capi::TF_TriState_Off);
  CHECK(Merge(Remapping(kOn), {Adaptive(Remapping(kOff))}, 1).remapping ==
        capi::TF_TriState_Off);
  CHECK(Merge(Remapping(kDefault),
              {Adaptive(Remapping(kOff)), Fixed(Remapping(kDefault))}, 0)
            .remapping == capi::TF_TriState_Default);
}

TEST_CASE("for disable_model_pruning, kOn is the value with an effect") {
  CHECK(Merge(NoPruning(kDefault), {Adaptive(NoPruning(kOn))}, 0)
            .disable_model_pruning == capi::TF_TriState_On);
  CHECK(Merge(NoPruning(kOff), {Fixed(NoPruning(kDefault))}, 0)
            .disable_model_pruning == capi::TF_TriState_Off);
  CHECK(Merge(NoPruning(kOn), {Fixed(NoPruning(kOff))}, 1)
            .disable_model_pruning == capi::TF_TriState_Default);
}

TEST_CASE("a refused setting names both plug-ins and the remedy") {
  std::vector<std::string> refused;
  MergeSettings("SIM", Remapping(kOff), {Fixed(Remapping(kDefault))}, refused);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0] ==
        "remapping = kOff for SIM is refused, because it differs for OTHER "
        "(/lib/other.so), and TensorFlow crashes on a graph with nodes on both "
        "devices if their settings differ: remove the setting, or set the same "
        "in both plug-ins");
}

struct Optimizer : GraphOptimizer<> {
  static constexpr char kDeviceType[] = "SIM";
  static OptimizerSettings Settings() {
    OptimizerSettings settings;
    settings.remapping = Toggle::kOff;
    return settings;
  }
};

TEST_CASE("a library answers the question of another one") {
  testing::LeakCheckedFake fake;
  for (const bool is_registered : {false, true}) {
    passes_internal::registered_settings = {};
    passes_internal::registered_settings.is_registered = is_registered;
    capi::TP_OptimizerConfigs configs = {};
    configs.struct_size = sizeof(configs);
    capi::TP_Optimizer optimizer = {};
    optimizer.struct_size = sizeof(optimizer);
    passes_internal::SettingsQuery query = {};
    query.magic = passes_internal::SettingsQuery::kMagic;
    query.params.struct_size = sizeof(query);
    query.params.optimizer_configs = &configs;
    query.params.optimizer = &optimizer;
    CHECK(testing::CallWithStatus(
              &passes_internal::OptimizerRegistration<Optimizer>::InitGraph,
              &query.params)
              .ok());
    CHECK(query.is_answered == 1);
    CHECK(query.is_registered == (is_registered ? 1 : 0));
    CHECK(std::string(query.params.device_type) == "SIM");
    CHECK(configs.remapping ==
          (is_registered ? capi::TF_TriState_Default : capi::TF_TriState_Off));
    CHECK(passes_internal::registered_settings.is_registered == is_registered);
    CHECK((optimizer.create_func == nullptr));
  }
  passes_internal::registered_settings = {};
}

}  // namespace
}  // namespace tfplug::shared_settings_test
