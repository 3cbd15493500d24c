// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/timeline_stream.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "tfplug/plugin.h"
#include "tfplug/testing/conformance.h"

// A driver whose only queue runs batches one after the other, on a thread. It
// would wait forever for work that was not submitted.
namespace timeline_stream_test {
namespace {

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
  }
  ~Fake() {
    Set(is_paused, false);
    for (Stream* stream : {&a, &b}) stream->BlockHostUntilDone().IgnoreError();
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
tfplug::HostTask MakeTask(std::atomic<int>& runs) {
  return tfplug::HostTask(
      [](void* argument, tfplug::capi::TF_Status*) {
        ++*static_cast<std::atomic<int>*>(argument);
      },
      &runs);
}

TEST_CASE("TimelineStream: a device whose streams share a queue conforms") {
  is_lost = is_paused = false;
  submissions_left = -1;
  tfplug::Fixture<Platform> fixture;
  CHECK(tfplug::testing::CheckDevice(fixture.device()) == absl::OkStatus());
}

TEST_CASE("TimelineStream: a busy device receives many commands at once") {
  Fake fake;
  Fake::Set(is_paused, true);
  for (int i = 0; i < 65; ++i) {  // one, two full batches
    CHECK(fake.a.Memset(fake.memory, {'x'}, 8) == absl::OkStatus());
  }
  CHECK(fake.machine.submissions == 3);
  CHECK(fake.a.Memset(fake.memory, {'y'}, 8) == absl::OkStatus());
  CHECK(fake.machine.submissions == 3);
  Stream::Event event;
  CHECK(fake.a.RecordEvent(event) == absl::OkStatus());
  CHECK(fake.machine.submissions == 4);
  CHECK(event.Poll().value() == EventStatus::kPending);
  Fake::Set(is_paused, false);
  CHECK(event.BlockHost() == absl::OkStatus());
  CHECK(event.Poll().value() == EventStatus::kComplete);
  CHECK(fake.Read() == "yyyyyyy");
}

TEST_CASE("TimelineStream: the queue does not wait for a host task") {
  Fake fake;
  struct Argument {
    Fake& fake;
    absl::Status status;
  } argument{fake, absl::UnknownError("")};
  // The task waits for work that is enqueued after the task on the same queue.
  CHECK(fake.a.RunOnHost(tfplug::HostTask(
            [](void* pointer, tfplug::capi::TF_Status*) {
              auto& self = *static_cast<Argument*>(pointer);
              std::unique_lock<std::mutex> lock(mutex);
              WaitFor(lock, [&] { return self.fake.machine.submissions == 1; });
              lock.unlock();
              self.status = self.fake.b.BlockHostUntilDone();
            },
            &argument)) == absl::OkStatus());
  CHECK(fake.a.Memset(fake.memory, {'a'}, 7) == absl::OkStatus());
  Stream::Event event;
  CHECK(fake.a.RecordEvent(event) == absl::OkStatus());
  CHECK(event.Poll().value() == EventStatus::kPending);
  CHECK(fake.b.Memset(fake.memory, {'b'}, 7) == absl::OkStatus());
  CHECK(event.BlockHost() == absl::OkStatus());
  CHECK(argument.status == absl::OkStatus());
  CHECK(fake.Read() == "aaaaaaa");
}

TEST_CASE("TimelineStream: the arguments of a command live until it is done") {
  Fake fake;
  Fake::Set(is_paused, true);
  uint64_t sum = 0, expected = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    CHECK(fake.a.Enqueue(700, [&](Batch& batch, const Stream::Block& block) {
      CHECK(block.at.offset % 256 == 0);
      std::memcpy(block.host, &i, sizeof(i));
      std::memset(block.host + 692, 0x55, 8);
      batch.commands.push_back([&sum, at = block.at] {
        uint64_t value;
        std::memcpy(&value, &at.handle->bytes[at.offset], sizeof(value));
        sum += value;
      });
    }) == absl::OkStatus());
    expected += i;
  }
  CHECK(absl::IsInvalidArgument(fake.a.Enqueue(
      Stream::kArgumentsSize + 1, [](Batch&, const Stream::Block&) {})));
  Fake::Set(is_paused, false);
  CHECK(fake.a.BlockHostUntilDone() == absl::OkStatus());
  CHECK(sum == expected);
}

TEST_CASE("TimelineStream: timers have the device's times") {
  Fake fake;
  now_ns = 100;
  Stream::Timer timer;
  CHECK(fake.a.StartTimer(timer) == absl::OkStatus());
  Fake::Set(is_paused, true);
  for (int i = 0; i < 40; ++i) {
    CHECK(fake.a.Memset(fake.memory, {1}, 8) == absl::OkStatus());
  }
  CHECK(fake.a.StopTimer(timer) == absl::OkStatus());
  CHECK(absl::IsUnavailable(timer.GetTimes().status()));
  Fake::Set(is_paused, false);
  CHECK(fake.a.BlockHostUntilDone() == absl::OkStatus());
  for (int i = 0; i < 100; ++i) {  // later batches do not overwrite the times
    CHECK(fake.a.GetTime().value() > 180);
  }
  CHECK(timer.GetTimes()->begin_ns == 101);
  CHECK(timer.GetTimes()->end_ns == 180);
  CHECK(timer.Nanoseconds().value() == 79);
}

TEST_CASE("TimelineStream: a timer that is stopped waits for nothing else") {
  Fake fake;
  Fake::Set(is_paused, true);
  CHECK(fake.a.Memset(fake.memory, {1}, 8) == absl::OkStatus());
  Stream::Timer timer;
  CHECK(fake.a.StartTimer(timer) == absl::OkStatus());
  CHECK(fake.a.Memset(fake.memory, {2}, 8) == absl::OkStatus());
  CHECK(fake.machine.submissions == 1);
  CHECK(fake.a.StopTimer(timer) == absl::OkStatus());
  Fake::Set(is_paused, false);
  CHECK(timer.Nanoseconds().value() == 1);
}

TEST_CASE("TimelineStream: a timer measures tasks of the host") {
  Fake fake;
  now_ns = 100;
  Stream::Timer timer;
  CHECK(fake.a.StartTimer(timer) == absl::OkStatus());
  CHECK(fake.a.RunOnHost(tfplug::HostTask(
            [](void*, tfplug::capi::TF_Status*) {
              const std::lock_guard<std::mutex> lock(mutex);
              now_ns += 50;
            },
            nullptr)) == absl::OkStatus());
  CHECK(fake.a.StopTimer(timer) == absl::OkStatus());
  CHECK(timer.Nanoseconds().value() == 53);
}

// A task that waits until `may_end`.
struct Held {
  bool may_end = false;
  tfplug::HostTask MakeTask() {
    return tfplug::HostTask(
        [](void* argument, tfplug::capi::TF_Status*) {
          std::unique_lock<std::mutex> lock(mutex);
          changed.wait(lock,
                       [&] { return static_cast<Held*>(argument)->may_end; });
        },
        this);
  }
};

// TensorFlow's allocator holds its lock while it releases memory, and a task of
// a stream may need that lock.
TEST_CASE(
    "TimelineStream: calls fail in a forked child, whoever has the lock") {
  Fake fake;
  const std::lock_guard<std::mutex> lock(fake.machine.stream_mutex());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(10);
    std::atomic<int> runs{0};
    char byte = 0;
    Stream::Event event;
    const absl::Status results[] = {
        fake.a.Enqueue(0, [](Batch&, const Stream::Block&) {}),
        fake.a.CopyHostToDevice(fake.memory, &byte, 1),
        fake.a.CopyDeviceToHost(&byte, fake.memory, 1),
        fake.a.RecordEvent(event),
        fake.a.RunOnHost(MakeTask(runs)),
        fake.a.GetStatus(),
        fake.a.BlockHostUntilDone(),
        fake.a.GetTime().status(),
        fake.allocator.Allocate(1024, 0).status()};
    for (const absl::Status& status : results) {
      if (!absl::IsFailedPrecondition(status)) _exit(1);
    }
    _exit(runs == 0 ? 0 : 2);
  }
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  CHECK(result == 0);
}

TEST_CASE("TimelineAllocator: release of memory does not wait for the host") {
  Fake fake;
  Held held;
  const DeviceMemory memory = fake.allocator.Allocate(1024, 0).value(),
                     unused = fake.allocator.Allocate(1024, 0).value();
  const int before = live_buffers;
  CHECK(fake.a.RunOnHost(held.MakeTask()) == absl::OkStatus());
  CHECK(fake.a.Memset(memory, {1}, 8) == absl::OkStatus());
  CHECK(fake.a.RecordEvent(*std::make_unique<Stream::Event>()) ==
        absl::OkStatus());
  CHECK(fake.allocator.Deallocate(memory) == absl::OkStatus());
  CHECK(fake.allocator.Deallocate(unused) == absl::OkStatus());
  CHECK(live_buffers >= before);  // the steps are not done
  Fake::Set(held.may_end, true);
  CHECK(fake.a.BlockHostUntilDone() == absl::OkStatus());
  fake.machine.Collect();
  CHECK(live_buffers == before - 1);  // and the arguments of the fill
}

TEST_CASE("TimelineAllocator: a full device waits for memory in use") {
  Fake fake;
  Fake::Set(is_paused, true);
  const DeviceMemory memory = fake.allocator.Allocate(1024, 0).value();
  CHECK(fake.a.CopyDeviceToDevice(memory, fake.memory, 8) == absl::OkStatus());
  CHECK(fake.allocator.Deallocate(memory) == absl::OkStatus());
  fake.machine.most_buffers = live_buffers;
  std::thread resumes([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Fake::Set(is_paused, false);
  });
  const auto other = fake.allocator.Allocate(1024, 0);
  resumes.join();
  CHECK(other.ok());
  CHECK(absl::IsResourceExhausted(fake.allocator.Allocate(1024, 0).status()));
  CHECK(fake.allocator.Deallocate(*other) == absl::OkStatus());
}

TEST_CASE("TimelineStream: a copy that fails in the middle leaves nothing") {
  constexpr uint64_t kSize = 3 * Stream::kPieceSize;
  for (const bool is_upload : {true, false}) {
    for (int batches = 0; batches < 3; ++batches) {
      CAPTURE(is_upload);
      CAPTURE(batches);
      Fake fake;
      const DeviceMemory memory = fake.allocator.Allocate(kSize, 0).value();
      Held held;
      CHECK(fake.a.RunOnHost(held.MakeTask()) == absl::OkStatus());
      auto host = std::make_unique<std::vector<char>>(kSize);
      batches_left = batches;
      const absl::Status status =
          is_upload ? fake.a.CopyHostToDevice(memory, host->data(), kSize)
                    : fake.a.CopyDeviceToHost(host->data(), memory, kSize);
      CHECK(status.message() == "begin failed");
      host.reset();  // a step that uses it would be found by valgrind
      batches_left = -1;
      Fake::Set(held.may_end, true);
      const bool is_begun = is_upload || batches > 0;
      CHECK(fake.a.BlockHostUntilDone() ==
            (is_begun ? status : absl::OkStatus()));
      CHECK(fake.allocator.Deallocate(memory) == absl::OkStatus());
    }
  }
}

// What a stream does after an error: no hook hangs, and tasks run.
void CheckFailed(Fake& fake, Stream::Event& before, const std::string& error,
                 std::atomic<int>& runs, int expected_runs) {
  const auto fails = [&](const absl::Status& status) {
    CHECK(status.message() == error);
  };
  fails(fake.a.BlockHostUntilDone());
  fails(fake.a.GetStatus());
  fails(before.BlockHost());
  CHECK(before.Poll().value() == EventStatus::kError);
  fails(fake.b.WaitForEvent(before));
  fails(fake.a.Memset(fake.memory, {1}, 8));
  char text[8];
  fails(fake.a.CopyDeviceToHost(text, fake.memory, 8));
  Stream::Event after;
  CHECK(fake.a.RunOnHost(MakeTask(runs)) == absl::OkStatus());
  fails(fake.a.BlockHostUntilDone());
  fake.a.RecordEvent(after).IgnoreError();
  std::unique_lock<std::mutex> lock(mutex);
  while (runs != expected_runs)
    changed.wait_for(lock, std::chrono::milliseconds(1));
}

TEST_CASE("TimelineStream: a failure to submit is an error of the stream") {
  Fake fake;
  std::atomic<int> runs{0};
  submissions_left = 1;
  Fake::Set(is_paused, true);
  CHECK(fake.a.Memset(fake.memory, {1}, 8) == absl::OkStatus());
  CHECK(fake.a.RunOnHost(MakeTask(runs)) == absl::OkStatus());
  CHECK(fake.a.Memset(fake.memory, {2}, 8) == absl::OkStatus());  // is kept
  Stream::Event event;
  CHECK(fake.a.RecordEvent(event) == absl::OkStatus());
  Fake::Set(is_paused, false);
  CheckFailed(fake, event, "submit failed", runs, 2);
  submissions_left = -1;
  CHECK(fake.b.Memset(fake.memory, {3}, 8) == absl::OkStatus());
  CHECK(fake.b.BlockHostUntilDone() == absl::OkStatus());
}

TEST_CASE("TimelineStream: a lost device is an error, and nothing hangs") {
  Fake fake;
  std::atomic<int> runs{0};
  Fake::Set(is_paused, true);
  CHECK(fake.a.Memset(fake.memory, {1}, 8) == absl::OkStatus());
  CHECK(fake.a.RunOnHost(MakeTask(runs)) == absl::OkStatus());
  CHECK(fake.a.Memset(fake.memory, {2}, 8) == absl::OkStatus());
  Stream::Event event;
  CHECK(fake.a.RecordEvent(event) == absl::OkStatus());
  CHECK(fake.b.WaitForEvent(event) == absl::OkStatus());
  CHECK(fake.b.Memset(fake.memory, {3}, 8) == absl::OkStatus());
  Fake::Set(is_lost, true);
  CHECK(fake.b.BlockHostUntilDone() == Lost());
  CheckFailed(fake, event, "the device is lost", runs, 2);
}

#if defined(__cpp_exceptions)
TEST_CASE("TimelineStream: the error of a host task is the stream's") {
  Fake fake;
  CHECK(fake.a.RunOnHost(tfplug::HostTask(
            [](void*, tfplug::capi::TF_Status*) {
              throw std::runtime_error("from a task");
            },
            nullptr)) == absl::OkStatus());
  CHECK(fake.a.BlockHostUntilDone().message() == "C++ exception: from a task");
  CHECK(fake.a.GetStatus().message() == "C++ exception: from a task");
}
#endif

}  // namespace
}  // namespace timeline_stream_test
