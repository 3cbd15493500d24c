// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_MINIMAL_DEVICE_H_
#define TFPLUG_TESTS_MINIMAL_DEVICE_H_

#include <tfplug/plugin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// A device in host memory that overrides only the required hooks and runs all
// work immediately. Its classes can be combined with others.
namespace minimal {

// Records the calls on streams and events.
class Trace {
 public:
  struct Call {
    std::string hook;
    const void* self;
    const void* event;
  };

  static Trace& Get() {
    static Trace* const trace = new Trace;
    return *trace;
  }
  std::vector<Call> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(calls_, {});
  }
  // Records a call of `hook`, and fails if `fail` names it.
  absl::Status Reach(const std::string& hook, const void* self,
                     const void* event) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      calls_.push_back({hook, self, event});
    }
    // Gives other threads a chance to run.
    if (yields) std::this_thread::yield();
    return hook == fail ? absl::InternalError(hook) : absl::OkStatus();
  }

  std::string fail;    // the name of the hook that fails
  bool yields = true;  // false: for long tests with one thread

 private:
  std::mutex mutex_;
  std::vector<Call> calls_;
};

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return tfplug::EventStatus::kComplete;
  }
  absl::Status BlockHost() override {
    return Trace::Get().Reach("BlockHost", this, this);
  }
};

// Implements the required hooks on top of `Base`, a tfplug::Stream of `Self`.
template <class Self, class Base>
class StreamHooks : public Base {
 public:
  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(typename Base::Event& event) override {
    return Trace::Get().Reach("RecordEvent", this, &event);
  }
  absl::Status WaitForEvent(typename Base::Event& event) override {
    return Trace::Get().Reach("WaitForEvent", this, &event);
  }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    std::memcpy(dst.opaque(), src, size);
    return Trace::Get().Reach("Copy", this, nullptr);
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    std::memcpy(dst, src.opaque(), size);
    return Trace::Get().Reach("Copy", this, nullptr);
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    std::memcpy(dst.opaque(), src.opaque(), size);
    return Trace::Get().Reach("Copy", this, nullptr);
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    std::memset(dst.opaque(), pattern.value, size);
    return absl::OkStatus();
  }
  absl::Status RunOnHost(tfplug::HostTask task) override { return task.Run(); }
};

class Stream : public StreamHooks<Stream, tfplug::Stream<Stream, Event>> {};

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    constexpr uint64_t kMask = tfplug::kRequiredAlignment - 1;
    return tfplug::DeviceMemory(
        std::aligned_alloc(kMask + 1, (size + kMask) & ~kMask), size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    std::free(memory.opaque());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{1 << 20, 1 << 20};
  }
};

template <class StreamT, class MemoryT = Memory>
class DeviceOf : public tfplug::Device<StreamT, MemoryT> {
 public:
  absl::Status SynchronizeAllActivity() override {
    return Trace::Get().Reach("SynchronizeAllActivity", this, nullptr);
  }
};
using Device = DeviceOf<Stream>;

template <class DeviceT>
class PlatformOf : public tfplug::Platform<DeviceT> {
 public:
  static constexpr char kName[] = "MINIMAL";
  static constexpr char kType[] = "MINIMAL";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};
using Platform = PlatformOf<Device>;

}  // namespace minimal

#endif  // TFPLUG_TESTS_MINIMAL_DEVICE_H_
