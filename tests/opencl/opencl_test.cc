// SPDX-License-Identifier: Apache-2.0
#include "opencl.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "backend.h"
#include "fixture.h"
#include "tfplug/testing/backend_conformance.h"
#include "tfplug/testing/conformance.h"

// examples/opencl on the driver of this machine.
namespace {

using tfplug::DataType;

// A few types, so that the driver compiles few programs.
struct FewTypes : opencl::Backend {
  bool Supports(DataType type) const override {
    return type == DataType::kFloat || type == DataType::kBool;
  }
};

template <class B>
void CheckBackendFor(const char* seconds) {
  tfplug::Fixture<opencl::Platform> fixture;
  B backend;
  tfplug::testing::BackendConformanceOptions options;
  options.seconds = seconds != nullptr ? std::atof(seconds) : 0;
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
}

TEST_CASE("the device conforms") {
  tfplug::Fixture<opencl::Platform> fixture;
  CHECK(tfplug::testing::CheckDevice(fixture.device()) == absl::OkStatus());
}

// CONFORMANCE_SECONDS checks all types for longer.
TEST_CASE("the kernels conform") {
  const char* const seconds = std::getenv("CONFORMANCE_SECONDS");
  if (seconds != nullptr) {
    CheckBackendFor<opencl::Backend>(seconds);
  } else {
    CheckBackendFor<FewTypes>(seconds);
  }
}

}  // namespace
