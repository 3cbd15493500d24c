// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "backend.h"
#include "compiled/check_graphs.h"

// Graphs of examples/vulkan on the driver of this machine.
namespace {

TEST_CASE("graphs") {
  tfplug::CheckGraphs<vulkan::Platform, vulkan::Backend>(
      "a graph contains kernels and copies on the device only");
}

}  // namespace
