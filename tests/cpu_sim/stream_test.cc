// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.h"

#include <doctest/doctest.h>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/event.h"
#include "runtime/fault.h"
#include "runtime/machine.h"

namespace cpu_sim::rt::stream_test {
namespace {

using std::chrono::milliseconds;

class Fixture {
 protected:
  std::unique_ptr<Machine> machine_ = Machine::Create({}).value();
  Device& device_ = *machine_->GetDevice(0).value();
  Stream stream_{device_};

  // Blocks a stream until it is opened.
  struct Gate {
    std::promise<void> opened;
    explicit Gate(Stream& stream) {
      REQUIRE(
          stream.Launch([f = opened.get_future().share()] { f.wait(); }).ok());
    }
    void Open() { opened.set_value(); }
  };
};

TEST_CASE_FIXTURE(Fixture, "Stream: copies and fills, in order") {
  std::vector<int> in(1000), out(1000);
  std::iota(in.begin(), in.end(), 0);
  const size_t bytes = 4000;
  char* a = static_cast<char*>(device_.Allocate(bytes).value());
  void* b = machine_->GetDevice(1).value()->Allocate(bytes).value();
  CHECK(stream_.CopyToDevice(a, in.data(), bytes).ok());
  CHECK(stream_.Zero(a, 4).ok());
  CHECK(stream_.Fill(a + 4, 0x11, 4).ok());
  CHECK(stream_.Fill32(a + 8, 0x01020304, 8).ok());
  CHECK(stream_.CopyOnDevice(b, a, bytes).ok());
  CHECK(stream_.CopyOnDevice(a, b, bytes).ok());
  CHECK(stream_.CopyToHost(out.data(), a, bytes).ok());
  CHECK(stream_.Synchronize().ok());
  CHECK(out[0] == 0);
  CHECK(out[1] == 0x11111111);
  CHECK(out[2] == 0x01020304);
  CHECK(out[3] == 0x01020304);
  CHECK(std::equal(out.begin() + 4, out.end(), in.begin() + 4));
  CHECK_FALSE(stream_.Fill32(a + 2, 0, 4).ok());
  CHECK_FALSE(stream_.Fill32(a, 0, 3).ok());
}

TEST_CASE_FIXTURE(Fixture, "Stream: enqueueing does not wait") {
  std::vector<int> in = {1}, out = {0};
  void* a = device_.Allocate(4).value();
  Event event;
  Gate gate(stream_);
  REQUIRE(stream_.CopyToDevice(a, in.data(), 4).ok());
  REQUIRE(stream_.CopyToHost(out.data(), a, 4).ok());
  REQUIRE(stream_.Record(event).ok());
  in[0] = 2;  // read when the stream reaches the copy
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(event.Poll().value() == Event::State::kPending);
  gate.Open();
  CHECK(event.Synchronize().ok());
  CHECK(event.Poll().value() == Event::State::kComplete);
  CHECK(out[0] == 2);
}

TEST_CASE_FIXTURE(Fixture, "Stream: first in, first out, from every thread") {
  constexpr int kThreads = 4, kTasks = 5000;
  std::vector<int> seen(kThreads, 0);
  std::atomic<int> disorder{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        (void)stream_.Launch([&, t, i] { disorder += seen[t]++ != i; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stream_.Synchronize().ok());
  CHECK(disorder == 0);
  CHECK(seen == std::vector<int>(kThreads, kTasks));
}

TEST_CASE_FIXTURE(Fixture, "Stream: an error skips device work only") {
  Event before, after;
  int kernels = 0, host_tasks = 0, value = 5;
  REQUIRE(stream_.Record(before).ok());
  REQUIRE(stream_.Launch([] { return absl::DataLossError("first"); }).ok());
  REQUIRE(stream_.Launch([&] { ++kernels; }).ok());
  REQUIRE(stream_.Launch([] { return absl::AbortedError("second"); }).ok());
  void* a = device_.Allocate(4).value();
  REQUIRE(stream_.CopyToHost(&value, a, 4).ok());
  REQUIRE(stream_.RunOnHost([&] { ++host_tasks; }).ok());
  REQUIRE(stream_.Record(after).ok());
  CHECK(after.Synchronize() == absl::DataLossError("first"));
  CHECK(before.Poll().value() == Event::State::kComplete);
  CHECK(after.Poll().value() == Event::State::kError);
  CHECK(stream_.status() == absl::DataLossError("first"));
  CHECK(kernels == 0);
  CHECK(host_tasks == 1);
  CHECK(value == 5);

  // A stream that waits for it inherits the error, which is reported once.
  Stream other(device_);
  REQUIRE(other.WaitFor(after).ok());
  REQUIRE(other.Launch([&] { ++kernels; }).ok());
  CHECK(other.Synchronize() == absl::DataLossError("first"));
  CHECK(device_.Synchronize() == absl::DataLossError("first"));
  CHECK(device_.Synchronize().ok());
  REQUIRE(stream_.Launch([&] { ++kernels; }).ok());
  CHECK(stream_.Synchronize().ok());
  CHECK(kernels == 1);
}

TEST_CASE_FIXTURE(Fixture, "Stream: an exception in a task becomes an error") {
  REQUIRE(stream_.Launch([] { throw std::runtime_error("bang"); }).ok());
  CHECK(stream_.Synchronize() == absl::InternalError("exception: bang"));
  REQUIRE(stream_.RunOnHost([] { throw std::bad_alloc(); }).ok());
  CHECK(stream_.Synchronize().code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(stream_.RunOnHost([] { throw 1; }).ok());
  CHECK(stream_.Synchronize().code() == absl::StatusCode::kInternal);
}

TEST_CASE_FIXTURE(Fixture,
                  "Stream: one waits for another without blocking the host") {
  Stream other(device_);
  std::vector<int> order;  // the dependency orders the accesses
  Gate gate(stream_);
  REQUIRE(stream_.Launch([&] { order.push_back(1); }).ok());
  REQUIRE(other.WaitFor(stream_).ok());
  REQUIRE(other.Launch([&] { order.push_back(2); }).ok());
  gate.Open();
  CHECK(other.Synchronize().ok());
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE_FIXTURE(Fixture, "Stream: a task cannot wait for its own stream") {
  absl::Status stream_status, device_status;
  REQUIRE(stream_
              .RunOnHost([&] {
                stream_status = stream_.Synchronize();
                device_status = device_.Synchronize();
              })
              .ok());
  CHECK(stream_.Synchronize().ok());
  CHECK(stream_status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(device_status.code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE_FIXTURE(Fixture, "Stream: short kernels run in the calling thread") {
  // The stream is idle a moment after Synchronize(), and another process may
  // delay a kernel, so that it counts as long.
  const auto launch_until_it_does = [&] {
    const std::thread::id caller = std::this_thread::get_id();
    std::thread::id id;
    for (int i = 0; i < 1000000 && id != caller; ++i) {
      REQUIRE(stream_.Launch([&] { id = std::this_thread::get_id(); }).ok());
      REQUIRE(stream_.Synchronize().ok());
    }
    REQUIRE(id == caller);
  };
  launch_until_it_does();
  SUBCASE("in the floating-point mode of the device's thread") {
#ifdef __SSE2__
    const unsigned mode = _mm_getcsr(), flush = mode | 0x8040;
    _mm_setcsr(flush);
    volatile float tiny = 1e-40f, result = 0;
    REQUIRE(stream_.Launch([&] { result = tiny * 0.5f; }).ok());
    REQUIRE(stream_.Synchronize().ok());
    CHECK(_mm_getcsr() == flush);
    _mm_setcsr(mode);
    CHECK(result != 0);
#endif
  }
  SUBCASE("unless work is before them") {
    std::promise<void> opened;
    std::vector<int> order;
    REQUIRE(stream_.RunOnHost([&] { opened.get_future().wait(); }).ok());
    REQUIRE(stream_.Launch([&] { order.push_back(1); }).ok());
    REQUIRE(stream_.RunOnHost([&] { order.push_back(2); }).ok());
    opened.set_value();
    REQUIRE(stream_.Synchronize().ok());
    CHECK(order == std::vector<int>{1, 2});
  }
  SUBCASE("and may not wait for their stream") {
    absl::Status waited;
    REQUIRE(stream_.Launch([&] { waited = stream_.Synchronize(); }).ok());
    REQUIRE(stream_.Synchronize().ok());
    CHECK(waited.code() == absl::StatusCode::kFailedPrecondition);
  }
  SUBCASE("and fail like others") {
    Event after;
    REQUIRE(stream_.Launch([] { throw std::runtime_error("bang"); }).ok());
    REQUIRE(stream_.Record(after).ok());
    CHECK(after.Synchronize() == absl::InternalError("exception: bang"));
    CHECK(stream_.Synchronize() == absl::InternalError("exception: bang"));
    CHECK(stream_.Synchronize().ok());
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "Stream: short kernels of many threads are ordered") {
  Stream other(device_);
  int64_t sum = 0;  // the streams order the accesses
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (!stream_.Launch([&] { ++sum; }).ok()) std::abort();
        if (i % 100 == 0 && !other.WaitFor(stream_).ok()) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(other.WaitFor(stream_).ok());
  int64_t seen = 0;
  REQUIRE(other.Launch([&] { seen = sum; }).ok());
  REQUIRE(other.Synchronize().ok());
  CHECK(seen == 20000);
}

TEST_CASE_FIXTURE(Fixture,
                  "Stream: the destructor runs the remaining work once") {
  int tasks = 0;
  const auto held = std::make_shared<int>(0);
  {
    Stream stream(device_);
    Gate gate(stream);
    for (int i = 0; i < 100; ++i) {
      REQUIRE(stream.RunOnHost([&tasks, held] { ++tasks; }).ok());
    }
    CHECK(held.use_count() == 101);
    gate.Open();
  }
  CHECK(tasks == 100);
  CHECK(held.use_count() == 1);
}

TEST_CASE_FIXTURE(Fixture, "Event: complete if never recorded") {
  Event event;
  CHECK(event.Poll().value() == Event::State::kComplete);
  CHECK(event.Synchronize().ok());
  CHECK(stream_.WaitFor(event).ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "Event: a wait refers to the latest earlier recording") {
  Stream late(device_), waiter(device_);
  Event event;
  REQUIRE(stream_.Record(event).ok());
  REQUIRE(event.Synchronize().ok());
  REQUIRE(waiter.WaitFor(event).ok());
  Gate gate(late);
  REQUIRE(late.Record(event).ok());  // again, at a point not yet reached
  CHECK(waiter.Synchronize().ok());  // does not wait for the new recording
  CHECK(event.Poll().value() == Event::State::kPending);
  gate.Open();
  CHECK(event.Synchronize().ok());
}

TEST_CASE_FIXTURE(Fixture, "Event: can be destroyed while pending") {
  Stream waiter(device_);
  std::optional<Event> event(std::in_place);
  Gate gate(stream_);
  REQUIRE(stream_.Record(*event).ok());
  REQUIRE(waiter.WaitFor(*event).ok());
  event.reset();
  gate.Open();
  CHECK(waiter.Synchronize().ok());
}

TEST_CASE_FIXTURE(Fixture, "Timer: measures the work between its two points") {
  Timer timer;
  CHECK_FALSE(timer.Nanoseconds().ok());
  REQUIRE(stream_.Start(timer).ok());
  CHECK_FALSE(timer.Nanoseconds().ok());
  REQUIRE(stream_.Launch([] { std::this_thread::sleep_for(milliseconds(20)); })
              .ok());
  REQUIRE(stream_.Stop(timer).ok());
  const uint64_t nanoseconds = timer.Nanoseconds().value();
  CHECK(nanoseconds >= 20'000'000);
  CHECK(nanoseconds < 10'000'000'000);
  REQUIRE(stream_.Start(timer).ok());  // again, after the earlier stop
  CHECK_FALSE(timer.Nanoseconds().ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "faults: in the enqueueing call, and on the device") {
  void* a = device_.Allocate(4).value();
  int host = 0;
  REQUIRE(InjectFault("hook=memcpy_htod,kind=oom").ok());
  CHECK(stream_.CopyToDevice(a, &host, 4).code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(stream_.Synchronize().ok());  // the failed call enqueued nothing
  REQUIRE(InjectFault("hook=device,kind=throw").ok());
  CHECK(stream_.CopyToDevice(a, &host, 4).ok());
  CHECK(stream_.Synchronize().code() == absl::StatusCode::kInternal);
  CHECK_FALSE(FaultPending());
  CHECK(stream_.CopyToDevice(a, &host, 4).ok());
  CHECK(stream_.Synchronize().ok());
}

}  // namespace
}  // namespace cpu_sim::rt::stream_test
