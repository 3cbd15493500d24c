// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/timeline_machine.h"

// Devices that are full, fail or are lost.
namespace timeline_failures_test {
namespace {

using namespace timeline_machine;

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

// After an error of the stream, no hook hangs, and tasks run.
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
}  // namespace timeline_failures_test
