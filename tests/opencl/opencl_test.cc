// SPDX-License-Identifier: Apache-2.0
#include "opencl.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "backend.h"
#include "fixture.h"
#include "profiler/check_times.h"
#include "tfplug/testing/backend_conformance.h"
#include "tfplug/testing/conformance.h"

#if defined(__SANITIZE_ADDRESS__)
// PoCL loses an object for each program that it writes as a binary. Only whole
// stacks have the function's name.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "fast_unwind_on_malloc=0";
}
extern "C" [[gnu::visibility("default")]] const char*
__lsan_default_suppressions() {
  return "leak:pocl_driver_build_poclbinary";
}
#endif

// examples/opencl on the driver of this machine.
namespace {

TEST_CASE("the device conforms") {
  tfplug::Fixture<opencl::Platform> fixture;
  CHECK(tfplug::testing::CheckDevice(fixture.device()) == absl::OkStatus());
}

TEST_CASE("a profile has the driver's times of commands") {
  tfplug::Fixture<opencl::Platform> fixture;
  CheckTimes(fixture.device());
}

// All kernels take minutes, because the driver compiles several hundred
// programs; CONFORMANCE_SECONDS allows for more of them.
TEST_CASE("the kernels conform") {
  const char* const seconds = std::getenv("CONFORMANCE_SECONDS");
  tfplug::Fixture<opencl::Platform> fixture;
  opencl::Backend backend;
  tfplug::testing::BackendConformanceOptions options;
  options.most_seconds = seconds == nullptr ? 5 : std::atof(seconds);
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
}

}  // namespace
