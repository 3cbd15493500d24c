// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/command_event.h"

#include <doctest/doctest.h>

#include <thread>

namespace command_event_test {
namespace {

// A command of a driver, which counts its objects.
struct Record {
  tfplug::EventStatus status = tfplug::EventStatus::kPending;
  uint64_t begin_ns = 0, end_ns = 0;
  int released = 0, waits = 0;
};

struct Commands {
  using Handle = Record*;
  static void Release(Record* record) { ++record->released; }
  static absl::StatusOr<tfplug::EventStatus> Poll(Record* record) {
    return record->status;
  }
  static absl::Status BlockHost(Record* record) {
    ++record->waits;
    record->status = tfplug::EventStatus::kComplete;
    return absl::OkStatus();
  }
  static absl::StatusOr<tfplug::WorkTimes> GetTimes(Record* record) {
    return tfplug::WorkTimes{record->begin_ns, record->end_ns};
  }
};
using Event = tfplug::CommandEvent<Commands>;
using Timer = tfplug::CommandTimer<Commands>;

TEST_CASE("CommandEvent: complete before it is recorded") {
  Event event;
  CHECK(event.Poll().value() == tfplug::EventStatus::kComplete);
  CHECK(event.BlockHost() == absl::OkStatus());
  CHECK(event.Get() == nullptr);
}

TEST_CASE("CommandEvent: the last command counts, and is released once") {
  Record first, second;
  {
    Event event;
    event.Set(&first);
    CHECK(event.Poll().value() == tfplug::EventStatus::kPending);
    const Event::Command waiting = event.Get();
    event.Set(&second);
    CHECK(first.released == 0);  // somebody waits for it
    CHECK(event.BlockHost() == absl::OkStatus());
    CHECK(second.waits == 1);
    CHECK(first.waits == 0);
    CHECK(event.Poll().value() == tfplug::EventStatus::kComplete);
  }
  CHECK(first.released == 1);
  CHECK(second.released == 1);
}

TEST_CASE("CommandTimer: the first and the last command of its thread") {
  Record records[3];
  for (uint64_t i = 0; i < 3; ++i) {
    records[i].begin_ns = 100 * i + 10;
    records[i].end_ns = 100 * i + 20;
  }
  CHECK(Timer::Next() == nullptr);
  {
    Timer timer;
    timer.Start();
    CHECK(absl::IsNotFound(timer.GetTimes().status()));
    CHECK(timer.Nanoseconds().value() == 0);
    for (Record& record : records) *Timer::Next() = &record;
    std::thread([] { CHECK(Timer::Next() == nullptr); }).join();
    timer.Stop();
    CHECK(Timer::Next() == nullptr);
    CHECK(records[1].released == 1);
    CHECK(absl::IsUnavailable(timer.GetTimes().status()));
    CHECK(timer.Nanoseconds().value() == 210);
    CHECK(records[2].waits == 1);
    CHECK(timer.GetTimes()->begin_ns == 10);
    CHECK(timer.GetTimes()->end_ns == 220);
    timer.Start();  // again
    CHECK(records[0].released == 1);
    *Timer::Next() = &records[1];
    records[1].status = tfplug::EventStatus::kComplete;
    CHECK(timer.GetTimes()->begin_ns == 110);
    CHECK(timer.GetTimes()->end_ns == 120);
  }
  CHECK(Timer::Next() == nullptr);  // a destroyed timer does not run
  CHECK(records[0].released == 1);
  CHECK(records[1].released == 2);
  CHECK(records[2].released == 1);
}

}  // namespace
}  // namespace command_event_test
