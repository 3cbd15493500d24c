// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/stream.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

namespace tfplug::stream_test {
namespace {

using recording::Memory;
using recording::Record;
using Calls = std::vector<std::string>;
using Recording = Fixture<recording::Platform>;

// Returns "Hook(argument, argument)", in the format of Record.
template <class... Arguments>
std::string Call(const char* hook, const Arguments&... arguments) {
  std::ostringstream text;
  [[maybe_unused]] const char* separator = "";
  text << hook << "(";
  ((text << separator << arguments, separator = ", "), ...);
  text << ")";
  return text.str();
}

class StreamFixture : public Recording {
 protected:
  StreamFixture() { Record::Get().Take(); }

  const void* const self_ = stream().handle();
  DeviceMemory a_{Memory::Address(0x100), 1, 2}, b_{Memory::Address(0x200), 3};
  char host_[8] = {};
};

TEST_CASE_FIXTURE(StreamFixture,
                  "each slot calls its hook with its arguments") {
  auto other = device().CreateStream().value();
  auto event = device().CreateEvent().value();
  auto timer = device().CreateTimer().value();
  const void* const host = host_;
  Record::Get().Take();

  CHECK(stream().GetStatus().ok());
  CHECK(stream().RecordEvent(*event).ok());
  CHECK(stream().WaitForEvent(*event).ok());
  CHECK(stream().WaitForStream(*other).ok());
  CHECK(stream().CopyHostToDevice(a_, host_, 4).ok());
  CHECK(stream().CopyDeviceToHost(host_, a_, 5).ok());
  CHECK(stream().CopyDeviceToDevice(a_, b_, 6).ok());
  CHECK(stream().MemZero(a_, 7).ok());
  CHECK(stream().Memset(a_, BytePattern{200}, 8).ok());
  CHECK(stream().Memset32(a_, WordPattern{3000000000u}, 16).ok());
  CHECK(stream().BlockHostUntilDone().ok());
  CHECK(stream().StartTimer(*timer).ok());
  CHECK(stream().StopTimer(*timer).ok());

  const void* const c_event = event->handle();
  const void* const c_timer = timer->handle();
  CHECK(Record::Get().Take() ==
        Calls{
            Call("GetStatus", self_),
            Call("RecordEvent", self_, c_event),
            Call("WaitForEvent", self_, c_event),
            Call("WaitForStream", self_,
                 static_cast<const void*>(other->handle())),
            Call("CopyHostToDevice", self_, a_, host, 4),
            Call("CopyDeviceToHost", self_, host, a_, 5),
            Call("CopyDeviceToDevice", self_, a_, b_, 6),
            Call("MemZero", self_, a_, 7),
            Call("Memset", self_, a_, 200, 8),
            Call("Memset32", self_, a_, 3000000000u, 16),
            Call("BlockHostUntilDone", self_),
            Call("StartTimer", self_, c_timer),
            Call("StopTimer", self_, c_timer),
        });
}

TEST_CASE_FIXTURE(StreamFixture, "RunOnHost receives TensorFlow's task") {
  int runs = 0;
  CHECK(stream()
            .RunOnHost([&] {
              ++runs;
              return absl::OkStatus();
            })
            .ok());
  CHECK(runs == 1);
  CHECK(Record::Get().Take() == Calls{Call("RunOnHost", self_)});
}

TEST_CASE_FIXTURE(StreamFixture, "a stream is created and destroyed") {
  const Calls created = {"+Stream", "Stream(0, 0)", "Stream::Init()"};
  auto stream = device().CreateStream().value();
  CHECK(Record::Get().Take() == created);
  const void* const handle = stream->handle();
  stream.reset();
  CHECK(Record::Get().Take() ==
        Calls{Call("BlockHostUntilDone", handle), "-Stream"});
}

TEST_CASE("a constructor that takes StreamOptions gets TensorFlow's options") {
  testing::HostOptions options;
  options.sizes = testing::StructSizes({2, 22});
  Recording fixture(options);
  Record::Get().Take();
  StreamOptions ours;
  ours.has_priority = true;
  ours.priority = -5;
  auto stream = fixture.device().CreateStream(ours).value();
  const void* const handle = stream->handle();
  stream.reset();
  CHECK(Record::Get().Take() ==
        Calls{"+Stream", "Stream(1, -5)", "Stream::Init()",
              Call("BlockHostUntilDone", handle), "-Stream"});
}

TEST_CASE(
    "create_stream_with_options is null without such a constructor, and in "
    "releases before 2.22") {
  const auto is_null = [](testing::Host& host) {
    return host.stream_executor().create_stream_with_options == nullptr;
  };
  CHECK_FALSE(is_null(Recording().host()));
  CHECK(is_null(Fixture<minimal::Platform>().host()));
  testing::HostOptions options;
  options.sizes = testing::StructSizes({2, 21});
  CHECK(is_null(Recording(options).host()));
}

TEST_CASE("create_stream_with_options refuses a smaller SP_StreamOptions") {
  testing::HostOptions options;
  options.sizes.stream_options = 16;
  options.create_streams = false;
  Recording fixture(options);
  const auto stream = fixture.device().CreateStream(StreamOptions());
  CHECK(stream.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(
      stream.status().message() ==
      "create_stream_with_options: this TensorFlow's SP_StreamOptions has 16 "
      "bytes, fewer than in any release (24 in 2.22): install TensorFlow 2.22 "
      "or newer");
}

bool HasBlockHostUntilDone(const testing::Host& host) {
  return host.stream_executor().block_host_until_done != nullptr;
}

// ---- Defaults -----------------------------------------------------------

class DefaultsFixture : public Fixture<minimal::Platform> {
 protected:
  DefaultsFixture() { minimal::Trace::Get().Take(); }
};

TEST_CASE_FIXTURE(DefaultsFixture,
                  "WaitForStream records a fence and waits for it") {
  auto other = device().CreateStream().value();
  CHECK(stream().WaitForStream(*other).ok());
  const auto first = minimal::Trace::Get().Take();
  REQUIRE(first.size() == 2);
  CHECK(first[0].hook == "RecordEvent");
  CHECK(first[0].self == other->handle());
  CHECK(first[1].hook == "WaitForEvent");
  CHECK(first[1].self == stream().handle());
  CHECK(first[0].event == first[1].event);
  CHECK(first[0].event != nullptr);
  // The other stream owns the fence, which is created once.
  CHECK(device().host_to_device().WaitForStream(*other).ok());
  CHECK(minimal::Trace::Get().Take()[0].event == first[0].event);
  CHECK(other->WaitForStream(stream()).ok());
  CHECK(minimal::Trace::Get().Take()[0].event != first[0].event);
}

TEST_CASE_FIXTURE(DefaultsFixture, "WaitForStream returns the first failure") {
  auto other = device().CreateStream().value();
  minimal::Trace::Get().fail = "RecordEvent";
  CHECK(stream().WaitForStream(*other) ==
        absl::InternalError("create_stream_dependency: RecordEvent"));
  CHECK(minimal::Trace::Get().Take().size() == 1);
  minimal::Trace::Get().fail = "WaitForEvent";
  CHECK(stream().WaitForStream(*other) ==
        absl::InternalError("create_stream_dependency: WaitForEvent"));
  minimal::Trace::Get().fail = "";
}

// TensorFlow polls the event even after a failure, so the work must be done by
// then.
TEST_CASE_FIXTURE(DefaultsFixture,
                  "record_event waits for the device after a failure") {
  auto event = device().CreateEvent().value();
  minimal::Trace::Get().Take();
  CHECK(stream().RecordEvent(*event).ok());
  CHECK(minimal::Trace::Get().Take().size() == 1);
  minimal::Trace::Get().fail = "RecordEvent";
  CHECK(stream().RecordEvent(*event) ==
        absl::InternalError("record_event: RecordEvent"));
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 2);
  CHECK(calls[1].hook == "SynchronizeAllActivity");
  minimal::Trace::Get().fail = "";
}

TEST_CASE_FIXTURE(DefaultsFixture, "WaitForStream is thread-safe") {
  auto other = device().CreateStream().value();
  minimal::Trace::Get().Take();
  const auto wait = [&](testing::FakeStream& waiting) {
    for (int i = 0; i < 100; ++i) CHECK(waiting.WaitForStream(*other).ok());
  };
  std::thread a([&] { wait(device().host_to_device()); });
  std::thread b([&] { wait(device().device_to_host()); });
  a.join();
  b.join();
  // No other thread records the fence between RecordEvent and WaitForEvent.
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 400);
  for (size_t i = 0; i < calls.size(); i += 2) {
    CHECK(calls[i].hook == "RecordEvent");
    CHECK(calls[i + 1].hook == "WaitForEvent");
  }
}

TEST_CASE_FIXTURE(DefaultsFixture, "MemZero is Memset with zero") {
  char bytes[3] = {1, 1, 1};
  CHECK(stream().MemZero(DeviceMemory(bytes, 3), 2).ok());
  CHECK(bytes[0] == 0);
  CHECK(bytes[1] == 0);
  CHECK(bytes[2] == 1);
}

TEST_CASE_FIXTURE(DefaultsFixture, "Memset32 is Memset for equal bytes") {
  unsigned char bytes[5] = {};
  const DeviceMemory memory(bytes, 5);
  CHECK(stream().Memset32(memory, WordPattern{0xabababab}, 4).ok());
  CHECK(bytes[0] == 0xab);
  CHECK(bytes[3] == 0xab);
  CHECK(bytes[4] == 0);
  CHECK(stream().Memset32(memory, WordPattern{0}, 4).ok());
  CHECK(bytes[3] == 0);
}

TEST_CASE_FIXTURE(DefaultsFixture, "Memset32 copies what it has filled") {
  for (uint32_t pattern : {0xab0000abu, 0xabababacu, 0xacabababu}) {
    for (uint64_t count : {0, 1, 2, 3, 5, 8, 100}) {
      std::vector<uint32_t> words(count + 1, 7), expected(count, pattern);
      expected.push_back(7);
      CHECK(stream()
                .Memset32(DeviceMemory(words.data(), 4 * count),
                          WordPattern{pattern}, 4 * count)
                .ok());
      CHECK(words == expected);
    }
  }
  char bytes[4] = {};
  CHECK(absl::IsInvalidArgument(
      stream().Memset32(DeviceMemory(bytes, 4), WordPattern{1}, 3)));
}

TEST_CASE_FIXTURE(
    DefaultsFixture,
    "block_host_until_done is null, and TensorFlow uses an event") {
  CHECK_FALSE(HasBlockHostUntilDone(host()));
  CHECK(stream().BlockHostUntilDone().ok());
  const auto calls = minimal::Trace::Get().Take();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].hook == "RecordEvent");
  CHECK(calls[1].hook == "BlockHost");
}

TEST_CASE_FIXTURE(DefaultsFixture,
                  "a device without a timer class uses HostTimer") {
  auto timer = device().CreateTimer().value();
  CHECK(timer->Nanoseconds() == 0);
  REQUIRE(log().lines().size() == 1);
  CHECK(log().lines()[0] ==
        "tfplug: nanoseconds: FAILED_PRECONDITION: the timer was not started "
        "and stopped");
  CHECK(stream().StartTimer(*timer).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(stream().StopTimer(*timer).ok());
  CHECK(timer->Nanoseconds() >= 2'000'000);
  CHECK(timer->Nanoseconds() < 2'000'000'000);
}

// ---- Overrides in any base class -----------------------------------------

// A vendor's base class between tfplug::Stream and the most derived class.
template <class Self>
class Between : public tfplug::Stream<Self, minimal::Event> {
 public:
  absl::Status BlockHostUntilDone() override { return absl::OkStatus(); }
  absl::Status WaitForStream(Self&) override {
    return absl::AbortedError("between");
  }
};
class Derived : public minimal::StreamHooks<Derived, Between<Derived>> {};
using DerivedPlatform = minimal::PlatformOf<minimal::DeviceOf<Derived>>;

TEST_CASE("a hook may be overridden in the author's base class") {
  Fixture<DerivedPlatform> fixture;
  CHECK(HasBlockHostUntilDone(fixture.host()));
  CHECK(fixture.stream().WaitForStream(fixture.device().host_to_device()) ==
        absl::AbortedError("create_stream_dependency: between"));
}

}  // namespace
}  // namespace tfplug::stream_test
