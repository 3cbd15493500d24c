// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>
#include <tfplug/testing/event_manager.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "minimal_device.h"

// A device whose events complete when the test says so.
namespace tfplug::event_manager_test {
namespace {

using testing::EventManager;
using testing::Jitter;
using Clock = std::chrono::steady_clock;

struct Script {
  std::mutex mutex;
  std::map<const void*, EventStatus> statuses;  // of streams
  std::vector<Clock::time_point> polls;
  int created = 0, live = 0, recorded = 0;
  bool create_fails = false, record_fails = false;
};
Script& script() {
  static auto* const script = new Script;
  return *script;
}

class Event : public minimal::Event {
 public:
  Event() {
    std::lock_guard<std::mutex> lock(script().mutex);
    ++script().created;
    ++script().live;
  }
  ~Event() override {
    std::lock_guard<std::mutex> lock(script().mutex);
    --script().live;
  }
  absl::Status Init() override {
    return script().create_fails ? absl::InternalError("no event")
                                 : absl::OkStatus();
  }
  absl::StatusOr<EventStatus> Poll() override {
    std::lock_guard<std::mutex> lock(script().mutex);
    script().polls.push_back(Clock::now());
    return script().statuses[stream];
  }
  const void* stream = nullptr;
};

class Stream
    : public minimal::StreamHooks<Stream, tfplug::Stream<Stream, Event>> {
 public:
  absl::Status RecordEvent(Event& event) override {
    std::lock_guard<std::mutex> lock(script().mutex);
    ++script().recorded;
    event.stream = this;
    return script().record_fails ? absl::InternalError("not recorded")
                                 : absl::OkStatus();
  }
};
class Device : public tfplug::Device<Stream, minimal::Memory> {};
class Platform : public minimal::PlatformOf<Device> {};
TFPLUG_REGISTER_DEVICE(Platform);

// Holds what the functions that ran have added, in order.
class Log {
 public:
  std::function<void()> Add(const std::string& text) {
    return [this, text] {
      std::lock_guard<std::mutex> lock(mutex_);
      text_ += text;
    };
  }
  std::string text() {
    std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

class Fixture {
 public:
  Fixture() {
    script().statuses.clear();
    script().polls.clear();
    script().create_fails = script().record_fails = false;
    host = testing::Host::Register(&SE_InitPlugin).value();
    device = host->Device(0).value();
    // Without the events of the streams themselves.
    script().created = script().live = script().recorded = 0;
  }
  // Sets the status of all events of a stream.
  static void Set(testing::FakeStream& stream, EventStatus status) {
    std::lock_guard<std::mutex> lock(script().mutex);
    script().statuses[reinterpret_cast<const void*>(stream.handle())] = status;
  }
  static void WaitForPolls(size_t count) {
    while (true) {
      {
        std::lock_guard<std::mutex> lock(script().mutex);
        if (script().polls.size() >= count) return;
      }
      std::this_thread::yield();
    }
  }
  const testing::ScopedFakeTensorFlow tensorflow;
  std::unique_ptr<testing::Host> host;
  testing::FakeDevice* device;
};

TEST_CASE("a function runs once its event is complete, whichever is first") {
  Fixture fixture;
  testing::FakeStream& a = fixture.device->compute();
  testing::FakeStream& b = fixture.device->host_to_device();
  Fixture::Set(a, EventStatus::kPending);
  Fixture::Set(b, EventStatus::kPending);
  Log log;
  {
    EventManager events(*fixture.device);
    REQUIRE(events.ThenExecute(a, log.Add("a")).ok());
    REQUIRE(events.ThenExecute(b, log.Add("b")).ok());
    Fixture::WaitForPolls(10);
    CHECK(log.text() == "");
    Fixture::Set(b, EventStatus::kComplete);
    while (log.text().empty()) std::this_thread::yield();
    CHECK(log.text() == "b");
    Fixture::Set(a, EventStatus::kComplete);
    events.Wait();
    CHECK(log.text() == "ba");
    // Both events are used again.
    REQUIRE(events.ThenExecute(a, log.Add("c")).ok());
    REQUIRE(events.ThenExecute(a, log.Add("d")).ok());
    events.Wait();
    CHECK(log.text() == "bacd");
    CHECK(script().created == 2);
    CHECK(script().recorded == 4);
    CHECK(events.status() == absl::OkStatus());
    // The destructor waits.
    REQUIRE(events.ThenExecute(a, log.Add("e")).ok());
  }
  CHECK(log.text() == "bacde");
  CHECK(script().live == 0);
}

TEST_CASE("what fails") {
  Fixture fixture;
  testing::FakeStream& stream = fixture.device->compute();
  Log log;
  EventManager events(*fixture.device);
  Fixture::Set(stream, EventStatus::kComplete);
  script().record_fails = true;  // ignored, as in TensorFlow
  REQUIRE(events.ThenExecute(stream, log.Add("a")).ok());
  events.Wait();
  CHECK(log.text() == "a");
  CHECK(events.status() == absl::OkStatus());

  Fixture::Set(stream, EventStatus::kError);
  REQUIRE(events.ThenExecute(stream, log.Add("b")).ok());
  events.Wait();
  CHECK(log.text() == "ab");
  CHECK(absl::IsAborted(events.status()));
  CHECK(events.status().message().find("Unexpected Event status") !=
        std::string::npos);

  script().create_fails = true;
  EventManager others(*fixture.device);
  CHECK(others.ThenExecute(stream, log.Add("c")).message() ==
        "create_event: no event");
  others.Wait();
  CHECK(log.text() == "ab");
}

TEST_CASE("jitter polls late, by delays that a seed selects") {
  Fixture fixture;
  testing::FakeStream& stream = fixture.device->compute();
  Fixture::Set(stream, EventStatus::kComplete);
  Jitter jitter(7), same(7), none(0);
  int late = 0;
  {
    EventManager events(*fixture.device, &jitter);
    for (int i = 0; i < 50; ++i) {
      const auto before = Clock::now();
      bool has_run = false;
      REQUIRE(events.ThenExecute(stream, [&] { has_run = true; }).ok());
      events.Wait();
      CHECK(has_run);
      const auto delay = same.Delay();  // of the poll
      CHECK(script().polls.back() - before >= delay);
      if (delay.count() >= 100) ++late;
      same.Delay();  // before the function
      CHECK(none.Delay().count() == 0);
    }
  }
  CHECK(late > 5);
  CHECK(script().polls.size() == 50);
}

}  // namespace
}  // namespace tfplug::event_manager_test
