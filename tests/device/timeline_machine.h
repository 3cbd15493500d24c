// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_DEVICE_TIMELINE_MACHINE_H_
#define TFPLUG_TESTS_DEVICE_TIMELINE_MACHINE_H_

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "tfplug/device/timeline_stream.h"
#include "tfplug/plugin.h"

// A driver whose only queue runs batches one after the other, on a thread. It
// would wait forever for work that was not submitted.
namespace timeline_machine {

using tfplug::DeviceMemory;
using tfplug::EventStatus;

std::mutex mutex;
std::condition_variable changed;
bool is_lost = false, is_paused = false;
int submissions_left = -1;  // until one fails, if it is not negative
uint64_t now_ns = 0;

absl::Status Lost() { return absl::InternalError("the device is lost"); }

// Blocks, with the lock, until `done` or the device is lost.
template <class Done>
bool WaitFor(std::unique_lock<std::mutex>& lock, const Done& done) {
  changed.wait(lock, [&] { return is_lost || done(); });
  return !is_lost;
}

int batches_left = -1;  // until one cannot be begun, if it is not negative
std::atomic<int> live_buffers{0};

struct Buffer {
  explicit Buffer(uint64_t size) : bytes(size), host(bytes.data()) {
    ++live_buffers;
  }
  ~Buffer() { --live_buffers; }
  std::vector<char> bytes;
  char* const host;
};
using Location = tfplug::AddressSpace<Buffer*>::Location;

class Counter {
 public:
  absl::StatusOr<uint64_t> Get() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_lost) return Lost();
    return value_;
  }
  absl::Status Wait(uint64_t value) {
    std::unique_lock<std::mutex> lock(mutex);
    return WaitFor(lock, [&] { return value_ >= value; }) ? absl::OkStatus()
                                                          : Lost();
  }
  void Set(uint64_t value) {
    CHECK(value > value_);
    value_ = value;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

struct Batch {
  std::vector<std::function<void()>> commands;
  uint64_t times[64] = {};

  void Barrier() {}
  void Copy(Location to, Location from, uint64_t size) {
    commands.push_back([=] {
      REQUIRE(to.offset + size <= to.handle->bytes.size());
      REQUIRE(from.offset + size <= from.handle->bytes.size());
      std::memmove(&to.handle->bytes[to.offset],
                   &from.handle->bytes[from.offset], size);
    });
  }
  void Fill(Location to, uint32_t word, uint64_t size) {
    REQUIRE(to.offset % 4 == 0);
    REQUIRE(size % 4 == 0);
    commands.push_back([=] {
      for (uint64_t i = 0; i < size; i += 4) {
        std::memcpy(&to.handle->bytes[to.offset + i], &word, 4);
      }
    });
  }
  void Execute(Batch& graph) {
    commands.push_back([&graph] {
      for (const auto& command : graph.commands) command();
    });
  }
  void WriteTime(uint32_t slot) {
    commands.push_back([this, slot] { times[slot] = ++now_ns; });
  }
  absl::StatusOr<uint64_t> ReadTime(uint32_t slot) { return times[slot]; }
};

using Base = tfplug::TimelineMachine<Buffer, Batch, Counter>;

// The driver's queue.
class Queue {
 public:
  ~Queue() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stops_ = true;
      changed.notify_all();
    }
    thread_.join();
  }
  void Add(Batch& batch, absl::Span<const Base::Wait> waits, Counter& counter,
           uint64_t value) {
    entries_.push_back({&batch, {waits.begin(), waits.end()}, &counter, value});
    changed.notify_all();
  }

 private:
  struct Entry {
    Batch* batch;
    std::vector<Base::Wait> waits;
    Counter* counter;
    uint64_t value;
  };
  void Run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] {
        return stops_ || (!entries_.empty() && !is_paused && !is_lost);
      });
      if (stops_) return;
      const Entry entry = entries_.front();
      entries_.pop_front();
      for (const Base::Wait& wait : entry.waits) {
        WaitFor(lock,
                [&] { return stops_ || wait.counter->value() >= wait.value; });
      }
      if (is_lost) continue;
      for (const auto& command : entry.batch->commands) command();
      entry.counter->Set(entry.value);
      changed.notify_all();
    }
  }

  std::deque<Entry> entries_;
  bool stops_ = false;
  std::thread thread_{[this] { Run(); }};
};

struct Machine : Base {
  absl::StatusOr<std::unique_ptr<Buffer>> MakeBuffer(uint64_t size,
                                                     bool is_for_host) {
    if (!is_for_host && live_buffers >= most_buffers) {
      return absl::ResourceExhaustedError("the device is full");
    }
    return std::make_unique<Buffer>(size);
  }
  absl::StatusOr<uint64_t> TotalMemory() { return 1 << 30; }
  absl::Status InitCounter(Counter&) { return absl::OkStatus(); }
  absl::Status Begin(Batch& batch) {
    if (batches_left == 0) return absl::InternalError("begin failed");
    if (batches_left > 0) --batches_left;
    batch.commands.clear();
    return absl::OkStatus();
  }
  absl::Status Submit(Batch& batch, absl::Span<const Wait> waits,
                      Counter& counter, uint64_t value) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_lost) return Lost();
    if (submissions_left == 0) return absl::InternalError("submit failed");
    if (submissions_left > 0) --submissions_left;
    ++submissions;
    queue.Add(batch, waits, counter, value);
    return absl::OkStatus();
  }

  absl::Status BeginGraph(Batch&) {
    ++graphs;
    return absl::OkStatus();
  }
  absl::Status EndGraph(Batch&) { return absl::OkStatus(); }

  int graphs = 0;
  int most_buffers = 1000, submissions = 0;
  Queue queue;
};
using Stream = tfplug::TimelineStream<Machine>;
using Memory = tfplug::TimelineAllocator<Machine>;

class Device final : public tfplug::Device<Stream, Memory>, public Machine {
 public:
  absl::StatusOr<uint64_t> GetTime() override { return clock_.GetTime(); }

 private:
  Stream clock_{*this};
};
struct Platform final : tfplug::Platform<Device> {
  static constexpr char kName[] = "TIMELINE", kType[] = "TIMELINE";
  absl::StatusOr<int> DeviceCount() override { return 1; }
};

// A machine with two streams and 1 KiB of memory.
struct Fake {
  Fake() {
    is_lost = is_paused = false;
    submissions_left = batches_left = -1;
    CHECK(live_buffers == 1);  // no earlier machine has left any
  }
  ~Fake() {
    Set(is_paused, false);
    for (Stream* stream : {&a, &b}) stream->BlockHostUntilDone().IgnoreError();
    CHECK(allocator.Deallocate(memory) == absl::OkStatus());
  }
  static void Set(bool& flag, bool value) {
    const std::lock_guard<std::mutex> lock(mutex);
    flag = value;
    changed.notify_all();
  }
  std::string Read() {
    char text[8] = {};
    Stream::Event event;
    CHECK(a.RecordEvent(event) == absl::OkStatus());
    CHECK(b.WaitForEvent(event) == absl::OkStatus());
    CHECK(b.CopyDeviceToHost(text, memory, 7) == absl::OkStatus());
    CHECK(b.BlockHostUntilDone() == absl::OkStatus());
    return text;
  }

  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  Machine machine;
  Memory allocator{machine};
  DeviceMemory memory = allocator.Allocate(1024, 0).value();
  Stream a{machine}, b{machine};
};

// Returns a task that counts its runs.
inline tfplug::HostTask MakeTask(std::atomic<int>& runs) {
  return tfplug::HostTask(
      [](void* argument, tfplug::capi::TF_Status*) {
        ++*static_cast<std::atomic<int>*>(argument);
      },
      &runs);
}

}  // namespace timeline_machine

#endif  // TFPLUG_TESTS_DEVICE_TIMELINE_MACHINE_H_
