// SPDX-License-Identifier: Apache-2.0
// The plug-in of examples/cuda_like, linked with this program, on the drivers
// that CUDA_LIKE_DRIVER names.
#include <doctest/doctest.h>
#include <tfplug/testing/conformance.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "plugin.h"
#include "profiler/check_times.h"

namespace cuda_like_test::device_test {
namespace {

using tfplug::DeviceMemory;

// Selects another driver for the duration of a test.
class ScopedDriver {
 public:
  explicit ScopedDriver(const char* path) {
    setenv("CUDA_LIKE_DRIVER", path, 1);
  }
  ~ScopedDriver() { setenv("CUDA_LIKE_DRIVER", before_.c_str(), 1); }

 private:
  const std::string before_ = std::getenv("CUDA_LIKE_DRIVER");
};

bool Has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the devices") {
  Plugin plugin;
  REQUIRE(plugin.count() == 2);
  FakeDevice& device = plugin.device(0);
  CHECK(device.hardware_name() == "emulated on host threads");
  CHECK(device.pci_bus_id() == "0000:00:00.0");
  CHECK(device.NumaNode() == 0);
  CHECK(device.has_unified_memory());
  CHECK(device.Usage()->free > 0);
  CHECK(plugin.log() == "");
}

TEST_CASE("streams, events, copies and host tasks") {
  Plugin plugin;
  for (const int ordinal : {0, 1}) {
    CHECK(tfplug::testing::CheckDevice(plugin.device(ordinal), {1, 0.5}) ==
          absl::OkStatus());
  }
}

TEST_CASE("a copy between devices") {
  Plugin plugin;
  FakeDevice &a = plugin.device(0), &b = plugin.device(1);
  std::vector<int> data(1000), copy(1000);
  std::iota(data.begin(), data.end(), 1);
  const DeviceMemory on_a = a.Allocate(4000), on_b = b.Allocate(4000);
  CHECK(a.CopyHostToDevice(on_a, data.data(), 4000).ok());
  CHECK(b.device_to_device().CopyDeviceToDevice(on_b, on_a, 4000).ok());
  CHECK(b.device_to_device().BlockHostUntilDone().ok());
  CHECK(b.CopyDeviceToHost(copy.data(), on_b, 4000).ok());
  CHECK(copy == data);
  a.Deallocate(on_a);
  b.Deallocate(on_b);
}

TEST_CASE("a profile has the times of the driver's events") {
  Plugin plugin;
  CheckTimes(plugin.device(0));
}

TEST_CASE("memory of the host, and memory that both access") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  auto* const host = static_cast<int*>(device.AllocateHost(4000));
  auto* const unified = static_cast<int*>(device.AllocateUnified(4000));
  REQUIRE(host != nullptr);
  REQUIRE(unified != nullptr);
  host[999] = 7;
  unified[999] = 0;
  CHECK(device.CopyHostToDevice(DeviceMemory(unified, 4000), host, 4000).ok());
  CHECK(unified[999] == 7);
  device.DeallocateUnified(unified);
  device.DeallocateHost(host);
}

TEST_CASE("a priority is limited to those of the device") {
  Plugin plugin;
  for (const int priority : {-100, -1, 0, 100}) {
    tfplug::StreamOptions options;
    options.has_priority = true;
    options.priority = priority;
    const auto stream = plugin.device(0).CreateStream(options);
    CHECK_MESSAGE(stream.ok(), stream.status().ToString());
  }
}

TEST_CASE("an error has the driver's function, code and message") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  const DeviceMemory memory = device.Allocate(64);
  Inject("cuMemsetD8Async");
  const absl::Status status =
      device.compute().Memset(memory, tfplug::BytePattern{1}, 64);
  CHECK(status == absl::InternalError("memset: cuMemsetD8Async: "
                                      "CUDA_ERROR_UNKNOWN (999): unknown "
                                      "error"));
  CHECK(device.compute().Memset(memory, tfplug::BytePattern{1}, 64).ok());
  device.Deallocate(memory);
}

TEST_CASE("a device without free memory") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  const DeviceMemory memory = device.Allocate(uint64_t{1} << 50);
  CHECK(memory.opaque() == nullptr);
  CHECK(Has(plugin.log(),
            "RESOURCE_EXHAUSTED: cuMemAlloc: "
            "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"));
  const DeviceMemory less = device.Allocate(64);
  CHECK(less.opaque() != nullptr);
  device.Deallocate(less);
}

TEST_CASE("a device that is lost returns errors, and other devices work") {
  Plugin plugin;
  FakeDevice &lost = plugin.device(0), &other = plugin.device(1);
  const DeviceMemory memory = lost.Allocate(64);
  const auto event = lost.CreateEvent();
  int tasks = 0;
  // The tasks are accepted while the device still works.
  CHECK(lost.compute()
            .RunOnHost([&] {
              usleep(100000);
              ++tasks;
              return absl::OkStatus();
            })
            .ok());
  CHECK(lost.compute().Memset(memory, tfplug::BytePattern{1}, 64).ok());
  CHECK(lost.compute()
            .RunOnHost([&] {
              ++tasks;
              return absl::OkStatus();
            })
            .ok());
  CHECK(lost.compute().RecordEvent(**event).ok());
  Inject("device");

  const absl::Status status = lost.compute().BlockHostUntilDone();
  CHECK(absl::IsInternal(status));
  CHECK_MESSAGE(
      Has(std::string(status.message()), "CUDA_ERROR_LAUNCH_FAILED (719)"),
      status.ToString());
  CHECK(tasks == 2);
  CHECK(!lost.compute().GetStatus().ok());
  CHECK((*event)->Poll() == tfplug::EventStatus::kError);
  CHECK(!(*event)->BlockHost().ok());
  CHECK(!lost.SynchronizeAllActivity().ok());
  CHECK(!lost.host_to_device().Memset(memory, tfplug::BytePattern{1}, 64).ok());
  CHECK(lost.Allocate(64).opaque() == nullptr);
  CHECK(!lost.compute().RunOnHost([] { return absl::OkStatus(); }).ok());

  CHECK(tfplug::testing::CheckDevice(other, {1, 0.1}) == absl::OkStatus());
}

TEST_CASE("without a driver there are no devices, and one line in the log") {
  const ScopedDriver driver("/nonexistent/libcuda.so.1");
  Plugin plugin;
  CHECK(plugin.count() == 0);
  CHECK_MESSAGE(
      plugin.log() ==
          "tfplug: CUDA_LIKE: NOT_FOUND: cannot load the driver: "
          "/nonexistent/libcuda.so.1: cannot open shared object file: No such "
          "file or directory; install NVIDIA's driver 525 or newer, or name "
          "another one in CUDA_LIKE_DRIVER\n",
      plugin.log());
}

TEST_CASE("the stub of NVIDIA's toolkit is no driver") {
  const ScopedDriver driver(std::getenv("TFPLUG_TEST_STUB_DRIVER"));
  Plugin plugin;
  CHECK(plugin.count() == 0);
  CHECK_MESSAGE(Has(plugin.log(), " is the stub of NVIDIA's toolkit: install"),
                plugin.log());
  CHECK(plugin.log().find('\n') == plugin.log().size() - 1);
}

// Run alone, because a driver is initialized once.
TEST_CASE("a driver without devices" * doctest::skip()) {
  Plugin plugin;
  CHECK(plugin.count() == 0);
  CHECK(plugin.log() ==
        "tfplug: CUDA_LIKE: UNAVAILABLE: the CUDA driver has no device\n");
}

}  // namespace
}  // namespace cuda_like_test::device_test
