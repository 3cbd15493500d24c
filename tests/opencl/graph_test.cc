// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "backend.h"
#include "compiled/check_graphs.h"

// Graphs of examples/opencl on the driver of this machine.
namespace {

TEST_CASE("graphs") {
  tfplug::CheckGraphs<opencl::Platform, opencl::Backend>(
      ": a graph contains kernels only");
}

}  // namespace
