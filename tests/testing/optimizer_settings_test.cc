// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing/optimizer_settings.h>

#include <string>
#include <vector>

// RFC 318's table of settings over several plug-ins, as TensorFlow has it.
namespace tfplug::optimizer_settings_test {
namespace {

using testing::MergeSettings;
using Names = std::vector<std::string>;

capi::TP_OptimizerConfigs Configs(
    capi::TF_TriState remapping,
    capi::TF_TriState disable_model_pruning = capi::TF_TriState_Default) {
  capi::TP_OptimizerConfigs configs = {};
  configs.remapping = remapping;
  configs.disable_model_pruning = disable_model_pruning;
  return configs;
}

TEST_CASE("one plug-in: only Off and disabled pruning have an effect") {
  CHECK(MergeSettings({})->off.empty());
  CHECK(MergeSettings({Configs(capi::TF_TriState_Default)})->off.empty());
  CHECK(MergeSettings({Configs(capi::TF_TriState_On)})->off.empty());
  const auto off =
      MergeSettings({Configs(capi::TF_TriState_Off, capi::TF_TriState_On)});
  CHECK(off->off == Names{"remapping"});
  CHECK(off->keeps_unused_nodes);
  CHECK(off->conflicts.empty());
  // The user's option.
  CHECK(MergeSettings({Configs(capi::TF_TriState_Off)}, false)->off.empty());
}

TEST_CASE("several plug-ins: On and Default agree, Off and another do not") {
  for (const auto other : {capi::TF_TriState_On, capi::TF_TriState_Default}) {
    CHECK(MergeSettings({Configs(capi::TF_TriState_On), Configs(other)})
              ->off.empty());
    const auto differ =
        MergeSettings({Configs(capi::TF_TriState_Off), Configs(other)});
    CHECK(absl::IsAborted(differ.status()));
    CHECK(differ.status().message().find("differ in remapping: TensorFlow 2.10 "
                                         "to 2.22 throw std::length_error") !=
          std::string::npos);
  }
  CHECK(MergeSettings(
            {Configs(capi::TF_TriState_Off), Configs(capi::TF_TriState_Off)})
            ->off == Names{"remapping"});
  CHECK(absl::IsAborted(
      MergeSettings({Configs(capi::TF_TriState_On, capi::TF_TriState_On),
                     Configs(capi::TF_TriState_On)})
          .status()));
}

}  // namespace
}  // namespace tfplug::optimizer_settings_test
