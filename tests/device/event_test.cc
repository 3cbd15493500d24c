// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/event.h>

#include <string>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

namespace tfplug::event_test {
namespace {

using recording::Record;
using Calls = std::vector<std::string>;

static_assert(static_cast<int>(EventStatus::kUnknown) ==
              capi::SE_EVENT_UNKNOWN);
static_assert(static_cast<int>(EventStatus::kError) == capi::SE_EVENT_ERROR);
static_assert(static_cast<int>(EventStatus::kPending) ==
              capi::SE_EVENT_PENDING);
static_assert(static_cast<int>(EventStatus::kComplete) ==
              capi::SE_EVENT_COMPLETE);

TEST_CASE("an event is created, used through its hooks and destroyed") {
  Fixture<recording::Platform> fixture;
  Record::Get().Take();
  auto event = fixture.device().CreateEvent().value();
  CHECK(Record::Get().Take() == Calls{"+Event", "Event()", "Event::Init()"});
  std::ostringstream self;
  self << static_cast<const void*>(event->handle());
  CHECK(event->Poll() == EventStatus::kPending);
  CHECK(event->BlockHost().ok());
  CHECK(Record::Get().Take() == Calls{"Event::Poll(" + self.str() + ")",
                                      "Event::BlockHost(" + self.str() + ")"});
  event.reset();
  CHECK(Record::Get().Take() == Calls{"-Event"});
}

TEST_CASE(
    "an event without a constructor from Device& is default-constructed") {
  Fixture<minimal::Platform> fixture;
  auto event = fixture.device().CreateEvent().value();
  CHECK(event->Poll() == EventStatus::kComplete);
}

TEST_CASE("destroying a null handle does nothing") {
  Fixture<minimal::Platform> fixture;
  const testing::FakeDevice& device = fixture.device();
  device.fns().destroy_event(device.c_device(), nullptr);
  device.fns().destroy_stream(device.c_device(), nullptr);
  device.fns().destroy_timer(device.c_device(), nullptr);
}

// The results that the hooks of EventOf return.
absl::StatusOr<EventStatus> poll_result = EventStatus::kPending;
absl::Status block_result;
class EventOf : public tfplug::Event {
 public:
  absl::StatusOr<EventStatus> Poll() override { return poll_result; }
  absl::Status BlockHost() override { return block_result; }
};
class StreamOf
    : public minimal::StreamHooks<StreamOf, tfplug::Stream<StreamOf, EventOf>> {
};

TEST_CASE("get_event_status returns the result of Poll") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<StreamOf>>> fixture;
  auto event = fixture.device().CreateEvent().value();
  block_result = absl::OkStatus();
  for (EventStatus status :
       {EventStatus::kError, EventStatus::kPending, EventStatus::kComplete}) {
    poll_result = status;
    CHECK(event->Poll() == status);
  }
}

// TensorFlow aborts on an event that is neither pending nor complete.
TEST_CASE("if Poll fails, the result of BlockHost decides") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<StreamOf>>> fixture;
  auto event = fixture.device().CreateEvent().value();
  for (const absl::StatusOr<EventStatus>& answer :
       {absl::StatusOr<EventStatus>(absl::UnavailableError("busy")),
        absl::StatusOr<EventStatus>(EventStatus::kUnknown)}) {
    poll_result = answer;
    block_result = absl::OkStatus();
    CHECK(event->Poll() == EventStatus::kComplete);
    block_result = absl::InternalError("the work failed");
    CHECK(event->Poll() == EventStatus::kError);
  }
}

}  // namespace
}  // namespace tfplug::event_test
