// SPDX-License-Identifier: Apache-2.0
#include "tfplug/testing/conformance.h"

#include <doctest/doctest.h>

#include <string>

#include "fixture.h"
#include "minimal_device.h"
#include "queue_device.h"

namespace conformance_test {
namespace {

using queue::Mistake;
using tfplug::testing::CheckDevice;
using tfplug::testing::DeviceProgram;
using tfplug::testing::Step;
using tfplug::testing::StepKind;

TEST_CASE("a device that works at once") {
  tfplug::Fixture<minimal::Platform> fixture;
  CHECK(CheckDevice(fixture.device(), {1, 0.3}) == absl::OkStatus());
}

TEST_CASE("a device whose streams are threads") {
  tfplug::Fixture<minimal::PlatformOf<queue::Device>> fixture;
  CHECK(CheckDevice(fixture.device(), {1, 0.5}) == absl::OkStatus());
}

TEST_CASE("each mistake is found, and named by the smallest program") {
#if defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: the mistakes are races, which the sanitizer forbids");
  return;
#endif
  struct Case {
    Mistake mistake;
    const char* named;
  };
  const Case cases[] = {
      {Mistake::kIgnoresWaitForStream, "WaitForStream(stream "},
      {Mistake::kIgnoresWaitForEvent, "WaitForEvent(event "},
      {Mistake::kRunsTasksAtOnce, "RunOnHost(a task that "},
      {Mistake::kCopiesAtOnce, ": Copy"},
      {Mistake::kRecordsEventsEarly, "RecordEvent(event "},
      {Mistake::kFillsTooLittle, ": Mem"},
      {Mistake::kFillsWithBytes, "Memset32(device buffer "},
      {Mistake::kBlocksTooShort, "BlockHostUntilDone(stream "},
      {Mistake::kSynchronizesTooShort, "SynchronizeAllActivity()"},
  };
  for (const Case& each : cases) {
    CAPTURE(static_cast<int>(each.mistake));
    tfplug::Fixture<minimal::PlatformOf<queue::Device>> fixture;
    queue::mistake = each.mistake;
    const absl::Status status = CheckDevice(fixture.device(), {1, 20});
    queue::mistake = Mistake::kNone;
    CHECK(absl::IsInternal(status));
    const std::string text(status.message());
    CHECK_MESSAGE(text.find(each.named) != std::string::npos, text);
    CHECK_MESSAGE(text.find("\n15. ") == std::string::npos, text);
  }
}

TEST_CASE("steps that no wait orders are a race") {
  const auto step = [](StepKind kind, int stream, int other, int to, int from) {
    Step made;
    made.kind = kind;
    made.stream = stream;
    made.other = other;
    made.to = to;
    made.from = from;
    made.size = 1;
    return made;
  };
  const Step write = step(StepKind::kMemset, 0, 0, 2, -1);
  const Step copy = step(StepKind::kCopyDeviceToDevice, 1, 0, 3, 2);
  const Step wait = step(StepKind::kWaitForStream, 1, 0, -1, -1);
  const Step record = step(StepKind::kRecordEvent, 0, 3, -1, -1);
  const Step wait_event = step(StepKind::kWaitForEvent, 1, 3, -1, -1);
  const Step block = step(StepKind::kBlockForStream, 0, 0, -1, -1);
  const auto is_race_free = [](const DeviceProgram& program) {
    return tfplug::testing::IsRaceFree(program);
  };
  CHECK(!is_race_free({write, copy}));
  CHECK(!is_race_free({copy, write}));
  CHECK(is_race_free({write, write}));
  CHECK(is_race_free({write, wait, copy}));
  CHECK(!is_race_free({wait, write, copy}));
  CHECK(is_race_free({write, record, wait_event, copy}));
  CHECK(!is_race_free({record, write, wait_event, copy}));
  CHECK(!is_race_free({write, wait_event, copy}));  // it was never recorded
  CHECK(is_race_free({write, block, copy}));
}

}  // namespace
}  // namespace conformance_test
