// SPDX-License-Identifier: Apache-2.0
#include <tfplug/profiler.h>

#include <stdexcept>
#include <string>

#include "fixture.h"
#include "profiler/xspace_reader.h"

namespace {

using tfplug::testing::ProfilerHost;

// Records the calls, and adds their count to the profile.
class Profiler : public tfplug::Profiler {
 public:
  static constexpr char kDeviceType[] = "MINIMAL";

  static inline std::string calls;
  static inline absl::Status result;
  static inline bool throws = false;
  static inline bool is_empty = false;

  absl::Status Start() override { return Call("start "); }
  absl::Status Stop() override { return Call("stop "); }
  absl::Status Collect(tfplug::XSpace& space) override {
    absl::Status status = Call("collect ");
    if (!status.ok() || is_empty) return status;
    tfplug::XPlane& plane = space.AddPlane("/device:GPU:0 (MINIMAL:0)");
    tfplug::XLine& line = plane.AddLine(7, "Stream #1(Compute)", 1000);
    line.AddEvent("MatMul", 1500, 1600)
        .Set("tf_op", "dense/MatMul:MatMul")
        .Set("bytes", uint64_t{1} << 63)
        .Set("offset", -3)
        .Set("ratio", 0.5);
    line.AddEvent("MatMul", 900, 800);
    plane.AddLine(8, "Stream #2(MemcpyH2D)", 1000)
        .AddEvent("Copy", 1000, 1001)
        .Set("bytes", 64);
    space.AddPlane("/host:CUPTI");
    return absl::OkStatus();
  }

 private:
  static absl::Status Call(const char* name) {
    calls += name;
#if defined(__cpp_exceptions)
    if (throws) throw std::runtime_error("thrown");
#endif
    return result;
  }
};

struct Registered {
  Registered() {
    Profiler::calls.clear();
    Profiler::result = absl::OkStatus();
    Profiler::throws = Profiler::is_empty = false;
    auto registered = ProfilerHost::Register(&TF_InitProfiler);
    REQUIRE_MESSAGE(registered.ok(), registered.status().ToString());
    host = *std::move(registered);
  }

  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  std::unique_ptr<ProfilerHost> host;
};

TEST_CASE("A profile is collected once and has the author's events") {
  Registered registered;
  ProfilerHost& host = *registered.host;
  CHECK(host.device_type() == "MINIMAL");
  CHECK(host.Start().ok());
  CHECK(host.Stop().ok());
  const auto collected = host.Collect();
  REQUIRE(collected.ok());
  CHECK(Profiler::calls == "start stop collect ");

  const auto planes = xspace::Read(*collected);
  REQUIRE(planes.size() == 2);
  CHECK(planes[0].name == "/device:GPU:0 (MINIMAL:0)");
  CHECK(planes[1].name == "/host:CUPTI");
  REQUIRE(planes[0].lines.size() == 2);
  const xspace::Line& line = planes[0].lines[0];
  CHECK(line.id == 7);
  CHECK(line.name == "Stream #1(Compute)");
  CHECK(line.start_ns == 1000);
  REQUIRE(line.events.size() == 2);
  xspace::Event event = line.events[0];
  CHECK(event.name == "MatMul");
  CHECK(event.begin_ps == 500000);
  CHECK(event.duration_ps == 100000);
  CHECK(event.stats["tf_op"] == "dense/MatMul:MatMul");
  CHECK(event.stats["bytes"] == "9223372036854775808");
  CHECK(event.stats["offset"] == "-3");
  CHECK(event.stats["ratio"] == "0.500000");
  CHECK_MESSAGE(line.events[1].begin_ps == 0, "cut off at the line's start");
  CHECK(line.events[1].duration_ps == 0);
  CHECK(planes[0].lines[1].events[0].name == "Copy");
  CHECK(planes[0].lines[1].events[0].stats.at("bytes") == "64");
}

TEST_CASE("Every call starts from a clean state") {
  Registered registered;
  ProfilerHost& host = *registered.host;
  CHECK(host.Stop().ok());
  CHECK(host.Start().ok());
  CHECK(host.Start().ok());
  const auto first = host.Collect(), second = host.Collect();
  REQUIRE((first.ok() && second.ok()));
  CHECK(*first == *second);
  CHECK(Profiler::calls == "stop start start collect collect ");
  Profiler::is_empty = true;
  CHECK(host.Collect().value().empty());
}

TEST_CASE("A buffer of another size is respected") {
  Registered registered;
  ProfilerHost& host = *registered.host;
  const std::string profile = host.Collect().value();
  const auto small = host.Read(profile.size() - 1);
  CHECK(small.status().code() == absl::StatusCode::kOutOfRange);
  CHECK(std::string(small.status().message()).find("buffer has") !=
        std::string::npos);
  CHECK(host.Read(profile.size() + 10).value().substr(0, profile.size()) ==
        profile);
  // A start or a stop discards the profile for which the buffer was too small.
  for (const bool starts : {true, false}) {
    CHECK_FALSE(host.Read(1).ok());
    CHECK((starts ? host.Start() : host.Stop()).ok());
    Profiler::calls.clear();
    CHECK(host.Read(profile.size()).value() == profile);
    CHECK(Profiler::calls == "collect ");
  }
}

TEST_CASE("A failure is reported and leaves no garbage for a size") {
  Registered registered;
  ProfilerHost& host = *registered.host;
  Profiler::result = absl::UnavailableError("no counters");
  CHECK(host.Start().message() == "start: no counters");
  CHECK(host.Stop().message() == "stop: no counters");
  CHECK(host.Collect().status().message() ==
        "collect_data_xspace: no counters");
#if defined(__cpp_exceptions)
  Profiler::throws = true;
  CHECK(host.Start().message() == "start: C++ exception: thrown");
  CHECK(host.Collect().status().code() == absl::StatusCode::kInternal);
#endif
}

TEST_CASE("Another major version is refused") {
  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  const auto host =
      ProfilerHost::Register(&TF_InitProfiler, tfplug::capi::kNewestRelease, 1);
  CHECK(host.status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace

TFPLUG_REGISTER_PROFILER(Profiler);
