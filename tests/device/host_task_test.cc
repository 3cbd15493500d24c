// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/device/host_task.h>
#include <tfplug/testing.h>

#include <new>
#include <type_traits>
#include <utility>

namespace tfplug::host_task_test {
namespace {

using testing::FakeOptions;
using testing::LogCapture;
using testing::ScopedFakeTensorFlow;

// Returns options for a release with TF_Log, so that LogCapture receives the
// log.
FakeOptions WithLog() {
  FakeOptions options;
  options.release = {2, 18};
  return options;
}

struct Counter {
  int runs = 0;
  absl::Status result;

  static void Run(void* self, capi::TF_Status* status) {
    auto* counter = static_cast<Counter*>(self);
    ++counter->runs;
    testing::WriteStatus(counter->result, status);
  }
  HostTask Task() { return HostTask(&Run, this); }
};

static_assert(!std::is_copy_constructible_v<HostTask>);
static_assert(!std::is_copy_assignable_v<HostTask>);
static_assert(std::is_nothrow_move_constructible_v<HostTask>);

TEST_CASE(
    "HostTask runs once, and returns the status of TensorFlow's function") {
  ScopedFakeTensorFlow fake(WithLog());
  LogCapture log;
  const int64_t before = testing::LiveStatusCount();
  Counter counter;
  counter.result = absl::CancelledError("step is over");
  HostTask task = counter.Task();
  CHECK(task.Run() == absl::CancelledError("step is over"));
  CHECK(task() == absl::OkStatus());
  CHECK(counter.runs == 1);
  CHECK(testing::LiveStatusCount() == before);
  CHECK(log.lines().empty());
}

#if defined(__cpp_exceptions)
TEST_CASE("HostTask returns an exception of the function as a status") {
  ScopedFakeTensorFlow fake(WithLog());
  const int64_t before = testing::LiveStatusCount();
  HostTask task([](void*, capi::TF_Status*) { throw std::bad_alloc(); },
                nullptr);
  CHECK(absl::IsResourceExhausted(task.Run()));
  CHECK(testing::LiveStatusCount() == before);
}
#endif

TEST_CASE("a HostTask destroyed before it ran is logged once") {
  ScopedFakeTensorFlow fake(WithLog());
  LogCapture log;
  Counter counter;
  {
    HostTask first = counter.Task();
    HostTask moved = std::move(first);
  }
  CHECK(counter.runs == 0);
  REQUIRE(log.lines().size() == 1);
  CHECK(log.lines()[0] ==
        "tfplug: host_callback: a HostTask was destroyed before it ran. Unless "
        "RunOnHost returned an error, TensorFlow waits for the task forever: "
        "run each task that RunOnHost accepts");
}

TEST_CASE("the last owner of a moved HostTask runs it") {
  ScopedFakeTensorFlow fake(WithLog());
  LogCapture log;
  Counter a, b;
  {
    HostTask first = a.Task();
    HostTask second = std::move(first);
    CHECK(first.Run().ok());  // NOLINT(bugprone-use-after-move): moved from
    CHECK(a.runs == 0);
    HostTask third = b.Task();
    CHECK(third.Run().ok());
    third = std::move(second);
    CHECK(third.Run().ok());
  }
  CHECK(a.runs == 1);
  CHECK(b.runs == 1);
  CHECK(log.lines().empty());
}

TEST_CASE("HostTask: move assignment logs the task that it destroys") {
  ScopedFakeTensorFlow fake(WithLog());
  LogCapture log;
  Counter a, b;
  {
    HostTask task = a.Task();
    task = b.Task();  // destroys a's task with the temporary
    CHECK(task.Run().ok());
  }
  CHECK(a.runs == 0);
  CHECK(b.runs == 1);
  CHECK(log.lines().size() == 1);
}

TEST_CASE("HostTask::Release returns arguments for a C driver") {
  ScopedFakeTensorFlow fake(WithLog());
  LogCapture log;
  Counter counter;
  std::pair<capi::SE_StatusCallbackFn, void*> released;
  {
    HostTask task = counter.Task();
    released = task.Release();
  }
  CHECK(log.lines().empty());
  CHECK(released.second == &counter);
  CHECK(HostTask(released.first, released.second).Run().ok());
  CHECK(counter.runs == 1);
}

}  // namespace
}  // namespace tfplug::host_task_test
