// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/internal/region_graphs.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tfplug/base/status_macros.h"

namespace tfplug::region_graphs_test {
namespace {

using op_kernels_internal::RegionGraphs;

// A backend whose graphs count.
struct Device {
  struct Graph final : LaunchGraph {
    explicit Graph(Device& owner) : device(owner) { ++device.alive; }
    ~Graph() override { --device.alive; }
    absl::Status Launch() override {
      if (device.fails_to_launch) return absl::InternalError("launch");
      ++device.launches;
      return absl::OkStatus();
    }
    Device& device;
  };

  static NewLaunchGraph Capture(
      void* self, void* stream,
      const std::function<absl::Status(void*)>& work) {
    Device& device = *static_cast<Device*>(self);
    ++device.captures;
    if (!device.has_graphs) return nullptr;
    TFPLUG_RETURN_IF_ERROR(work(stream));
    return std::make_unique<Graph>(device);
  }

  // Returns whether the launches, with buffers at `address`, are a graph.
  bool Run(RegionGraphs& graphs, int64_t address, void* stream = nullptr) {
    primitives::PrimitiveTable table = {};
    table.capture = &Capture;
    return graphs.Launch(
        table, this, stream, {nullptr, reinterpret_cast<char*>(address)},
        [&](void*) { return work_status; },
        [&](const std::string& decision) { log += decision + "\n"; });
  }

  int captures = 0, launches = 0, alive = 0;
  bool has_graphs = true, fails_to_launch = false;
  absl::Status work_status;
  std::string log;
};

TEST_CASE("launches are a graph when their addresses come again") {
  Device device;
  {
    RegionGraphs graphs(10);
    CHECK_FALSE(device.Run(graphs, 1));
    CHECK_FALSE(device.Run(graphs, 2));
    CHECK(device.captures == 0);
    CHECK(device.Run(graphs, 1));
    CHECK(device.Run(graphs, 1));
    CHECK(device.Run(graphs, 2));
    CHECK(device.captures == 2);
    CHECK(device.launches == 3);
    CHECK(device.alive == 2);
    CHECK(device.log == "are captured as a graph\nare captured as a graph\n");
    // Graphs belong to a stream.
    CHECK_FALSE(device.Run(graphs, 1, &device));
    CHECK(device.launches == 3);
  }
  CHECK(device.alive == 0);
}

TEST_CASE("the graphs that were used last stay") {
  Device device;
  RegionGraphs graphs(10);
  for (int round = 0; round < 2; ++round) {
    for (int64_t address = 1; address <= 16; ++address) {
      CHECK(device.Run(graphs, address) == (round == 1));
    }
  }
  CHECK(device.Run(graphs, 1));
  CHECK_FALSE(device.Run(graphs, 17));
  CHECK(device.alive == 15);
  CHECK(device.Run(graphs, 1));
  CHECK_FALSE(device.Run(graphs, 2));
}

TEST_CASE("addresses that do not repeat end the search for graphs") {
  Device device;
  RegionGraphs graphs(10);
  CHECK_FALSE(device.Run(graphs, 1));
  CHECK(device.Run(graphs, 1));
  int64_t address = 1;
  for (int run = 1; run < RegionGraphs::kMostMisses; ++run) {
    CHECK_FALSE(device.Run(graphs, ++address));
  }
  CHECK(device.Run(graphs, address));
  for (int run = 0; run < RegionGraphs::kMostMisses; ++run) {
    CHECK_FALSE(device.Run(graphs, ++address));
  }
  CHECK_FALSE(device.Run(graphs, address));
  CHECK(device.captures == 2);
  CHECK(device.alive == 0);
  CHECK(device.log ==
        "are captured as a graph\n"
        "are captured as a graph\n"
        "are enqueued one by one: addresses do not repeat\n");
}

TEST_CASE("captures are few in comparison with runs") {
  Device device;
  RegionGraphs graphs(10);
  // Each address comes twice in a row, and never again.
  for (int64_t address = 1; address < 1000; ++address) {
    device.Run(graphs, address);
    device.Run(graphs, address);
  }
  CHECK(device.captures > 16);
  CHECK(device.captures < 16 + 2000 / 16 + 1);
}

TEST_CASE("after a failed capture, launches are enqueued one by one") {
  Device device;
  device.work_status = absl::InternalError("it fails");
  RegionGraphs graphs(10);
  for (int run = 0; run < 5; ++run) CHECK_FALSE(device.Run(graphs, 1));
  CHECK(device.captures == 1);
  CHECK(device.log == "are enqueued one by one: it fails\n");

  Device without;
  without.has_graphs = false;
  RegionGraphs none(10);
  for (int run = 0; run < 5; ++run) CHECK_FALSE(without.Run(none, 1));
  CHECK(without.captures == 1);
  CHECK(without.log == "are enqueued one by one: the device has no graphs\n");
}

TEST_CASE("a graph that cannot be launched is destroyed, and captured again") {
  Device device;
  RegionGraphs graphs(10);
  CHECK_FALSE(device.Run(graphs, 1));
  CHECK(device.Run(graphs, 1));
  device.fails_to_launch = true;
  CHECK_FALSE(device.Run(graphs, 1));
  CHECK(device.alive == 0);
  device.fails_to_launch = false;
  CHECK(device.Run(graphs, 1));
  CHECK(device.captures == 2);
}

TEST_CASE("few launches are no graph, and a variable turns graphs off") {
  Device device;
  RegionGraphs few(3);
  ::setenv("TFPLUG_REGION_GRAPHS", "0", 1);
  RegionGraphs off(10);
  ::unsetenv("TFPLUG_REGION_GRAPHS");
  for (int run = 0; run < 5; ++run) {
    CHECK_FALSE(device.Run(few, 1));
    CHECK_FALSE(device.Run(off, 1));
  }
  CHECK(device.captures == 0);
}

}  // namespace
}  // namespace tfplug::region_graphs_test
