// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <doctest/doctest.h>
#include <tfplug/testing/backend_conformance.h>

#include "fixture.h"

// Compares the primitives with tfplug's definition of them, without TensorFlow.
namespace cpu_sim {
namespace {

TEST_CASE("each primitive has the results of the reference backend") {
  tfplug::Fixture<Platform> fixture;
  Backend backend;
  tfplug::testing::BackendConformanceOptions options;
  options.seconds = 0;  // each subject once
  CHECK(tfplug::testing::CheckBackend(backend, fixture.device(), options) ==
        absl::OkStatus());
}

}  // namespace
}  // namespace cpu_sim
