// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing.h>
#include <tfplug/testing/conformance.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

// Loads cpu_sim's .so, whose path is in $TFPLUG_TEST_PLUGIN, with dlopen, as
// TensorFlow does, and registers it with the fake. Host accesses to device
// memory crash, because cpu_sim's strict mode is on by default.
namespace tfplug {
namespace {

using testing::FakeDevice;
using testing::FakeKernel;
using testing::FakeStream;
using testing::KernelRun;

class LoadFixture {
 protected:
  LoadFixture() {
    testing::MakeFakeTensorFlow();  // sets the result of TF_Version
    const char* const path = std::getenv("TFPLUG_TEST_PLUGIN");
    REQUIRE(path != nullptr);
    auto host = testing::Host::Load(path);
    REQUIRE_MESSAGE(host.ok(), host.status().ToString());
    host_ = *std::move(host);
  }
  ~LoadFixture() {
    CHECK(host_->Problems().ok());
    host_.reset();
    CHECK(testing::LiveStatusCount() == statuses_);
    CHECK(testing::LiveTensorCount() == tensors_);
  }

  FakeDevice& device(int ordinal) { return *host_->Device(ordinal).value(); }

  const int64_t statuses_ = testing::LiveStatusCount();
  const int64_t tensors_ = testing::LiveTensorCount();
  std::unique_ptr<testing::Host> host_;
};

TEST_CASE_FIXTURE(LoadFixture, "the plug-in's devices") {
  CHECK(host_->device_type() == "SIM");
  REQUIRE(host_->DeviceCount().value() == 2);
  CHECK(device(1).ordinal() == 1);
  CHECK(device(0).has_unified_memory());
  CHECK(device(0).Usage()->free > 0);
}

TEST_CASE_FIXTURE(LoadFixture, "streams, events, copies and host tasks") {
  CHECK(testing::CheckDevice(device(0), {1, 0.5}) == absl::OkStatus());
}

// Copies `data` to the device on one stream, within the device on a second, and
// back on a third.
absl::Status RoundTrip(FakeDevice& device, std::vector<int>& data) {
  const uint64_t size = data.size() * sizeof(int);
  const DeviceMemory a = device.Allocate(size), b = device.Allocate(size);
  auto copied = device.CreateEvent();
  absl::Status status = copied.status();
  status.Update(device.host_to_device().CopyHostToDevice(a, data.data(), size));
  status.Update(device.host_to_device().RecordEvent(**copied));
  status.Update(device.device_to_device().WaitForEvent(**copied));
  status.Update(device.device_to_device().CopyDeviceToDevice(b, a, size));
  status.Update(device.device_to_device().MemZero(b, sizeof(int)));
  status.Update(
      device.device_to_host().WaitForStream(device.device_to_device()));
  std::vector<int> out(data.size());
  status.Update(device.device_to_host().CopyDeviceToHost(out.data(), b, size));
  int tasks = 0;
  status.Update(device.device_to_host().RunOnHost([&tasks] {
    ++tasks;
    return absl::OkStatus();
  }));
  status.Update(device.device_to_host().BlockHostUntilDone());
  if (status.ok() && tasks != 1) status = absl::InternalError("no host task");
  data = out;
  device.Deallocate(a);
  device.Deallocate(b);
  return status;
}

TEST_CASE_FIXTURE(LoadFixture, "copies on three streams") {
  std::vector<int> data(1000);
  std::iota(data.begin(), data.end(), 1);
  std::vector<int> expected = data;
  expected[0] = 0;
  const absl::Status status = RoundTrip(device(0), data);
  CHECK_MESSAGE(status.ok(), status.ToString());
  CHECK(data == expected);
}

TEST_CASE_FIXTURE(LoadFixture, "many threads use the same streams at once") {
  FakeDevice& shared = device(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shared, t] {
      for (int i = 0; i < 20; ++i) {
        std::vector<int> data(100, 10 * t + i + 1), expected = data;
        expected[0] = 0;
        CHECK(RoundTrip(shared, data).ok());
        CHECK(data == expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE_FIXTURE(LoadFixture, "the plug-in's kernels") {
  auto kernel = FakeKernel::Create(
      {"Relu", "relu", {{"T", DataType::kFloat}}, {}}, "SIM");
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  KernelRun run(**kernel, &device(0));
  run.AddInput<float>({{2, 2}, {-1, 0, 1, 2}});
  run.AddOutput(DataType::kFloat);
  const absl::Status status = run.Run();
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  CHECK(run.Output<float>(0).dims == std::vector<int64_t>{2, 2});
  CHECK(run.Output<float>(0).elements == std::vector<float>{0, 0, 1, 2});
}

TEST_CASE_FIXTURE(LoadFixture, "a kernel that is out of memory fails") {
  auto kernel = FakeKernel::Create(
      {"Relu", "relu", {{"T", DataType::kFloat}}, {}}, "SIM");
  REQUIRE(kernel.ok());
  KernelRun run(**kernel, &device(0));
  auto input = testing::MakeDeviceTensor<float>(&device(0), {{1}, {1}}).value();
  const capi::TF_Tensor held(input);  // prevents forwarding
  run.AddInput(std::move(input));
  run.AddOutput(DataType::kFloat);
  run.FailAllocationAfter(0);
  CHECK(run.Run().code() == absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tfplug
