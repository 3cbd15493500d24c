// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_DEVICE_PROGRAM_H_
#define TFPLUG_TESTING_INTERNAL_DEVICE_PROGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

// Random programs for CheckDevice. Their result does not depend on the order in
// which streams run, because conflicting steps are ordered by waits.
namespace tfplug::testing {

inline constexpr int kStreams = 4;
inline constexpr int kEvents = 4;
// Buffers [0, kBuffers) are in device memory, [kBuffers, 2 kBuffers) on the
// host.
inline constexpr int kBuffers = 4;

enum class StepKind : uint8_t {
  // Enqueued on a stream.
  kCopyHostToDevice,
  kCopyDeviceToHost,
  kCopyDeviceToDevice,
  kMemZero,
  kMemset,
  kMemset32,
  kPauseTask,
  kReadTask,
  kWriteTask,
  kWaitForStream,
  kRecordEvent,
  kWaitForEvent,
  // Done by the calling thread.
  kBlockForStream,
  kBlockForEvent,
  kSynchronize,
  kRead,
  kWrite,
  kCopyHostToDeviceSync,
  kCopyDeviceToHostSync,
  kCopyDeviceToDeviceSync,
};
inline constexpr int kStepKinds =
    static_cast<int>(StepKind::kCopyDeviceToDeviceSync) + 1;

struct Step {
  StepKind kind = StepKind::kPauseTask;
  int stream = 0;
  int other = 0;           // the stream or event that is waited for
  int to = -1, from = -1;  // the buffers that are written and read
  int64_t to_at = 0, from_at = 0;
  int64_t size = 0;
  uint32_t pattern = 0;
};
using DeviceProgram = std::vector<Step>;

inline bool IsOnStream(StepKind kind) {
  return kind <= StepKind::kWaitForEvent;
}

inline std::string BufferText(int buffer, int64_t at) {
  std::string text = buffer < kBuffers ? "device buffer " : "host buffer ";
  text += std::to_string(buffer % kBuffers);
  return at == 0 ? text : text + " + " + std::to_string(at);
}

// Returns the step in the terms of a device's author: the hook, and its
// arguments.
inline std::string StepText(const Step& step) {
  const std::string bytes =
      std::to_string(step.size) + (step.size == 1 ? " byte" : " bytes");
  const std::string other = std::to_string(step.other);
  const auto call = [&](const char* hook) {
    std::string text = hook;
    text += "(" + (step.to < 0 ? "" : BufferText(step.to, step.to_at) + ", ");
    if (step.from >= 0) text += BufferText(step.from, step.from_at) + ", ";
    return text + bytes + ")";
  };
  const auto text = [&]() -> std::string {
    switch (step.kind) {
      case StepKind::kCopyHostToDevice:
        return call("CopyHostToDevice");
      case StepKind::kCopyDeviceToHost:
        return call("CopyDeviceToHost");
      case StepKind::kCopyDeviceToDevice:
        return call("CopyDeviceToDevice");
      case StepKind::kMemZero:
        return call("MemZero");
      case StepKind::kMemset:
        return call("Memset");
      case StepKind::kMemset32:
        return call("Memset32");
      case StepKind::kPauseTask:
        return "RunOnHost(a task that pauses)";
      case StepKind::kReadTask:
        return "RunOnHost(a task that reads " +
               BufferText(step.from, step.from_at) + ", " + bytes + ")";
      case StepKind::kWriteTask:
        return "RunOnHost(a task that writes " +
               BufferText(step.to, step.to_at) + ", " + bytes + ")";
      case StepKind::kWaitForStream:
        return "WaitForStream(stream " + other + ")";
      case StepKind::kRecordEvent:
        return "RecordEvent(event " + other + ")";
      case StepKind::kWaitForEvent:
        return "WaitForEvent(event " + other + ")";
      case StepKind::kBlockForStream:
        return "BlockHostUntilDone(stream " + other + ")";
      case StepKind::kBlockForEvent:
        return "BlockHost(event " + other + ")";
      case StepKind::kSynchronize:
        return "SynchronizeAllActivity()";
      case StepKind::kRead:
        return "reads " + BufferText(step.from, step.from_at) + ", " + bytes;
      case StepKind::kWrite:
        return "writes " + BufferText(step.to, step.to_at) + ", " + bytes;
      case StepKind::kCopyHostToDeviceSync:
        return call("CopyHostToDeviceSync");
      case StepKind::kCopyDeviceToHostSync:
        return call("CopyDeviceToHostSync");
      default:
        return call("CopyDeviceToDeviceSync");
    }
  };
  return (IsOnStream(step.kind) ? "stream " + std::to_string(step.stream)
                                : std::string("host")) +
         ": " + text();
}

// Finds conflicting steps that no wait orders, with a vector clock for each
// stream and for the host.
class RaceCheck {
 public:
  // Returns the agents (streams, or kHost) whose earlier steps must be waited
  // for before `step` may follow.
  std::vector<int> Unordered(const Step& step) const {
    const Clock clock = ClockOf(step);
    // A copy to the device may read its source when it is called.
    const Clock& when_read =
        step.kind == StepKind::kCopyHostToDevice ? clocks_[kHost] : clock;
    std::vector<int> agents;
    for (int agent = 0; agent < kAgents; ++agent) {
      const auto a = static_cast<size_t>(agent);
      bool is_early = false;
      if (step.from >= 0) {
        is_early = writes_[static_cast<size_t>(step.from)][a] > when_read[a];
      }
      if (step.to >= 0) {
        is_early |=
            std::max(writes_[static_cast<size_t>(step.to)][a],
                     reads_[static_cast<size_t>(step.to)][a]) > clock[a];
      }
      if (is_early) agents.push_back(agent);
    }
    return agents;
  }

  // Returns whether `step` may follow, and if so, adds it.
  bool Add(const Step& step) {
    const auto other = static_cast<size_t>(step.other);
    const bool waits_for_event = step.kind == StepKind::kWaitForEvent ||
                                 step.kind == StepKind::kBlockForEvent;
    if (waits_for_event && !is_recorded_[other]) return false;
    if (!Unordered(step).empty()) return false;
    const int agent = IsOnStream(step.kind) ? step.stream : kHost;
    Clock& clock = clocks_[static_cast<size_t>(agent)];
    clock = ClockOf(step);
    ++clock[static_cast<size_t>(agent)];
    switch (step.kind) {
      case StepKind::kWaitForStream:
      case StepKind::kBlockForStream:
        Join(clocks_[other], &clock);
        break;
      case StepKind::kRecordEvent:
        events_[other] = clock;
        is_recorded_[other] = true;
        break;
      case StepKind::kWaitForEvent:
      case StepKind::kBlockForEvent:
        Join(events_[other], &clock);
        break;
      case StepKind::kSynchronize:
        for (const Clock& each : clocks_) Join(each, &clock);
        break;
      default:
        break;
    }
    const auto now = static_cast<size_t>(agent);
    if (step.from >= 0) {
      reads_[static_cast<size_t>(step.from)][now] = clock[now];
    }
    if (step.to >= 0) {
      writes_[static_cast<size_t>(step.to)][now] = clock[now];
    }
    return true;
  }

  static constexpr int kHost = kStreams;

 private:
  static constexpr int kAgents = kStreams + 1;
  using Clock = std::array<int, kAgents>;

  static void Join(const Clock& from, Clock* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      (*to)[i] = std::max((*to)[i], from[i]);
    }
  }
  // Work that a stream runs follows everything before the call.
  Clock ClockOf(const Step& step) const {
    Clock clock = clocks_[kHost];
    if (IsOnStream(step.kind)) {
      Join(clocks_[static_cast<size_t>(step.stream)], &clock);
    }
    return clock;
  }

  std::array<Clock, kAgents> clocks_ = {};
  std::array<Clock, kEvents> events_ = {};
  std::array<bool, kEvents> is_recorded_ = {};
  std::array<Clock, size_t{2}*kBuffers> writes_ = {}, reads_ = {};
};

// Returns whether the program has one result.
inline bool IsRaceFree(const DeviceProgram& program) {
  RaceCheck check;
  return std::all_of(program.begin(), program.end(),
                     [&](const Step& step) { return check.Add(step); });
}

// Makes random programs whose buffers have `buffer_size` bytes. Releases before
// 2.7 have no fills; Memset32 is optional.
class DeviceProgramMaker {
 public:
  DeviceProgramMaker(std::mt19937_64& random, int64_t buffer_size,
                     bool has_fills, bool has_memset32)
      : random_(random),
        buffer_size_(buffer_size),
        has_fills_(has_fills),
        has_memset32_(has_memset32) {}

  DeviceProgram Make() {
    const int length = 4 + Below(14);
    while (static_cast<int>(program_.size()) < length) {
      Step step = RandomStep();
      const bool on_stream = IsOnStream(step.kind);
      for (const int agent : check_.Unordered(step)) {
        Order(agent, step, on_stream);
      }
      // The host must have waited for what a copy to the device reads.
      for (const int agent : check_.Unordered(step)) Order(agent, step, false);
      // Work that is late shows who does not wait for it.
      if (on_stream && step.to >= 0 && Below(4) == 0) {
        Step pause;
        pause.stream = step.stream;
        Add(pause);
      }
      Add(step);
    }
    return program_;
  }

 private:
  int Below(int64_t n) {
    return static_cast<int>(random_() % static_cast<uint64_t>(n));
  }
  void Add(const Step& step) {
    if (check_.Add(step)) program_.push_back(step);
  }

  Step RandomStep() {
    Step step;
    step.kind = static_cast<StepKind>(Below(kStepKinds));
    step.stream = Below(kStreams);
    step.other = (step.stream + 1 + Below(kStreams - 1)) % kStreams;
    step.pattern = static_cast<uint32_t>(random_());
    if (step.kind == StepKind::kMemset32 && !has_memset32_) {
      step.kind = StepKind::kMemset;
    }
    if (!has_fills_ && step.kind >= StepKind::kMemZero &&
        step.kind <= StepKind::kMemset32) {
      step.kind = StepKind::kCopyHostToDevice;
    }
    const int device = Below(kBuffers), host = kBuffers + Below(kBuffers);
    switch (step.kind) {
      case StepKind::kCopyHostToDevice:
      case StepKind::kCopyHostToDeviceSync:
        step.to = device;
        step.from = host;
        break;
      case StepKind::kCopyDeviceToHost:
      case StepKind::kCopyDeviceToHostSync:
        step.to = host;
        step.from = device;
        break;
      case StepKind::kCopyDeviceToDevice:
      case StepKind::kCopyDeviceToDeviceSync:
        step.to = device;
        step.from = (device + 1 + Below(kBuffers - 1)) % kBuffers;
        break;
      case StepKind::kMemZero:
      case StepKind::kMemset:
      case StepKind::kMemset32:
        step.to = device;
        break;
      case StepKind::kReadTask:
      case StepKind::kRead:
        step.from = host;
        break;
      case StepKind::kWriteTask:
      case StepKind::kWrite:
        step.to = host;
        break;
      default:
        return step;
    }
    step.size = Below(4) == 0 ? buffer_size_ : 1 + Below(buffer_size_);
    const int64_t unit = step.kind == StepKind::kMemset32 ? 4 : 1;
    step.size = (step.size + unit - 1) / unit * unit;
    step.to_at = Below((buffer_size_ - step.size) / unit + 1) * unit;
    step.from_at = Below(buffer_size_ - step.size + 1);
    return step;
  }

  // Makes the stream of `step`, or the host, wait for the work of a stream so
  // far.
  void Order(int stream, const Step& step, bool on_stream) {
    const bool uses_event = Below(2) == 0;
    Step wait;
    wait.stream = step.stream;
    wait.other = stream;
    if (uses_event) {
      Step record;
      record.kind = StepKind::kRecordEvent;
      record.stream = stream;
      record.other = wait.other = Below(kEvents);
      Add(record);
    }
    if (on_stream) {
      wait.kind =
          uses_event ? StepKind::kWaitForEvent : StepKind::kWaitForStream;
    } else {
      wait.kind = uses_event      ? StepKind::kBlockForEvent
                  : Below(2) == 0 ? StepKind::kBlockForStream
                                  : StepKind::kSynchronize;
    }
    Add(wait);
  }

  std::mt19937_64& random_;
  const int64_t buffer_size_;
  const bool has_fills_, has_memset32_;
  RaceCheck check_;
  DeviceProgram program_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_DEVICE_PROGRAM_H_
