// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "fixture.h"
#include "opencl.h"

// Host tasks of examples/opencl on the driver of this machine.
namespace {

TEST_CASE("the error of a host task is the stream's; later work is done") {
  tfplug::Fixture<opencl::Platform> fixture;
  tfplug::testing::FakeDevice& device = fixture.device();
  tfplug::testing::FakeStream& stream = fixture.stream();
  const auto event = device.CreateEvent().value();
  const int in = 42;
  int out = 0;
  const tfplug::DeviceMemory memory = device.Allocate(sizeof(in));
  CHECK(stream.CopyHostToDevice(memory, &in, sizeof(in)).ok());
  CHECK(stream.RunOnHost([] { return absl::InternalError("first"); }).ok());
  CHECK(stream.RunOnHost([] { return absl::InternalError("second"); }).ok());
  CHECK(stream.CopyDeviceToHost(&out, memory, sizeof(in)).ok());
  CHECK(stream.RecordEvent(*event).ok());
  CHECK(event->BlockHost().ok());
  CHECK(event->Poll() == tfplug::EventStatus::kComplete);
  CHECK(out == 42);
  for (const absl::Status& status :
       {stream.BlockHostUntilDone(), stream.GetStatus()}) {
    CHECK(absl::IsInternal(status));
    CHECK(status.message().find("first") != absl::string_view::npos);
  }
  // Other streams have no error.
  CHECK(device.host_to_device().GetStatus().ok());
  CHECK(device.host_to_device().BlockHostUntilDone().ok());
  device.Deallocate(memory);
}

}  // namespace
