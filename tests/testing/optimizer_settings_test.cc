// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing.h>
#include <tfplug/testing/optimizer_settings.h>
#include <tfplug/testing/process.h>

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

// ---- Process -------------------------------------------------------------------

void Optimize(void*, const capi::TF_Buffer*, const capi::TF_GrapplerItem*,
              capi::TF_Buffer*, capi::TF_Status*) {}

// An optimizer for a type that turns `remapping` off, or nothing, with the layout
// that the struct's size tells.
template <char kType, bool kIsOff>
void InitGraph(capi::TP_OptimizerRegistrationParams* params,
               capi::TF_Status* status) {
  static const char type[] = {kType, 0};
  params->device_type = type;
  params->optimizer->optimize_func = &Optimize;
  const auto value = kIsOff ? capi::TF_TriState_Off : capi::TF_TriState_On;
  auto* const configs = params->optimizer_configs;
  if (configs->struct_size == capi::TP_OPTIMIZER_CONFIGS_STRUCT_SIZE) {
    configs->remapping = value;
  } else {
    reinterpret_cast<capi::TP_OptimizerConfigs_2_5*>(configs)->remapping =
        value;
  }
  testing::TF_SetStatus(status, capi::TF_OK, "");
}

TEST_CASE("a process merges the settings of its plug-ins, in each layout") {
  const testing::ScopedFakeTensorFlow tensorflow;
  for (const testing::Release release :
       {testing::Release{2, 5}, testing::Release{2, 9}, testing::Release{2, 10},
        capi::kNewestRelease}) {
    CAPTURE(int{release.minor});
    testing::Process::Options options;
    options.release = release;
    testing::Process process(options);
    const auto load = [&](testing::GraphHost::InitGraph init) {
      return process.Load({nullptr, nullptr, init, nullptr});
    };
    CHECK(load(&InitGraph<'A', true>).ok());
    CHECK(load(&InitGraph<'B', true>).ok());
    CHECK(load(&InitGraph<'C', false>).ok());
    CHECK(process.Settings({})->off.empty());
    CHECK(process.Settings({"A"})->off == Names{"remapping"});
    CHECK(process.Settings({"A", "B", "no plug-in"})->off ==
          Names{"remapping"});
    CHECK(process.Settings({"C"})->off.empty());
    CHECK(absl::IsAborted(process.Settings({"A", "C"}).status()));
    // Two optimizers for one type.
    const absl::Status twice = load(&InitGraph<'A', false>);
    CHECK(absl::IsAborted(twice));
    CHECK(twice.message().find("graph optimizer for the device type A") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace tfplug::optimizer_settings_test
