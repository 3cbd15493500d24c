// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/driver_platform.h"

#include <doctest/doctest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tfplug::driver_platform_test {
namespace {

struct Driver {
  absl::StatusOr<std::string> Load() {
    ++loads;
    return answer;
  }
  absl::StatusOr<std::string> answer;
  int loads = 0;  // in this process
};
struct Device {};

// A platform of a driver of its own.
template <int n>
struct Drivers {
  static inline Driver driver;
};
template <int n>
using Platform = DriverPlatform<Device, Drivers<n>::driver>;

TEST_CASE("a driver's devices are counted once, in another process") {
  Driver& driver = Drivers<0>::driver;
  driver.answer = "dd";
  Platform<0> platform;
  CHECK(Platform<0>::Supports(DataType::kDouble));
  CHECK(platform.Init() == absl::OkStatus());
  driver.answer = "changed";
  CHECK(platform.DeviceCount().value() == 2);
  CHECK(driver.loads == 0);
  CHECK(platform.Options().force_memory_growth);
}

TEST_CASE("doubles are supported if all devices compute in them") {
  Drivers<1>::driver.answer = "df";
  CHECK_FALSE(Platform<1>::Supports(DataType::kDouble));
  CHECK(Platform<1>::Supports(DataType::kFloat));
  CHECK(Platform<1>::Supports(DataType::kInt64));
}

TEST_CASE("the error of a driver is the platform's") {
  Driver& driver = Drivers<2>::driver;
  driver.answer = absl::NotFoundError("no suitable device");
  CHECK(Platform<2>().Init() == absl::NotFoundError("no suitable device"));
}

}  // namespace
}  // namespace tfplug::driver_platform_test
