// SPDX-License-Identifier: Apache-2.0
#include <tfplug/profiler.h>

#include <chrono>
#include <cstdint>
#include <string>

// A library with a profiler and nothing else. Its profile has one event, which
// lasts as long as the profile. With the device type FAILING, every call fails.
namespace {

class OwnProfiler : public tfplug::Profiler {
 public:
  static constexpr char kDeviceType[] = TYPE;

  absl::Status Start() override {
    started_ = stopped_ = Now();
    return Result("start");
  }
  absl::Status Stop() override {
    stopped_ = Now();
    return Result("stop");
  }
  absl::Status Collect(tfplug::XSpace& space) override {
    space.AddPlane("/device:CUSTOM:OWN")
        .AddLine(1, "Counters", started_)
        .AddEvent("a whole profile", started_, stopped_)
        .Set("collected", ++collected_);
    return Result("collect");
  }

 private:
  static uint64_t Now() {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(
            std::chrono::system_clock::now().time_since_epoch())
            .count());
  }
  static absl::Status Result(const char* call) {
    if (std::string(TYPE) != "FAILING") return absl::OkStatus();
    return absl::UnavailableError(std::string("no counters to ") + call);
  }

  uint64_t started_ = 0, stopped_ = 0;
  int collected_ = 0;
};

}  // namespace

TFPLUG_REGISTER_PROFILER(OwnProfiler);
