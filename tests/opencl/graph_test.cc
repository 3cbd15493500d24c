// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "backend.h"
#include "compiled/check_graphs.h"

// Graphs of examples/opencl on the driver of this machine.
namespace {

using Tests = tfplug::GraphTests<opencl::Platform, opencl::Backend>;

TEST_CASE("a graph repeats its launches, in the order of the stream") {
  Tests().CheckResults();
}

TEST_CASE("a graph may be destroyed while it runs, or after its stream") {
  Tests().CheckLifetime();
}

TEST_CASE("a graph fails when addresses may stand for other buffers") {
  Tests().CheckReplacedMemory();
}

TEST_CASE("calls that cannot be captured fail, and the stream works") {
  Tests().CheckFailures(": a graph contains kernels only");
}

TEST_CASE("timers have the time of a graph") { Tests().CheckTimer(); }

}  // namespace
