// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/buffer_stream.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fixture.h"
#include "tfplug/plugin.h"

// A device whose memory has handles, and whose commands run at once.
namespace buffer_stream_test {
namespace {

using Buffer = std::vector<char>*;
using tfplug::DeviceMemory;

int commands = 0, submissions = 0;
uint64_t now_ns = 0;

struct Commands {
  using Handle = uint64_t*;
  static void Release(uint64_t* time) {
    --commands;
    delete time;
  }
  static absl::StatusOr<tfplug::EventStatus> Poll(uint64_t*) {
    return tfplug::EventStatus::kComplete;
  }
  static absl::Status BlockHost(uint64_t*) { return absl::OkStatus(); }
  static absl::StatusOr<tfplug::WorkTimes> GetTimes(uint64_t* time) {
    return tfplug::WorkTimes{*time, *time};
  }
};

struct Shared {
  tfplug::AddressSpace<Buffer> addresses;
};

class Stream final : public tfplug::BufferStream<Stream, Buffer, Commands> {
 public:
  explicit Stream(Shared& shared) : BufferStream(shared.addresses) {}

  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }
  absl::Status CopyToBuffer(Location to, const void* from,
                            uint64_t size) override {
    std::memcpy(to.handle->data() + to.offset, from, size);
    return absl::OkStatus();
  }
  absl::Status CopyFromBuffer(void* to, Location from, uint64_t size) override {
    std::memcpy(to, from.handle->data() + from.offset, size);
    return absl::OkStatus();
  }
  absl::Status CopyBuffer(Location to, Location from, uint64_t size) override {
    return CopyToBuffer(to, from.handle->data() + from.offset, size);
  }
  absl::Status FillBuffer(Location to, const void* pattern, size_t pattern_size,
                          uint64_t size) override {
    for (uint64_t i = 0; i < size; i += pattern_size) {
      std::memcpy(to.handle->data() + to.offset + i, pattern, pattern_size);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t*> Mark() override {
    ++commands;
    auto* const time = new uint64_t(++now_ns);
    if (uint64_t** const timed = Timer::Next(); timed != nullptr) {
      ++commands;
      *timed = new uint64_t(now_ns);
    }
    return time;
  }
  absl::Status Submit() override {
    ++submissions;
    return absl::OkStatus();
  }
  absl::Status WaitForCommand(uint64_t* command) override {
    waited_for = *command;
    return absl::OkStatus();
  }

  uint64_t waited_for = 0;
};

class Memory final : public tfplug::BufferAllocator<Memory, Buffer> {
 public:
  explicit Memory(Shared& shared) : BufferAllocator(shared.addresses) {}

  absl::StatusOr<Buffer> CreateBuffer(uint64_t size) override {
    if (size > kTotal) return absl::ResourceExhaustedError("full");
    return new std::vector<char>(size);
  }
  absl::Status ReleaseBuffer(Buffer buffer) override {
    delete buffer;
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> TotalMemory() override { return kTotal; }

  static constexpr uint64_t kTotal = 1 << 20;
};

// The streams and the memory of one device.
struct Fake {
  Shared shared;
  Stream stream{shared};
  Memory memory{shared};

  DeviceMemory Allocate(uint64_t size) {
    return memory.Allocate(size, 0).value();
  }
};

DeviceMemory At(DeviceMemory memory, uint64_t offset) {
  return DeviceMemory(static_cast<char*>(memory.opaque()) + offset,
                      memory.size() - offset);
}

TEST_CASE("BufferStream: copies and fills reach offsets in buffers") {
  Fake fake;
  const DeviceMemory a = fake.Allocate(16), b = fake.Allocate(16);
  CHECK(fake.stream.Memset(a, {'.'}, 16) == absl::OkStatus());
  CHECK(fake.stream.CopyHostToDevice(At(a, 3), "hello", 5) == absl::OkStatus());
  CHECK(fake.stream.Memset32(At(a, 12), {0x21212121}, 4) == absl::OkStatus());
  CHECK(fake.stream.CopyDeviceToDevice(At(b, 1), At(a, 1), 15) ==
        absl::OkStatus());
  char text[16] = {};
  CHECK(fake.stream.CopyDeviceToHost(text, At(b, 1), 15) == absl::OkStatus());
  CHECK(text == std::string("..hello....!!!!"));
  char other;
  CHECK(absl::IsInvalidArgument(
      fake.stream.CopyHostToDevice(DeviceMemory(&other, 1), "x", 1)));
  CHECK(absl::IsInvalidArgument(
      fake.stream.CopyDeviceToDevice(a, DeviceMemory(&other, 1), 1)));
  CHECK(absl::IsInvalidArgument(
      fake.stream.CopyHostToDevice(a, At(b, 1).opaque(), 1)));
  CHECK(absl::IsInvalidArgument(
      fake.stream.CopyDeviceToHost(At(b, 1).opaque(), a, 1)));
  CHECK(fake.memory.Deallocate(a) == absl::OkStatus());
  CHECK(fake.memory.Deallocate(b) == absl::OkStatus());
}

TEST_CASE("BufferStream: events are commands") {
  Fake fake;
  commands = submissions = 0;
  {
    Stream::Event event;
    CHECK(fake.stream.WaitForEvent(event) == absl::OkStatus());
    CHECK(fake.stream.waited_for == 0);
    CHECK(fake.stream.RecordEvent(event) == absl::OkStatus());
    CHECK(submissions == 1);
    CHECK(commands == 1);
    CHECK(fake.stream.WaitForEvent(event) == absl::OkStatus());
    CHECK(fake.stream.waited_for == now_ns);
    CHECK(fake.stream.GetTime().value() == now_ns);
    CHECK(commands == 1);
    Stream::Timer timer;
    CHECK(fake.stream.StartTimer(timer) == absl::OkStatus());
    CHECK(fake.stream.RecordEvent(event) == absl::OkStatus());
    CHECK(fake.stream.StopTimer(timer) == absl::OkStatus());
    CHECK(fake.stream.RecordEvent(event) == absl::OkStatus());
    CHECK(timer.GetTimes()->end_ns == now_ns - 1);
  }
  CHECK(commands == 0);
}

TEST_CASE("BufferAllocator: buffers have addresses") {
  Fake fake;
  const DeviceMemory memory = fake.Allocate(1000);
  CHECK(memory.size() == 1000);
  CHECK(fake.shared.addresses.Find(memory.opaque())->handle->size() == 1000);
  CHECK(fake.memory.Usage()->total == Memory::kTotal);
  CHECK(fake.memory.Usage()->free == Memory::kTotal - 1000);
  CHECK(absl::IsResourceExhausted(
      fake.memory.Allocate(Memory::kTotal + 1, 0).status()));
  CHECK(fake.memory.Deallocate(memory) == absl::OkStatus());
  CHECK(fake.memory.Usage()->free == Memory::kTotal);
  CHECK(absl::IsInvalidArgument(fake.memory.Deallocate(memory)));
}

struct Device final : tfplug::Device<Stream, Memory>, Shared {
  absl::StatusOr<uint64_t> GetTime() override { return now_ns; }
};
struct Platform final : tfplug::Platform<Device> {
  static constexpr char kName[] = "BUFFERS", kType[] = "BUFFERS";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};

TEST_CASE("BufferStream: a device of these classes works") {
  tfplug::Fixture<Platform> fixture;
  const DeviceMemory memory = fixture.device().Allocate(256);
  CHECK(fixture.device().compute().Memset32(memory, {7}, 256).ok());
  CHECK(fixture.device().compute().BlockHostUntilDone().ok());
  fixture.device().Deallocate(memory);
}

}  // namespace
}  // namespace buffer_stream_test
