// SPDX-License-Identifier: Apache-2.0
#include <tfplug/testing/host_device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fixture.h"
#include "float_tensors.h"
#include "minimal_device.h"

namespace tfplug::host_device_test {
namespace {

using testing::Host;
using testing::HostDevice;
using testing::TF_Tensor;

// ---- Alignment ------------------------------------------------------------------

alignas(4096) char arena[4 << 20];
size_t device_shift, host_shift;

// The minimal device, whose memory is `shift` bytes beyond an aligned address. The
// slots are raw: tfplug's own refuse such memory.
void InitMisaligned(capi::SE_PlatformRegistrationParams* params,
                    capi::TF_Status* status) {
  using Fns = device_internal::PlatformFnsTable<minimal::Platform>;
  device_internal::PlatformRegistration<minimal::Platform>::InitPlugin(params,
                                                                       status);
  params->platform_fns->create_stream_executor =
      [](const capi::SP_Platform* platform,
         capi::SE_CreateStreamExecutorParams* create,
         capi::TF_Status* create_status) {
        Fns::create_stream_executor(platform, create, create_status);
        capi::SP_StreamExecutor& se = *create->stream_executor;
        se.allocate = [](const capi::SP_Device*, uint64_t size, int64_t,
                         capi::SP_DeviceMemoryBase* memory) {
          memory->opaque = arena + device_shift;
          memory->size = size;
        };
        se.deallocate = [](const capi::SP_Device*, capi::SP_DeviceMemoryBase*) {
        };
        se.host_memory_allocate = [](const capi::SP_Device*, uint64_t) {
          return static_cast<void*>(arena + sizeof(arena) / 2 + host_shift);
        };
        se.host_memory_deallocate = [](const capi::SP_Device*, void*) {};
      };
}

// Returns what the host says of a copy of a constant, which goes through host memory
// of the plug-in's.
std::string ProblemOfConstant(uint8_t minor, bool use_bfc_allocator = true) {
  const testing::ScopedFakeTensorFlow tensorflow;
  const testing::HostOptions options({2, minor});
  const auto host = Host::Register(&InitMisaligned, options).value();
  HostDevice::Options device_options;
  device_options.release = {2, minor};
  device_options.use_bfc_allocator = use_bfc_allocator;
  HostDevice device(*host->Device(0).value(), device_options);
  {
    const TF_Tensor x = device.CopyConstant(Floats({2}, {1, 2})).value();
    CHECK(Elements(device.CopyToHost(x).value()) == std::vector<float>{1, 2});
  }
  return std::string(device.Problems().message());
}

TEST_CASE("memory must be aligned to 256 bytes from 2.22 on") {
  const std::string end =
      " returned memory that is not aligned to 256 bytes: TensorFlow would "
      "abort";
  device_shift = host_shift = 256;
  CHECK(ProblemOfConstant(22) == "");
  for (const size_t shift : {64, 128}) {
    device_shift = 0;
    host_shift = shift;
    CHECK(ProblemOfConstant(21) == "");
    CHECK(ProblemOfConstant(22) == "host_memory_allocate" + end);
    device_shift = shift;
    host_shift = 0;
    CHECK(ProblemOfConstant(21) == "");
    CHECK(ProblemOfConstant(22) == "allocate" + end);
    // Without TensorFlow's allocator, the plug-in's memory is as it is.
    CHECK(ProblemOfConstant(22, /*use_bfc_allocator=*/false) == "");
  }
}

// ---- Virtual devices --------------------------------------------------------------

// Counts what the plug-in was called for.
struct Calls {
  int usage = 0, live_devices = 0, created_devices = 0, events = 0;
  std::string priorities;  // of the streams; "-" without one
  std::vector<uint64_t> allocated;
};
Calls calls;

class Event : public minimal::Event {
 public:
  Event() { ++calls.events; }
};
class Device;
class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {
 public:
  Stream(Device&, const StreamOptions& options) {
    calls.priorities +=
        options.has_priority ? std::to_string(options.priority) : "-";
  }
};
class Memory : public minimal::Memory {
 public:
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t space) override {
    calls.allocated.push_back(size);
    return minimal::Memory::Allocate(size, space);
  }
  absl::StatusOr<MemoryUsage> Usage() override {
    ++calls.usage;
    return minimal::Memory::Usage();
  }
};
class Device : public minimal::DeviceOf<Stream, Memory> {
 public:
  Device() {
    ++calls.created_devices;
    ++calls.live_devices;
  }
  ~Device() override { --calls.live_devices; }
};
class Platform : public minimal::PlatformOf<Device> {
 public:
  absl::StatusOr<int> DeviceCount() override { return 2; }
};

absl::StatusOr<std::unique_ptr<Host>> Create(
    uint8_t minor, const testing::VirtualDevices& virtual_devices) {
  calls = {};
  testing::HostOptions options({2, minor});
  options.virtual_devices = virtual_devices;
  auto host = Host::Register(
      &device_internal::PlatformRegistration<Platform>::InitPlugin, options);
  const absl::Status status = (*host)->CreateDevices();
  if (!status.ok()) return status;
  return host;
}

TEST_CASE("virtual devices share a device of the plug-in's, and nothing else") {
  const testing::ScopedFakeTensorFlow tensorflow;
  {
    const auto host = Create(22, {{{4 << 10, -3}, {8 << 10, {}}}, {}}).value();
    CHECK(host->devices().size() == 3);
    CHECK(calls.created_devices == 2);
    CHECK(calls.usage == 1);  // that of the second, which is not divided
    // tfplug has a stream of its own on each device of the plug-in's.
    CHECK(calls.priorities ==
          "--"
          "-3-3-3-3"
          "----"
          "----");
    CHECK(host->Device(0).value()->ordinal() == 0);
    CHECK(host->Device(1).value()->ordinal() == 0);
    CHECK(host->Device(2).value()->ordinal() == 1);
    CHECK(absl::IsNotFound(host->Device(3).status()));

    HostDevice first(*host->Device(0).value(), {});
    HostDevice second(*host->Device(1).value(), {}, &first);
    HostDevice third(*host->Device(2).value(), {});
    CHECK(first.SharesDevice(second.device()));
    CHECK_FALSE(first.SharesDevice(third.device()));
    CHECK(&first.events() == &second.events());
    CHECK(&first.events() != &third.events());
    const int events = calls.events;
    {
      const TF_Tensor x = first.CopyFromHost(Floats({2}, {1, 2})).value();
      const TF_Tensor y = first.CopyTo(second, x).value();
      const TF_Tensor z = second.CopyTo(third, y).value();
      CHECK(Elements(third.CopyToHost(z).value()) == std::vector<float>{1, 2});
    }
    CHECK(calls.allocated == std::vector<uint64_t>{4 << 10, 8 << 10, 1 << 20});
    CHECK(calls.events > events);
    // Each has its own limit.
    CHECK(first.Allocate(5 << 10) == nullptr);
    CHECK(second.Allocate(5 << 10) != nullptr);
    CHECK(second.Allocate(9 << 10) == nullptr);
  }
  CHECK(calls.live_devices == 0);
}

TEST_CASE("what TensorFlow does with settings for other numbers of devices") {
  const testing::ScopedFakeTensorFlow tensorflow;
  // Devices beyond the settings are not used.
  const auto fewer = Create(22, {{{4096, {}}}}).value();
  CHECK(fewer->devices().size() == 1);
  CHECK(calls.created_devices == 1);
  const absl::Status more =
      Create(22, {{}, {}, {{4096, {}}, {4096, {}}}}).status();
  CHECK(absl::IsInvalidArgument(more));
  CHECK(more.message() ==
        "Not enough devices to create virtual devices: the plug-in has 2, and "
        "there are settings for 3");
  // Earlier releases ignore them.
  const auto earlier = Create(21, {{{4096, 1}, {4096, 2}}}).value();
  CHECK(earlier->devices().size() == 2);
  CHECK(calls.usage == 2);
  CHECK(calls.priorities ==
        "--"
        "----"
        "----");
}

}  // namespace
}  // namespace tfplug::host_device_test
