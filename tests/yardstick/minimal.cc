// SPDX-License-Identifier: Apache-2.0
//
// The least that is a device: host memory, one thread, nothing asynchronous.
// tools/bench weighs the library that it makes.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tfplug/plugin.h"

namespace {

using absl::OkStatus;
using absl::Status;
using tfplug::DeviceMemory;

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  Status BlockHost() override { return OkStatus(); }
};

class Stream : public tfplug::Stream<Stream, Event> {
 public:
  Status GetStatus() override { return OkStatus(); }
  Status RecordEvent(Event&) override { return OkStatus(); }
  Status WaitForEvent(Event&) override { return OkStatus(); }

  Status CopyHostToDevice(DeviceMemory dst, const void* src,
                          uint64_t size) override {
    std::memcpy(dst.opaque(), src, size);
    return OkStatus();
  }
  Status CopyDeviceToHost(void* dst, DeviceMemory src, uint64_t size) override {
    std::memcpy(dst, src.opaque(), size);
    return OkStatus();
  }
  Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                            uint64_t size) override {
    std::memmove(dst.opaque(), src.opaque(), size);
    return OkStatus();
  }
  Status Memset(DeviceMemory dst, tfplug::BytePattern pattern,
                uint64_t size) override {
    std::memset(dst.opaque(), pattern.value, size);
    return OkStatus();
  }
  Status Memset32(DeviceMemory dst, tfplug::WordPattern pattern,
                  uint64_t size) override {
    std::fill_n(dst.as<uint32_t>(), size / 4, pattern.value);
    return OkStatus();
  }

  Status RunOnHost(tfplug::HostTask task) override { return task(); }
};

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    void* memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == nullptr) return absl::ResourceExhaustedError("aligned_alloc");
    return DeviceMemory(memory, size);
  }
  void Deallocate(DeviceMemory memory) override { std::free(memory.opaque()); }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{int64_t{1} << 28, int64_t{1} << 28};
  }
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  Status SynchronizeAllActivity() override { return OkStatus(); }
};

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "MINIMAL";
  static constexpr char kType[] = "MINIMAL";

  absl::StatusOr<int> DeviceCount() override { return 1; }
};

}  // namespace

TFPLUG_REGISTER_DEVICE(Platform);
