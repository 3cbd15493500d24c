// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/device.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

namespace tfplug {
namespace {

using recording::Memory;
using recording::Record;
using Calls = std::vector<std::string>;
using Recording = Fixture<recording::Platform>;

TEST_CASE("a device is made and destroyed in order, its parts inside") {
  Calls made, destroyed;
  {
    testing::ScopedFakeTensorFlow core;
    testing::HostOptions options;
    options.create_streams = false;
    auto host =
        testing::Host::Register(
            &internal::PlatformRegistration<recording::Platform>::InitPlugin,
            options)
            .value();
    Record::Get().Take();
    REQUIRE(host->Device(1).ok());
    made = Record::Get().Take();
    host.reset();
    destroyed = Record::Get().Take();
  }
  // All synchronous copies are overridden: no stream of ours.
  CHECK(made == Calls{"+Device", "Device(1)", "Device::Init()", "+Memory",
                      "Memory()", "Memory::Init()", "HardwareName()",
                      "Vendor()", "PciBusId()", "DeviceCount()", "NumaNode()",
                      "MemoryBandwidth()", "Usage()"});
  CHECK(destroyed == Calls{"-Memory", "-Device", "-Platform"});
}

// A device that finds its driver in its platform.
class Attached;
class AttachedPlatform;
class Attached : public minimal::DeviceOf<minimal::Stream> {
 public:
  Attached(AttachedPlatform& platform, int ordinal);
  std::string HardwareName() override { return name_; }

 private:
  std::string name_;
};
class AttachedPlatform : public minimal::PlatformOf<Attached> {
 public:
  std::string driver = "a driver's ";
};
Attached::Attached(AttachedPlatform& platform, int ordinal)
    : name_(platform.driver + std::to_string(ordinal)) {}

TEST_CASE("a device made with its platform") {
  Fixture<AttachedPlatform> fixture;
  CHECK(fixture.device().hardware_name() == "a driver's 0");
}

TEST_CASE_FIXTURE(Recording, "what a device tells about itself") {
  CHECK(device().ordinal() == 0);
  CHECK(host().Device(1).value()->ordinal() == 1);
  CHECK(device().hardware_name() == "recorder");
  CHECK(device().vendor() == "tfplug tests");
  CHECK(device().pci_bus_id() == "0000:00:02.1");
  CHECK(device().NumaNode() == 3);
  CHECK(device().MemoryBandwidth() == 1 << 20);
  CHECK(device().Gflops() == 2.5);
}

TEST_CASE("what it says without being told") {
  Fixture<minimal::Platform> fixture;
  const capi::SP_Device* device = fixture.device().c_device();
  CHECK_FALSE(device->hardware_name);
  CHECK_FALSE(device->device_vendor);
  CHECK_FALSE(device->pci_bus_id);
  CHECK(fixture.device().NumaNode() == 0);
  CHECK_FALSE(fixture.device().MemoryBandwidth().has_value());
  CHECK_FALSE(fixture.device().Gflops().has_value());
}

TEST_CASE("names outlive the device") {
  const char* name = nullptr;
  {
    Recording fixture;
    name = fixture.device().c_device()->hardware_name;
  }
  CHECK(std::string(name) == "recorder");
  Recording again;
  CHECK(again.device().c_device()->hardware_name == name);  // No growth.
}

TEST_CASE_FIXTURE(Recording, "each synchronous slot calls its hook") {
  Record::Get().Take();
  const DeviceMemory a(Memory::Address(0x100), 1, 2);
  const DeviceMemory b(Memory::Address(0x200), 3);
  void* const host = Memory::Address(0x300);
  CHECK(device().CopyHostToDevice(a, host, 4).ok());
  CHECK(device().CopyDeviceToHost(host, a, 5).ok());
  CHECK(device().CopyDeviceToDevice(a, b, 6).ok());
  CHECK(device().SynchronizeAllActivity().ok());
  CHECK(Record::Get().Take() ==
        Calls{"CopyHostToDeviceSync(0x100/1/2, 0x300, 4)",
              "CopyDeviceToHostSync(0x300, 0x100/1/2, 5)",
              "CopyDeviceToDeviceSync(0x100/1/2, 0x200/3/0, 6)",
              "SynchronizeAllActivity()"});
}

// ---- Synchronous copies by default ----------------------------------------

class DefaultsFixture : public Fixture<minimal::Platform> {
 protected:
  DefaultsFixture() { minimal::Trace::Get().Take(); }
  ~DefaultsFixture() { minimal::Trace::Get().fail = ""; }

  char bytes_[4] = "abc", host_[4] = "xyz";
  DeviceMemory memory_{bytes_, 4};
};

TEST_CASE_FIXTURE(DefaultsFixture, "a copy, an event, a wait for it") {
  CHECK(device().CopyHostToDevice(memory_, "123", 4).ok());
  CHECK(std::string(bytes_) == "123");
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].hook == "Copy");
  CHECK(calls[1].hook == "RecordEvent");
  CHECK(calls[2].hook == "BlockHost");
  CHECK(calls[1].self == calls[0].self);
  CHECK(calls[2].self == calls[1].event);
  // A stream that core does not know.
  CHECK(calls[0].self != stream().handle());

  CHECK(device().CopyDeviceToHost(host_, memory_, 4).ok());
  CHECK(std::string(host_) == "123");
  char other[4] = "";
  CHECK(device().CopyDeviceToDevice(DeviceMemory(other, 4), memory_, 4).ok());
  CHECK(std::string(other) == "123");
  CHECK(minimal::Trace::Get().Take().size() == 6);
}

TEST_CASE_FIXTURE(DefaultsFixture, "the first failure ends it") {
  size_t calls = 0;
  for (const char* hook : {"Copy", "RecordEvent", "BlockHost"}) {
    minimal::Trace::Get().fail = hook;
    CHECK(device().CopyHostToDevice(memory_, "123", 4) ==
          absl::InternalError("sync_memcpy_htod: " + std::string(hook)));
    CHECK(minimal::Trace::Get().Take().size() == ++calls);
  }
}

TEST_CASE_FIXTURE(DefaultsFixture, "from many threads, one after the other") {
  const auto copy = [&] {
    for (int i = 0; i < 100; ++i) {
      CHECK(device().CopyHostToDevice(memory_, "123", 4).ok());
    }
  };
  std::thread a(copy), b(copy);
  a.join();
  b.join();
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 600);
  for (size_t i = 0; i < calls.size(); i += 3) {
    CHECK(calls[i].hook == "Copy");
    CHECK(calls[i + 2].hook == "BlockHost");
  }
}

// ---- How objects are made -------------------------------------------------

// Each part asks for what it may ask for where it may.
class AskingDevice;
class AskingStream
    : public minimal::StreamHooks<
          AskingStream, tfplug::Stream<AskingStream, minimal::Event>> {
 public:
  explicit AskingStream(AskingDevice& device);
};
class AskingMemory : public minimal::Memory {
 public:
  explicit AskingMemory(AskingDevice& device);
  int answer() const { return 42; }
  ~AskingMemory() override;

 private:
  AskingDevice& device_;
};
class AskingDevice : public minimal::DeviceOf<AskingStream, AskingMemory> {
 public:
  int answer() const { return 41; }
};
int stream_heard = 0, memory_heard = 0, memory_heard_last = 0;
AskingStream::AskingStream(AskingDevice& device) {
  stream_heard += device.allocator().answer();
}
AskingMemory::AskingMemory(AskingDevice& device) : device_(device) {
  memory_heard = device.answer();
}
AskingMemory::~AskingMemory() { memory_heard_last = device_.answer(); }

TEST_CASE("an allocator may use the device, a stream also the allocator") {
  stream_heard = memory_heard = memory_heard_last = 0;
  { Fixture<minimal::PlatformOf<AskingDevice>> fixture; }
  CHECK(stream_heard == 5 * 42);  // core's four and ours
  CHECK(memory_heard == 41);
  CHECK(memory_heard_last == 41);
}

struct alignas(128) Wide {
  char bytes[128];
};
class WideStream
    : public minimal::StreamHooks<WideStream,
                                  tfplug::Stream<WideStream, minimal::Event>> {
 public:
  WideStream() {
    if (reinterpret_cast<uintptr_t>(&wide_) % alignof(Wide) != 0) ++crooked;
  }
  static inline int crooked = 0;

 private:
  Wide wide_;
};

TEST_CASE("objects that want more alignment than malloc gives") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<WideStream>>> fixture;
  CHECK(WideStream::crooked == 0);
}

}  // namespace
}  // namespace tfplug
