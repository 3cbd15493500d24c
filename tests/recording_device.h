// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_RECORDING_DEVICE_H_
#define TFPLUG_TESTS_RECORDING_DEVICE_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/plugin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// A device that overrides every hook, records each call with its arguments, and
// can fail in any hook in any way.
namespace recording {

// The ways in which a hook fails.
enum class Fault { kNone, kStatus, kException, kBadAlloc, kUnknown };

class Record {
 public:
  static Record& Get() {
    static Record* const record = new Record;
    return *record;
  }

  // Returns the calls since the last Take: "Hook(argument, argument)".
  std::vector<std::string> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(calls_, {});
  }
  // Like Take, without the entries of constructors and destructors.
  std::vector<std::string> TakeHooks() {
    std::vector<std::string> hooks;
    for (std::string& call : Take()) {
      if (call[0] != '+' && call[0] != '-') hooks.push_back(std::move(call));
    }
    return hooks;
  }

  // Makes the next call of `hook` fail.
  void Fail(const std::string& hook, Fault fault) {
    std::lock_guard<std::mutex> lock(mutex_);
    failing_ = hook;
    fault_ = fault;
  }
  bool fault_was_reached() {
    std::lock_guard<std::mutex> lock(mutex_);
    return fault_ == Fault::kNone;
  }

  void Add(const std::string& call) {
    std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(call);
  }

  // Records a call, then fails if Fail has chosen it.
  template <class... Arguments>
  absl::Status Reach(const char* hook, const Arguments&... arguments) {
    std::ostringstream call;
    [[maybe_unused]] const char* separator = "";
    call << hook << "(";
    ((call << separator << arguments, separator = ", "), ...);
    call << ")";
    Add(call.str());
    Fault fault = Fault::kNone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (failing_ == hook) fault = std::exchange(fault_, Fault::kNone);
    }
    switch (fault) {
      case Fault::kNone:
        break;
      case Fault::kStatus:
        return absl::DataLossError("driver error 7");
#if defined(__cpp_exceptions)
      case Fault::kException:
        throw std::runtime_error("driver refused");
      case Fault::kBadAlloc:
        throw std::bad_alloc();
      case Fault::kUnknown:
        throw 42;
#else
      default:
        std::abort();
#endif
    }
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> calls_;
  std::string failing_;
  Fault fault_ = Fault::kNone;
};

template <class... Arguments>
absl::Status Reach(const char* hook, const Arguments&... arguments) {
  return Record::Get().Reach(hook, arguments...);
}

// For hooks that return no status and can only throw.
template <class... Arguments>
void ReachOrThrow(const char* hook, const Arguments&... arguments) {
  Record::Get().Reach(hook, arguments...).IgnoreError();
}

// Records the construction and destruction of an object: "+Name" and "-Name".
class Lifetime {
 public:
  explicit Lifetime(const char* name) : name_(name) {
    Record::Get().Add("+" + name_);
  }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { Record::Get().Add("-" + name_); }

 private:
  const std::string name_;
};

inline std::ostream& operator<<(std::ostream& os, tfplug::DeviceMemory m) {
  return os << m.opaque() << "/" << m.size() << "/" << m.payload();
}

}  // namespace recording

namespace tfplug {
using recording::operator<<;  // found by argument-dependent lookup
}

namespace recording {

class Device;

class Event : public tfplug::Event {
 public:
  explicit Event(Device&) { ReachOrThrow("Event"); }
  absl::Status Init() override { return Reach("Event::Init"); }
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Event::Poll", this));
    return tfplug::EventStatus::kPending;
  }
  absl::Status BlockHost() override { return Reach("Event::BlockHost", this); }

 private:
  Lifetime lifetime_{"Event"};
};

class Timer : public tfplug::Timer {
 public:
  explicit Timer(Device&) { ReachOrThrow("Timer"); }
  absl::Status Init() override { return Reach("Timer::Init"); }
  absl::StatusOr<uint64_t> Nanoseconds() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Timer::Nanoseconds", this));
    return 12345;
  }

 private:
  Lifetime lifetime_{"Timer"};
};

class Stream : public tfplug::Stream<Stream, Event, Timer> {
 public:
  explicit Stream(Device&) { ReachOrThrow("Stream"); }
  Stream(Device&, tfplug::StreamOptions options) {
    ReachOrThrow("Stream", options.has_priority, options.priority);
  }
  absl::Status Init() override { return Reach("Stream::Init"); }

  absl::Status GetStatus() override { return Reach("GetStatus", this); }
  absl::Status WaitForStream(Stream& other) override {
    return Reach("WaitForStream", this, &other);
  }
  absl::Status RecordEvent(Event& event) override {
    return Reach("RecordEvent", this, &event);
  }
  absl::Status WaitForEvent(Event& event) override {
    return Reach("WaitForEvent", this, &event);
  }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    return Reach("CopyHostToDevice", this, dst, src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    return Reach("CopyDeviceToHost", this, dst, src, size);
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    return Reach("CopyDeviceToDevice", this, dst, src, size);
  }
  absl::Status MemZero(tfplug::DeviceMemory dst, uint64_t size) override {
    return Reach("MemZero", this, dst, size);
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    return Reach("Memset", this, dst, int{pattern.value}, size);
  }
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override {
    return Reach("Memset32", this, dst, pattern.value, size);
  }
  absl::Status RunOnHost(tfplug::HostTask task) override {
    if (absl::Status status = Reach("RunOnHost", this); !status.ok()) {
      task.Release();  // After a failure the task must not run.
      return status;
    }
    task.Run().IgnoreError();
    return absl::OkStatus();
  }
  absl::Status BlockHostUntilDone() override {
    return Reach("BlockHostUntilDone", this);
  }
  absl::Status StartTimer(Timer& timer) override {
    return Reach("StartTimer", this, &timer);
  }
  absl::Status StopTimer(Timer& timer) override {
    return Reach("StopTimer", this, &timer);
  }

 private:
  Lifetime lifetime_{"Stream"};
};

// Returns invented addresses; nothing accesses the memory.
class Memory : public tfplug::Allocator {
 public:
  explicit Memory(Device&) { ReachOrThrow("Memory"); }
  absl::Status Init() override { return Reach("Memory::Init"); }

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t space) override {
    TFPLUG_RETURN_IF_ERROR(Reach("Allocate", size, space));
    return tfplug::DeviceMemory(Address(0x1000), size, 77);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    return Reach("Deallocate", memory);
  }
  absl::StatusOr<void*> AllocateHost(uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(Reach("AllocateHost", size));
    return Address(0x2000);
  }
  absl::Status DeallocateHost(void* memory) override {
    return Reach("DeallocateHost", memory);
  }
  absl::StatusOr<void*> AllocateUnified(uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(Reach("AllocateUnified", size));
    return Address(0x3000);
  }
  absl::Status DeallocateUnified(void* memory) override {
    return Reach("DeallocateUnified", memory);
  }
  absl::StatusOr<tfplug::AllocatorStats> Stats() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Stats"));
    tfplug::AllocatorStats stats;
    stats.num_allocs = 1;
    stats.bytes_in_use = 2;
    stats.peak_bytes_in_use = 3;
    stats.largest_alloc_size = 4;
    stats.bytes_limit = 5;
    stats.bytes_reserved = 6;
    stats.peak_bytes_reserved = 7;
    stats.bytes_reservable_limit = 8;
    stats.largest_free_block_bytes = 9;
    return stats;
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Usage"));
    tfplug::MemoryUsage usage;
    usage.free = 10;
    usage.total = 11;
    return usage;
  }

  static void* Address(uintptr_t address) {
    return reinterpret_cast<void*>(address);
  }

 private:
  Lifetime lifetime_{"Memory"};
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  explicit Device(int ordinal) { ReachOrThrow("Device", ordinal); }
  absl::Status Init() override { return Reach("Device::Init"); }

  std::string HardwareName() override {
    ReachOrThrow("HardwareName");
    return "recorder";
  }
  std::string Vendor() override {
    ReachOrThrow("Vendor");
    return "tfplug tests";
  }
  std::string PciBusId() override {
    ReachOrThrow("PciBusId");
    return "0000:00:02.1";
  }
  int32_t NumaNode() override {
    ReachOrThrow("NumaNode");
    return 3;
  }
  int64_t MemoryBandwidth() override {
    ReachOrThrow("MemoryBandwidth");
    return 1 << 20;
  }
  double Gflops() override {
    ReachOrThrow("Gflops");
    return 2.5;
  }
  absl::Status SynchronizeAllActivity() override {
    return Reach("SynchronizeAllActivity");
  }
  absl::Status CopyHostToDeviceSync(tfplug::DeviceMemory dst, const void* src,
                                    uint64_t size) override {
    return Reach("CopyHostToDeviceSync", dst, src, size);
  }
  absl::Status CopyDeviceToHostSync(void* dst, tfplug::DeviceMemory src,
                                    uint64_t size) override {
    return Reach("CopyDeviceToHostSync", dst, src, size);
  }
  absl::Status CopyDeviceToDeviceSync(tfplug::DeviceMemory dst,
                                      tfplug::DeviceMemory src,
                                      uint64_t size) override {
    return Reach("CopyDeviceToDeviceSync", dst, src, size);
  }

 private:
  Lifetime lifetime_{"Device"};
};

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "RECORDING_PLATFORM";
  static constexpr char kType[] = "RECORDER";

  Platform() { ReachOrThrow("Platform"); }
  absl::Status Init() override { return Reach("Platform::Init"); }
  tfplug::PlatformOptions Options() override {
    ReachOrThrow("Options");
    tfplug::PlatformOptions options;
    options.use_bfc_allocator = false;
    options.force_memory_growth = true;
    return options;
  }
  absl::StatusOr<int> DeviceCount() override {
    TFPLUG_RETURN_IF_ERROR(Reach("DeviceCount"));
    return 2;
  }

 private:
  Lifetime lifetime_{"Platform"};
};

}  // namespace recording

#endif  // TFPLUG_TESTS_RECORDING_DEVICE_H_
