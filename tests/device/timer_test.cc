// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/timer.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "recording_device.h"

namespace tfplug::timer_test {
namespace {

using recording::Record;
using Calls = std::vector<std::string>;

TEST_CASE("a timer is created, read through its hook and destroyed") {
  Fixture<recording::Platform> fixture;
  Record::Get().Take();
  auto timer = fixture.device().CreateTimer().value();
  CHECK(Record::Get().Take() == Calls{"+Timer", "Timer()", "Timer::Init()"});
  CHECK(timer->Nanoseconds() == 12345);
  Record::Get().Take();
  timer.reset();
  CHECK(Record::Get().Take() == Calls{"-Timer"});
}

TEST_CASE("HostTimer measures the time between its two tasks") {
  testing::ScopedFakeTensorFlow fake;
  HostTimer timer;
  HostTask start = timer.MakeStartTask(), stop = timer.MakeStopTask();
  CHECK_FALSE(timer.Nanoseconds().ok());
  const auto before = std::chrono::steady_clock::now();
  CHECK(start.Run().ok());
  CHECK_FALSE(timer.Nanoseconds().ok());  // not stopped yet
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(stop.Run().ok());
  const std::chrono::nanoseconds most =
      std::chrono::steady_clock::now() - before;
  REQUIRE(timer.Nanoseconds().ok());
  CHECK(*timer.Nanoseconds() >= 2'000'000);
  CHECK(*timer.Nanoseconds() <= static_cast<uint64_t>(most.count()));
}

TEST_CASE("HostTimer can be started again") {
  testing::ScopedFakeTensorFlow fake;
  HostTimer timer;
  CHECK(timer.MakeStartTask().Run().ok());
  CHECK(timer.MakeStopTask().Run().ok());
  CHECK(timer.MakeStartTask().Run().ok());
  CHECK_FALSE(timer.Nanoseconds().ok());
  CHECK(timer.MakeStopTask().Run().ok());
  CHECK(timer.Nanoseconds().ok());
}

TEST_CASE("HostTimer's tasks may outlive the timer") {
  testing::ScopedFakeTensorFlow fake;
  std::optional<HostTimer> timer(std::in_place);
  HostTask start = timer->MakeStartTask();
  std::thread stream(
      [task = timer->MakeStopTask()]() mutable { CHECK(task.Run().ok()); });
  timer.reset();
  CHECK(start.Run().ok());
  stream.join();
}

}  // namespace
}  // namespace tfplug::timer_test
