// SPDX-License-Identifier: Apache-2.0
#include "abi/filled_fields.h"

#include <tfplug/graph_pass.h>

#include <type_traits>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

// Tests that each pointer that tfplug passes to TensorFlow is filled or null as
// codegen/device_api.ini and graph_api.ini describe.
namespace tfplug::filled_fields_test {
namespace {

// `overrides_all`: whether the author's classes override every hook, or only
// the required ones.
template <class Struct>
void CheckFields(const Struct& filled, bool overrides_all) {
  const auto fields = FieldsOf(filled);
  CHECK_FALSE(fields.empty());
  for (const FilledField& field : fields) {
    INFO(capi::StructInfo<Struct>::kName << "::" << field.name);
    CHECK(field.is_set ==
          (field.expected == Filled::kAlways ||
           (field.expected == Filled::kIfOverridden && overrides_all)));
  }
}

TEST_CASE_TEMPLATE("the structs of a device are filled as described", PlatformT,
                   recording::Platform, minimal::Platform) {
  constexpr bool kOverridesAll = std::is_same_v<PlatformT, recording::Platform>;
  using DeviceT = typename PlatformT::Device;
  Fixture<PlatformT> fixture;
  CheckFields(fixture.host().platform(), kOverridesAll);
  CheckFields(*fixture.device().c_device(), kOverridesAll);
  CheckFields(device_internal::PlatformFnsTable<PlatformT>::Make(),
              kOverridesAll);
  CheckFields(device_internal::DeviceFnsTable<DeviceT>::Make(), kOverridesAll);
  CheckFields(device_internal::StreamExecutorTable<DeviceT>::Make(),
              kOverridesAll);
  CheckFields(device_internal::TimerFnsTable<DeviceT>::Make(), kOverridesAll);
}

template <class T>
T Sized() {
  T value = {};
  value.struct_size = capi::StructInfo<T>::kSize;
  return value;
}

TEST_CASE("the parameters of SE_InitPlugin are filled as described") {
  testing::ScopedFakeTensorFlow fake;
  auto platform = Sized<capi::SP_Platform>();
  auto platform_fns = Sized<capi::SP_PlatformFns>();
  auto params = Sized<capi::SE_PlatformRegistrationParams>();
  params.platform = &platform;
  params.platform_fns = &platform_fns;
  OwnedStatus status;
  device_internal::PlatformRegistration<recording::Platform>::InitPlugin(
      &params, status.get());
  REQUIRE(status.ToStatus().ok());
  CheckFields(params, true);
  params.destroy_platform(&platform);
}

struct Optimizer : GraphOptimizer<> {
  static constexpr char kDeviceType[] = "RECORDER";
};

TEST_CASE("the structs of a graph optimizer are filled as described") {
  testing::ScopedFakeTensorFlow fake;
  auto optimizer = Sized<capi::TP_Optimizer>();
  auto configs = Sized<capi::TP_OptimizerConfigs>();
  auto params = Sized<capi::TP_OptimizerRegistrationParams>();
  params.optimizer = &optimizer;
  params.optimizer_configs = &configs;
  OwnedStatus status;
  passes_internal::OptimizerRegistration<Optimizer>::InitGraph(&params,
                                                               status.get());
  REQUIRE(status.ToStatus().ok());
  CheckFields(params, true);
  CheckFields(optimizer, true);
}

}  // namespace
}  // namespace tfplug::filled_fields_test
