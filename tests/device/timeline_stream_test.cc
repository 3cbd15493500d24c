// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/timeline_stream.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "device/timeline_machine.h"
#include "tfplug/testing/conformance.h"

namespace timeline_stream_test {
namespace {

using namespace timeline_machine;  // NOLINT(google-build-using-namespace)

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

TEST_CASE(
    "TimelineStream: a graph repeats commands, and lives until they end") {
  Fake fake;
  auto graph = std::make_unique<Stream::Graph>();
  CHECK(graph->Begin(fake.a) == absl::OkStatus());
  {
    Stream recorder(fake.machine, graph.get());
    for (int i = 0; i < 300; ++i) {  // more than a batch's arguments
      const char value = i < 299 ? 'x' : 'g';
      CHECK(recorder.Memset(fake.memory, {static_cast<uint8_t>(value)}, 7) ==
            absl::OkStatus());
    }
    CHECK_FALSE(recorder.BlockHostUntilDone().ok());
  }
  CHECK(graph->End() == absl::OkStatus());
  CHECK(fake.machine.graphs == 2);
  CHECK(fake.a.Memset(fake.memory, {'a'}, 7) == absl::OkStatus());
  CHECK(fake.Read() == "aaaaaaa");
  Fake::Set(is_paused, true);
  CHECK(fake.a.Memset(fake.memory, {'b'}, 7) == absl::OkStatus());
  CHECK(graph->Launch(fake.a) == absl::OkStatus());
  CHECK(graph->Launch(fake.a) == absl::OkStatus());
  CHECK(fake.a.Memset(fake.memory, {'c'}, 1) == absl::OkStatus());
  const int before = live_buffers;
  graph.reset();
  CHECK(live_buffers == before);
  Fake::Set(is_paused, false);
  CHECK(fake.Read() == "cgggggg");
  for (int i = 0; i < 100; ++i) {  // the batch is recorded anew
    CHECK(fake.a.Memset(fake.memory, {'d'}, 7) == absl::OkStatus());
    CHECK(fake.a.BlockHostUntilDone() == absl::OkStatus());
  }
  CHECK(live_buffers == before - 2);
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

}  // namespace
}  // namespace timeline_stream_test
