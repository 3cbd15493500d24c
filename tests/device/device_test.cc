// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/device.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

namespace tfplug::device_test {
namespace {

using recording::Memory;
using recording::Record;
using Calls = std::vector<std::string>;
using Recording = Fixture<recording::Platform>;

TEST_CASE("a device and its parts are constructed and destroyed in order") {
  Calls constructed, destroyed;
  {
    testing::ScopedFakeTensorFlow fake;
    testing::HostOptions options;
    options.create_streams = false;
    auto host = testing::Host::Register(&device_internal::PlatformRegistration<
                                            recording::Platform>::InitPlugin,
                                        options)
                    .value();
    Record::Get().Take();
    REQUIRE(host->Device(1).ok());
    constructed = Record::Get().Take();
    host.reset();
    destroyed = Record::Get().Take();
  }
  // All synchronous copies are overridden, so no stream is created for them.
  CHECK(constructed == Calls{"DeviceCount()", "+Device", "Device(1)",
                             "Device::Init()", "+Memory", "Memory()",
                             "Memory::Init()", "HardwareName()", "Vendor()",
                             "PciBusId()", "Usage()", "DeviceCount()",
                             "NumaNode()", "MemoryBandwidth()"});
  CHECK(destroyed == Calls{"-Memory", "-Device", "-Platform"});
}

// A device that gets its driver from its platform.
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

TEST_CASE("a device may be constructed with its platform") {
  Fixture<AttachedPlatform> fixture;
  CHECK(fixture.device().hardware_name() == "a driver's 0");
}

// The following parts record their construction and destruction. tfplug creates
// a stream and an event for the synchronous copies.
class OrderEvent : public minimal::Event {
 private:
  recording::Lifetime lifetime_{"Event"};
};
class OrderStream
    : public minimal::StreamHooks<OrderStream,
                                  tfplug::Stream<OrderStream, OrderEvent>> {
 private:
  recording::Lifetime lifetime_{"Stream"};
};
class OrderMemory : public minimal::Memory {
 private:
  recording::Lifetime lifetime_{"Memory"};
};
class OrderDevice : public minimal::DeviceOf<OrderStream, OrderMemory> {
 private:
  recording::Lifetime lifetime_{"Device"};
};

TEST_CASE(
    "streams and events are destroyed before the allocator and the device") {
  testing::ScopedFakeTensorFlow fake;
  testing::HostOptions options;
  options.create_streams = false;
  auto host =
      testing::Host::Register(&device_internal::PlatformRegistration<
                                  minimal::PlatformOf<OrderDevice>>::InitPlugin,
                              options)
          .value();
  Record::Get().Take();
  REQUIRE(host->Device(0).ok());
  CHECK(Record::Get().Take() ==
        Calls{"+Device", "+Memory", "+Stream", "+Event"});
  host.reset();
  CHECK(Record::Get().Take() ==
        Calls{"-Event", "-Stream", "-Memory", "-Device"});
}

TEST_CASE_FIXTURE(Recording, "the properties of a device reach TensorFlow") {
  CHECK(device().ordinal() == 0);
  CHECK(host().Device(1).value()->ordinal() == 1);
  CHECK(device().hardware_name() == "recorder");
  CHECK(device().vendor() == "tfplug tests");
  CHECK(device().pci_bus_id() == "0000:00:02.1");
  CHECK(device().NumaNode() == 3);
  CHECK(device().MemoryBandwidth() == 1 << 20);
  CHECK(device().Gflops() == 2.5);
}

TEST_CASE("properties that are not overridden have their defaults") {
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
  CHECK(again.device().c_device()->hardware_name == name);  // interned once
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

// ---- The defaults of synchronous copies -----------------------------------

class DefaultsFixture : public Fixture<minimal::Platform> {
 protected:
  DefaultsFixture() { minimal::Trace::Get().Take(); }
  ~DefaultsFixture() { minimal::Trace::Get().fail = ""; }

  char bytes_[4] = "abc", host_[4] = "xyz";
  DeviceMemory memory_{bytes_, 4};
};

TEST_CASE_FIXTURE(
    DefaultsFixture,
    "a synchronous copy enqueues, records an event and waits for it") {
  CHECK(device().CopyHostToDevice(memory_, "123", 4).ok());
  CHECK(std::string(bytes_) == "123");
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].hook == "Copy");
  CHECK(calls[1].hook == "RecordEvent");
  CHECK(calls[2].hook == "BlockHost");
  CHECK(calls[1].self == calls[0].self);
  CHECK(calls[2].self == calls[1].event);
  // The stream belongs to tfplug; TensorFlow has no handle for it.
  CHECK(calls[0].self != stream().handle());

  CHECK(device().CopyDeviceToHost(host_, memory_, 4).ok());
  CHECK(std::string(host_) == "123");
  char other[4] = "";
  CHECK(device().CopyDeviceToDevice(DeviceMemory(other, 4), memory_, 4).ok());
  CHECK(std::string(other) == "123");
  CHECK(minimal::Trace::Get().Take().size() == 6);
}

TEST_CASE_FIXTURE(DefaultsFixture,
                  "a synchronous copy returns the first failure") {
  size_t calls = 0;
  for (const char* hook : {"Copy", "RecordEvent", "BlockHost"}) {
    minimal::Trace::Get().fail = hook;
    CHECK(device().CopyHostToDevice(memory_, "123", 4) ==
          absl::InternalError("sync_memcpy_htod: " + std::string(hook)));
    CHECK(minimal::Trace::Get().Take().size() == ++calls);
  }
}

TEST_CASE_FIXTURE(
    DefaultsFixture,
    "synchronous copies from many threads run one after the other") {
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

// ---- The default of SynchronizeAllActivity --------------------------------

class WaitingDevice : public tfplug::Device<minimal::Stream, minimal::Memory> {
 public:
  static constexpr bool kUploadsWaitForKernels = false;
};

TEST_CASE("a device waits for each of its streams") {
  Fixture<minimal::PlatformOf<WaitingDevice>> fixture;
  auto second = fixture.device().CreateStream();
  REQUIRE(second.ok());
  auto& trace = minimal::Trace::Get();
  trace.Take();
  CHECK(fixture.device().SynchronizeAllActivity().ok());
  const auto calls = trace.Take();
  REQUIRE(calls.size() >= 6);
  const auto& record = calls[calls.size() - 2];
  CHECK(record.hook == "RecordEvent");
  CHECK(calls.back().hook == "BlockHost");
  CHECK(calls.back().self == record.event);
  std::set<const void*> streams;
  for (size_t i = 0; i + 2 < calls.size(); i += 2) {
    CHECK(calls[i].hook == "RecordEvent");
    CHECK(calls[i + 1].hook == "WaitForEvent");
    CHECK(calls[i + 1].self == record.self);
    CHECK(calls[i + 1].event == calls[i].event);
    streams.insert(calls[i].self);
  }
  CHECK(streams.count(fixture.stream().handle()) == 1);
  CHECK(streams.count((*second)->handle()) == 1);

  second->reset();
  trace.Take();
  CHECK(fixture.device().SynchronizeAllActivity().ok());
  CHECK(trace.Take().size() == calls.size() - 2);

  trace.fail = "WaitForEvent";
  CHECK(fixture.device().SynchronizeAllActivity() ==
        absl::InternalError("synchronize_all_activity: WaitForEvent"));
  trace.fail = "";
}

// ---- Construction ----------------------------------------------------------

// Parts that use the device and its allocator as early as they are allowed to.
class UsingDevice;
class UsingStream
    : public minimal::StreamHooks<UsingStream,
                                  tfplug::Stream<UsingStream, minimal::Event>> {
 public:
  explicit UsingStream(UsingDevice& device);
};
class UsingMemory : public minimal::Memory {
 public:
  explicit UsingMemory(UsingDevice& device);
  int answer() const { return 42; }
  ~UsingMemory() override;

 private:
  UsingDevice& device_;
};
class UsingDevice : public minimal::DeviceOf<UsingStream, UsingMemory> {
 public:
  int answer() const { return 41; }
};
int stream_read = 0, memory_read = 0, memory_read_last = 0;
UsingStream::UsingStream(UsingDevice& device) {
  stream_read += device.allocator().answer();
}
UsingMemory::UsingMemory(UsingDevice& device) : device_(device) {
  memory_read = device.answer();
}
UsingMemory::~UsingMemory() { memory_read_last = device_.answer(); }

TEST_CASE("an allocator may use the device; a stream may use both") {
  stream_read = memory_read = memory_read_last = 0;
  { Fixture<minimal::PlatformOf<UsingDevice>> fixture; }
  CHECK(stream_read == 5 * 42);  // TensorFlow's four and tfplug's
  CHECK(memory_read == 41);
  CHECK(memory_read_last == 41);
}

struct alignas(128) Wide {
  char bytes[128];
};
class WideStream
    : public minimal::StreamHooks<WideStream,
                                  tfplug::Stream<WideStream, minimal::Event>> {
 public:
  WideStream() {
    if (reinterpret_cast<uintptr_t>(&wide_) % alignof(Wide) != 0) ++misaligned;
  }
  static inline int misaligned = 0;

 private:
  Wide wide_;
};

TEST_CASE("objects may need a larger alignment than malloc's") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<WideStream>>> fixture;
  CHECK(WideStream::misaligned == 0);
}

}  // namespace
}  // namespace tfplug::device_test
