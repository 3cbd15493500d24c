// SPDX-License-Identifier: Apache-2.0
#include <tfplug/plugin.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "profiler/xspace_reader.h"

// A device with a clock of its own, which begins elsewhere and is a tenth too
// fast.
namespace timed {

uint64_t ToDevice(uint64_t unix_ns) {
  static const uint64_t first = tfplug::profiler_internal::Recorder::NowNs();
  return 1000000 + (unix_ns - first) / 10 * 11;
}

// What the timers measured, in Unix time.
std::vector<tfplug::WorkTimes>& Truth() {
  static std::vector<tfplug::WorkTimes> truth;
  return truth;
}
int live_timers = 0, made_timers = 0;
bool is_stuck = false;

class Timer : public tfplug::Timer {
 public:
  Timer() {
    ++live_timers;
    ++made_timers;
  }
  ~Timer() override { --live_timers; }
  absl::StatusOr<uint64_t> Nanoseconds() override { return 0; }
  absl::StatusOr<tfplug::WorkTimes> GetTimes() override {
    if (is_stuck || polls++ == 0) return absl::UnavailableError("not done");
    if (times.begin_ns == 0) return absl::NotFoundError("no work");
    return tfplug::WorkTimes{ToDevice(times.begin_ns), ToDevice(times.end_ns)};
  }

  int polls = 0;
  tfplug::WorkTimes times;
};

class Stream : public minimal::StreamHooks<
                   Stream, tfplug::Stream<Stream, minimal::Event, Timer>> {
 public:
  absl::Status StartTimer(Timer& timer) override {
    timer.polls = 0;
    timer.times = {};
    running_ = &timer;
    return absl::OkStatus();
  }
  absl::Status StopTimer(Timer&) override { return absl::OkStatus(); }

  // Works for two milliseconds of the three that a launch takes.
  void Work() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (running_ == nullptr) return;
    running_->times.begin_ns = tfplug::profiler_internal::Recorder::NowNs();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    running_->times.end_ns = tfplug::profiler_internal::Recorder::NowNs();
    Truth().push_back(running_->times);
  }

 private:
  Timer* running_ = nullptr;
};

class Memory : public minimal::Memory {
 public:
  absl::StatusOr<tfplug::AllocatorStats> Stats() override {
    tfplug::AllocatorStats stats;
    stats.bytes_in_use = 5000;
    stats.peak_bytes_in_use = 7000;
    return stats;
  }
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  absl::Status SynchronizeAllActivity() override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> GetTime() override {
    return ToDevice(tfplug::profiler_internal::Recorder::NowNs());
  }
};
class Platform : public minimal::PlatformOf<Device> {
 public:
  tfplug::PlatformOptions Options() override {
    tfplug::PlatformOptions options;
    options.use_bfc_allocator = false;
    return options;
  }
};

template <bool kWorks>
class Kernel : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    auto stream = context.GetStream<Stream>();
    if (stream.ok() && kWorks) (*stream)->Work();
    return context.GetStream<Stream>().status();
  }
};

}  // namespace timed

TFPLUG_REGISTER_DEVICE(timed::Platform);
TFPLUG_REGISTER_KERNEL(timed::Kernel<true>, tfplug::KernelDef("Works"));
TFPLUG_REGISTER_KERNEL(timed::Kernel<false>, tfplug::KernelDef("Idles"));

namespace tfplug {
namespace {

using testing::FakeKernel;
using testing::KernelRun;
using testing::ProfilerHost;

class Timed : public Fixture<timed::Platform> {
 public:
  Timed() {
    TF_InitKernel();
    profiler = ProfilerHost::Register(&TF_InitProfiler).value();
    timed::Truth().clear();
    timed::made_timers = 0;
  }
  void Launch(const std::string& op) {
    auto kernel =
        FakeKernel::Create({op, op, {}, {}}, timed::Platform::kType).value();
    KernelRun run(*kernel, &device());
    CHECK(run.Run().ok());
  }
  // Returns the stream's events.
  std::vector<xspace::Line> Lines(const std::string& kind) {
    std::vector<xspace::Line> lines;
    for (const auto& plane : xspace::Read(profiler->Collect().value())) {
      for (const xspace::Line& line : plane.lines) {
        if (line.name.find(kind) != std::string::npos) lines.push_back(line);
      }
    }
    return lines;
  }

  // Returns the number of events that are missing.
  std::string Dropped() {
    for (const auto& plane : xspace::Read(profiler->Collect().value())) {
      for (const xspace::Event& event : plane.Events("dropped events")) {
        return event.stats.at("dropped");
      }
    }
    return "0";
  }

  std::unique_ptr<ProfilerHost> profiler;
};

TEST_CASE("A profile has the device's own times, in Unix time") {
  Timed fixture;
  REQUIRE(fixture.profiler->Start().ok());
  for (int i = 0; i < 20; ++i) fixture.Launch("Works");
  fixture.Launch("Idles");
  REQUIRE(fixture.profiler->Stop().ok());

  const auto lines = fixture.Lines("Compute");
  REQUIRE(lines.size() == 1);
  const auto& truth = timed::Truth();
  REQUIRE_MESSAGE(lines[0].events.size() == truth.size(),
                  "a launch without work is not on the stream");
  for (size_t i = 0; i < truth.size(); ++i) {
    const xspace::Event& event = lines[0].events[i];
    CHECK(event.name == "Works");
    const double begin_ns = static_cast<double>(event.begin_ps) / 1e3;
    const double is_ns =
        static_cast<double>(truth[i].begin_ns - lines[0].start_ns);
    // The clocks are a tenth of 60 ms apart at the end.
    CHECK(std::abs(begin_ns - is_ns) < 1e6);
    const double duration_ns = static_cast<double>(event.duration_ps) / 1e3;
    const double was_ns =
        static_cast<double>(truth[i].end_ns - truth[i].begin_ns);
    CHECK(std::abs(duration_ns - was_ns) < 0.05 * was_ns);
  }
  CHECK(timed::live_timers == 0);
  CHECK(fixture.Dropped() == "0");
}

TEST_CASE("The statistics of an allocator appear") {
  Timed fixture;
  REQUIRE(fixture.profiler->Start().ok());
  fixture.device().Deallocate(fixture.device().Allocate(64));
  REQUIRE(fixture.profiler->Stop().ok());
  bool has_memory = false;
  for (const auto& plane : xspace::Read(fixture.profiler->Collect().value())) {
    for (const xspace::Event& event : plane.Events("MemoryAllocation")) {
      has_memory = true;
      CHECK(event.stats.at("bytes_allocated") == "5000");
      CHECK(event.stats.at("peak_bytes_in_use") == "7000");
    }
  }
  CHECK(has_memory);
}

TEST_CASE("A profile uses timers again") {
  Timed fixture;
  REQUIRE(fixture.profiler->Start().ok());
  for (int i = 0; i < 400; ++i) fixture.Launch("Idles");
  REQUIRE(fixture.profiler->Stop().ok());
  CHECK(timed::made_timers > 0);
  CHECK(timed::made_timers < 200);
  CHECK(timed::live_timers == 0);
}

TEST_CASE("Work that hangs does not stop a profile, and is reported") {
  Timed fixture;
  timed::is_stuck = true;
  REQUIRE(fixture.profiler->Start().ok());
  fixture.Launch("Works");
  REQUIRE(fixture.profiler->Stop().ok());
  timed::is_stuck = false;
  CHECK(timed::live_timers == 0);
  CHECK(fixture.Lines("Compute").empty());
  CHECK(fixture.Dropped() == "1");
}

TEST_CASE("Each timer of work that is done is used once more") {
  class Done : public profiler_internal::WorkTimer {
   public:
    bool Stop(capi::SP_Stream) override { return true; }
    State Read(uint64_t*, uint64_t*) override { return State::kDone; }
  };
  profiler_internal::WorkTimers timers;
  uint64_t done = 0;
  const auto use = [&](const auto& result) { done += result.correlation; };
  for (uint64_t i = 1; i <= 3; ++i) {
    CHECK(timers.Add(/*stream=*/1, i, std::make_unique<Done>(), use));
  }
  CHECK(timers.ReadAll(use));
  CHECK(done == 6);
  for (int i = 0; i < 3; ++i) CHECK(timers.TakeIdle(1) != nullptr);
  CHECK(timers.TakeIdle(1) == nullptr);
}

TEST_CASE("Work is not measured while too much is pending") {
  class Pending : public profiler_internal::WorkTimer {
   public:
    bool Stop(capi::SP_Stream) override { return true; }
    State Read(uint64_t*, uint64_t*) override { return State::kPending; }
  };
  profiler_internal::WorkTimers timers;
  uint64_t added = 0;
  while (added < 100000 &&
         timers.Add(/*stream=*/1, added, std::make_unique<Pending>(),
                    [](const auto&) {})) {
    ++added;
  }
  CHECK(added == 1 << 14);
}

TEST_CASE("A clock that was read once runs like the host's") {
  profiler_internal::DeviceClock clock;
  CHECK_FALSE(clock.is_set());
  clock.Add({1000, 50, 1100});
  CHECK(clock.is_set());
  CHECK(clock.ToUnix(50) == 1050);
  CHECK(clock.ToUnix(40) == 1040);
  CHECK(clock.ToUnix(150) == 1150);
  clock.Add({2000, 1050, 2100});  // 1000 of the device are 1000 of the host
  CHECK(clock.ToUnix(550) == 1550);
  clock.Add({3050, 1050, 3050});  // they are 2000
  CHECK(clock.ToUnix(550) == 2050);
}

}  // namespace
}  // namespace tfplug
