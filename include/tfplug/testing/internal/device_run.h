// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_DEVICE_RUN_H_
#define TFPLUG_TESTING_INTERNAL_DEVICE_RUN_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/device_program.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

using Bytes = std::vector<unsigned char>;

// Runs programs on a device and, step by step, on a model of it.
class DeviceRun {
 public:
  static constexpr int64_t kBufferSize = 1 << 20;

  explicit DeviceRun(FakeDevice& device) : device_(device) {
    for (Bytes& buffer : host_) buffer.resize(kBufferSize);
    for (Bytes& buffer : found_) buffer.resize(kBufferSize);
    uint64_t value = 1;
    for (Bytes& buffer : initial_) {
      buffer.resize(kBufferSize);
      for (unsigned char& byte : buffer) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<unsigned char>(value >> 56);
      }
    }
  }
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun() {
    for (DeviceMemory memory : memory_) {
      if (memory.opaque() != nullptr) device_.Deallocate(memory);
    }
  }

  absl::Status Init() {
    for (DeviceMemory& memory : memory_) {
      memory = device_.Allocate(kBufferSize);
      if (memory.opaque() == nullptr) {
        return absl::ResourceExhaustedError(
            "the device allocated no memory; CheckDevice needs 4 MiB");
      }
    }
    return absl::OkStatus();
  }

  bool HasFills() const { return device_.fns().mem_zero != nullptr; }
  // Returns whether the device sets words of four different bytes, which is
  // optional.
  bool HasMemset32() {
    const absl::Status status = device_.compute().Memset32(
        memory_[0], WordPattern{0x01020304}, /*size=*/4);
    // Waits in two ways, as Drain does: the program follows at once.
    return device_.compute().BlockHostUntilDone().ok() &&
           device_.SynchronizeAllActivity().ok() &&
           !absl::IsUnimplemented(status);
  }

  // Returns the first difference between the device and the model in buffers of
  // `buffer_size` bytes; "" if there is none.
  std::string Run(const DeviceProgram& program, int64_t buffer_size) {
    failure_.clear();
    expected_.clear();
    size_ = static_cast<size_t>(buffer_size);
    if (absl::Status status = SetUp(); !status.ok()) Fail("", status);
    for (size_t i = 0; i < program.size() && !has_failed(); ++i) {
      const std::string step = "Step " + std::to_string(i + 1);
      if (absl::Status status = RunStep(program[i], step); !status.ok()) {
        Fail(step + " returned ", status);
      }
    }
    Drain();
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      Bytes& found = found_[static_cast<size_t>(buffer)];
      if (absl::Status status = device_.CopyDeviceToHost(
              found.data(), memory_[static_cast<size_t>(buffer)], size_);
          !status.ok()) {
        Fail("CopyDeviceToHostSync returned ", status);
      }
    }
    Synchronize();
    for (int buffer = 0; buffer < 2 * kBuffers; ++buffer) {
      const Bytes& found = buffer < kBuffers
                               ? found_[static_cast<size_t>(buffer)]
                               : Host(buffer);
      Compare("In the end", buffer, 0, found.data(), size_,
              Model(buffer).data());
    }
    std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  Bytes& Host(int buffer) {
    return host_[static_cast<size_t>(buffer - kBuffers)];
  }
  Bytes& Model(int buffer) { return model_[static_cast<size_t>(buffer)]; }
  DeviceMemory Memory(int buffer, int64_t at) const {
    const DeviceMemory all = memory_[static_cast<size_t>(buffer)];
    return DeviceMemory(static_cast<char*>(all.opaque()) + at,
                        all.size() - static_cast<uint64_t>(at), all.payload());
  }

  bool has_failed() {
    std::lock_guard<std::mutex> lock(mutex_);
    return !failure_.empty();
  }
  void Fail(const std::string& text, const absl::Status& status = {}) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = text + (status.ok() ? "" : status.ToString());
  }
  void Compare(const std::string& when, int buffer, int64_t at,
               const unsigned char* found, size_t size,
               const unsigned char* expected) {
    if (std::memcmp(found, expected, size) == 0) return;
    const auto* const wrong =
        std::mismatch(found, found + size, expected).first;
    if (wrong == found + size) return;  // it has become equal
    const int64_t i = wrong - found;
    Fail(when + ", byte " + std::to_string(at + i) + " of " +
         BufferText(buffer, 0) + " is " + std::to_string(found[i]) +
         " instead of " + std::to_string(expected[i]) + ".");
  }
  static void Write(unsigned char* to, int64_t size, uint32_t pattern) {
    constexpr int64_t kPeriod = 256;
    for (int64_t i = 0; i < std::min(size, kPeriod); ++i) {
      to[i] = static_cast<unsigned char>(pattern + 37 * i);
    }
    for (int64_t i = kPeriod; i < size; i += kPeriod) {
      std::memcpy(to + i, to, static_cast<size_t>(std::min(kPeriod, size - i)));
    }
  }

  // Gives all buffers known and different contents.
  absl::Status SetUp() {
    for (int buffer = 0; buffer < 2 * kBuffers; ++buffer) {
      const Bytes& initial = initial_[static_cast<size_t>(buffer)];
      Model(buffer).assign(initial.data(), initial.data() + size_);
      if (buffer >= kBuffers) {
        std::memcpy(Host(buffer).data(), initial.data(), size_);
      } else if (absl::Status status = device_.CopyHostToDevice(
                     Memory(buffer, 0), initial.data(), size_);
                 !status.ok()) {
        return status;
      }
    }
    Synchronize();
    for (auto& event : events_) {
      auto created = device_.CreateEvent();
      if (!created.ok()) return created.status();
      event = *std::move(created);
    }
    return absl::OkStatus();
  }

  FakeStream& Stream(int stream) {
    FakeStream* const streams[] = {
        &device_.compute(), &device_.host_to_device(),
        &device_.device_to_host(), &device_.device_to_device()};
    return *streams[stream];
  }

  // Runs one step on the model and then on the device.
  absl::Status RunStep(const Step& step, const std::string& name) {
    const auto size = static_cast<size_t>(step.size);
    const auto bytes = static_cast<uint64_t>(step.size);
    const uint8_t byte = step.pattern & 0xff;
    FakeStream& stream = Stream(step.stream);
    FakeEvent& event = *events_[static_cast<size_t>(step.other)];
    unsigned char* const to =
        step.to < 0 ? nullptr : Model(step.to).data() + step.to_at;
    const unsigned char* const from =
        step.from < 0 ? nullptr : Model(step.from).data() + step.from_at;
    if (to != nullptr && from != nullptr) std::memcpy(to, from, size);
    unsigned char* const host_to =
        step.to < kBuffers ? nullptr : Host(step.to).data() + step.to_at;
    const unsigned char* const host_from =
        step.from < kBuffers ? nullptr : Host(step.from).data() + step.from_at;
    const DeviceMemory device_to = step.to >= 0 && step.to < kBuffers
                                       ? Memory(step.to, step.to_at)
                                       : DeviceMemory();
    const DeviceMemory device_from = step.from >= 0 && step.from < kBuffers
                                         ? Memory(step.from, step.from_at)
                                         : DeviceMemory();
    switch (step.kind) {
      case StepKind::kCopyHostToDevice:
        return stream.CopyHostToDevice(device_to, host_from, bytes);
      case StepKind::kCopyDeviceToHost:
        return stream.CopyDeviceToHost(host_to, device_from, bytes);
      case StepKind::kCopyDeviceToDevice:
        return stream.CopyDeviceToDevice(device_to, device_from, bytes);
      case StepKind::kMemZero:
        std::memset(to, 0, size);
        return stream.MemZero(device_to, bytes);
      case StepKind::kMemset:
        std::memset(to, byte, size);
        return stream.Memset(device_to, BytePattern{byte}, bytes);
      case StepKind::kMemset32:
        for (size_t i = 0; i < size; i += 4) {
          std::memcpy(to + i, &step.pattern, 4);
        }
        return stream.Memset32(device_to, WordPattern{step.pattern}, bytes);
      case StepKind::kPauseTask:
        return stream.RunOnHost([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return absl::OkStatus();
        });
      case StepKind::kReadTask: {
        const Bytes& expected = expected_.emplace_back(from, from + size);
        return stream.RunOnHost([this, step, name, host_from, &expected] {
          Compare(name, step.from, step.from_at, host_from, expected.size(),
                  expected.data());
          return absl::OkStatus();
        });
      }
      case StepKind::kWriteTask:
        Write(to, step.size, step.pattern);
        return stream.RunOnHost([host_to, step] {
          Write(host_to, step.size, step.pattern);
          return absl::OkStatus();
        });
      case StepKind::kWaitForStream:
        return stream.WaitForStream(Stream(step.other));
      case StepKind::kRecordEvent:
        return stream.RecordEvent(event);
      case StepKind::kWaitForEvent:
        return stream.WaitForEvent(event);
      case StepKind::kBlockForStream:
        return Stream(step.other).BlockHostUntilDone();
      case StepKind::kBlockForEvent:
        return event.BlockHost();
      case StepKind::kSynchronize:
        return device_.SynchronizeAllActivity();
      case StepKind::kRead:
        Compare(name, step.from, step.from_at, host_from, size, from);
        return absl::OkStatus();
      case StepKind::kWrite:
        Write(to, step.size, step.pattern);
        Write(host_to, step.size, step.pattern);
        return absl::OkStatus();
      case StepKind::kCopyHostToDeviceSync:
        return device_.CopyHostToDevice(device_to, host_from, bytes);
      case StepKind::kCopyDeviceToHostSync:
        return device_.CopyDeviceToHost(host_to, device_from, bytes);
      default:
        return device_.CopyDeviceToDevice(device_to, device_from, bytes);
    }
  }

  // Waits for all streams in three ways, so that a mistake in one of them does
  // not spoil the next program.
  void Drain() {
    const auto done = std::make_shared<int>(0);
    int accepted = 0;
    for (int s = 0; s < kStreams; ++s) {
      const absl::Status status = Stream(s).RunOnHost([this, done] {
        std::lock_guard<std::mutex> lock(mutex_);
        ++*done;
        is_drained_.notify_all();
        return absl::OkStatus();
      });
      if (status.ok()) ++accepted;
      if (!status.ok()) Fail("In the end, RunOnHost returned ", status);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    const bool all_ran = is_drained_.wait_for(
        lock, std::chrono::seconds(10), [&] { return *done == accepted; });
    lock.unlock();
    if (!all_ran) Fail("In the end, a task of RunOnHost does not run.");
    Synchronize();
  }
  void Synchronize() {
    for (int s = 0; s < kStreams; ++s) {
      if (auto status = Stream(s).BlockHostUntilDone(); !status.ok()) {
        Fail("BlockHostUntilDone returned ", status);
      }
    }
    if (auto status = device_.SynchronizeAllActivity(); !status.ok()) {
      Fail("SynchronizeAllActivity returned ", status);
    }
  }

  FakeDevice& device_;
  std::array<DeviceMemory, kBuffers> memory_;
  std::array<Bytes, kBuffers> host_;
  size_t size_ = 0;
  std::array<Bytes, size_t{2} * kBuffers> initial_, model_;
  std::array<Bytes, kBuffers> found_;  // in the device's buffers
  std::array<std::unique_ptr<FakeEvent>, kEvents> events_;
  std::list<Bytes> expected_;  // contents that tasks will read
  std::mutex mutex_;
  std::condition_variable is_drained_;
  std::string failure_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_DEVICE_RUN_H_
