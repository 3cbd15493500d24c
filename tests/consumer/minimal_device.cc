// SPDX-License-Identifier: Apache-2.0
// The smallest device: it uses host memory and completes all work before the
// call that enqueues it returns.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tfplug/plugin.h"

namespace {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;
using tfplug::DeviceMemory;

class Event : public tfplug::Event {
 public:
  StatusOr<tfplug::EventStatus> Poll() override {
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
    return Copy(dst.opaque(), src, size);
  }
  Status CopyDeviceToHost(void* dst, DeviceMemory src, uint64_t size) override {
    return Copy(dst, src.opaque(), size);
  }
  Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                            uint64_t size) override {
    return Copy(dst.opaque(), src.opaque(), size);
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
  Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }

 private:
  static Status Copy(void* dst, const void* src, uint64_t size) {
    std::memcpy(dst, src, size);
    return OkStatus();
  }
};

class Memory : public tfplug::Allocator {
 public:
  StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    void* memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
    if (memory == nullptr) return absl::ResourceExhaustedError("no memory");
    return DeviceMemory(memory, size);
  }
  Status Deallocate(DeviceMemory memory) override {
    std::free(memory.opaque());
    return OkStatus();
  }
  StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{int64_t{1} << 30, int64_t{1} << 30};
  }
};

class Device : public tfplug::Device<Stream, Memory> {};

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "MINIMAL";
  static constexpr char kType[] = "MINIMAL";
  StatusOr<int> DeviceCount() override { return 1; }
};

TFPLUG_REGISTER_DEVICE(Platform);

}  // namespace
