// SPDX-License-Identifier: Apache-2.0
#include "vulkan.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "backend.h"
#include "fixture.h"
#include "profiler/check_times.h"
#include "tfplug/testing/backend_conformance.h"
#include "tfplug/testing/conformance.h"

// examples/vulkan on the driver of this machine.
namespace {

TEST_CASE("the device conforms") {
  tfplug::Fixture<vulkan::Platform> fixture;
  CHECK(tfplug::testing::CheckDevice(fixture.device()) == absl::OkStatus());
}

TEST_CASE("a profile has the driver's times of commands") {
  tfplug::Fixture<vulkan::Platform> fixture;
  CheckTimes(fixture.device());
}

// All kernels take minutes, because the driver compiles several hundred
// programs; CONFORMANCE_SECONDS allows for more of them.
TEST_CASE("the kernels conform") {
  const char* const seconds = std::getenv("CONFORMANCE_SECONDS");
  tfplug::Fixture<vulkan::Platform> fixture;
  vulkan::Backend backend;
  tfplug::testing::BackendConformanceOptions options;
  options.most_seconds = seconds == nullptr ? 5 : std::atof(seconds);
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
}

}  // namespace
