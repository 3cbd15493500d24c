// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/platform.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

namespace tfplug::platform_test {
namespace {

using recording::Fault;
using recording::Record;
using Calls = std::vector<std::string>;

template <class PlatformT>
absl::StatusOr<std::unique_ptr<testing::Host>> Register(
    const testing::HostOptions& options = {}) {
  return testing::Host::Register(
      &device_internal::PlatformRegistration<PlatformT>::InitPlugin, options);
}

TEST_CASE("a platform is constructed, initialized and destroyed") {
  testing::ScopedFakeTensorFlow fake;
  Record::Get().Take();
  auto host = Register<recording::Platform>().value();
  CHECK(Record::Get().Take() ==
        Calls{"+Platform", "Platform()", "Platform::Init()", "Options()"});
  CHECK(host->platform_name() == "RECORDING_PLATFORM");
  CHECK(host->device_type() == "RECORDER");
  CHECK(host->DeviceCount().value() == 2);
  CHECK(host->DeviceCount().value() == 2);
  CHECK(Record::Get().Take() == Calls{"DeviceCount()", "DeviceCount()"});
  host.reset();
  CHECK(Record::Get().Take() == Calls{"-Platform"});
}

TEST_CASE("the options of a platform reach TensorFlow") {
  testing::ScopedFakeTensorFlow fake;
  const auto recorder = Register<recording::Platform>().value();
  CHECK(recorder->platform().use_bfc_allocator == 0);
  CHECK(recorder->platform().force_memory_growth == 1);
  const auto minimal = Register<minimal::Platform>().value();
  CHECK(minimal->platform().use_bfc_allocator == 1);
  CHECK(minimal->platform().force_memory_growth == 0);
}

TEST_CASE("names are constants that live as long as the library") {
  testing::ScopedFakeTensorFlow fake;
  const auto first = Register<recording::Platform>().value();
  CHECK(std::string(first->platform().name) == recording::Platform::kName);
  CHECK(std::string(first->platform().type) == recording::Platform::kType);
  const auto second = Register<recording::Platform>().value();
  CHECK(second->platform().name == first->platform().name);
  CHECK(second->platform().type == first->platform().type);
}

TEST_CASE(
    "a platform that cannot be constructed has no devices, and the log has "
    "the reason") {
  testing::ScopedFakeTensorFlow fake(Fixture<minimal::Platform>::WithLog());
  const int64_t before = testing::LiveStatusCount();
  std::vector<Fault> faults = {Fault::kStatus};
#if defined(__cpp_exceptions)
  faults.insert(faults.end(),
                {Fault::kException, Fault::kBadAlloc, Fault::kUnknown});
#endif
  for (const char* hook :
       {"Platform", "Platform::Init", "Options", "DeviceCount"}) {
    for (const Fault fault : faults) {
      CAPTURE(hook);
      CAPTURE(static_cast<int>(fault));
      const bool has_status = std::string(hook) == "Platform::Init" ||
                              std::string(hook) == "DeviceCount";
      if (fault == Fault::kStatus && !has_status) continue;
      Record::Get().Take();
      testing::LogCapture log;
      Record::Get().Fail(hook, fault);
      {
        auto host = Register<recording::Platform>();
        REQUIRE(host.ok());
        CHECK((*host)->DeviceCount().value() == 0);
        CHECK((*host)->Problems().ok());
      }
      CHECK(Record::Get().fault_was_reached());
      CHECK(log.lines().size() == 1);
      const char* const messages[] = {
          "DATA_LOSS: driver error 7",
          "INTERNAL: C++ exception: driver refused",
          "RESOURCE_EXHAUSTED: out of host memory (std::bad_alloc)",
          "INTERNAL: C++ exception of type int"};
      const char* const where = std::string(hook) == "DeviceCount"
                                    ? "get_device_count: "
                                    : "RECORDING_PLATFORM: ";
      CHECK(log.text() == std::string("tfplug: ") + where +
                              messages[static_cast<int>(fault) - 1] + "\n");
      // Every object that was constructed has been destroyed.
      int alive = 0;
      for (const std::string& call : Record::Get().Take()) {
        if (call == "+Platform") ++alive;
        if (call == "-Platform") --alive;
      }
      CHECK(alive == 0);
    }
  }
  CHECK(testing::LiveStatusCount() == before);
}

int reported_count;
class Counting : public minimal::Platform {
 public:
  absl::StatusOr<int> DeviceCount() override { return reported_count; }
};

TEST_CASE("a negative count is zero") {
  testing::ScopedFakeTensorFlow fake;
  const auto host = Register<Counting>().value();
  for (int count : {-1, 0, 1, 7}) {
    reported_count = count;
    CHECK(host->DeviceCount().value() == (count < 0 ? 0 : count));
  }
}

// Sets TFPLUG_VISIBLE_DEVICES until it is destroyed.
class ScopedVisible {
 public:
  explicit ScopedVisible(const char* value) {
    setenv("TFPLUG_VISIBLE_DEVICES", value, 1);
  }
  ~ScopedVisible() { unsetenv("TFPLUG_VISIBLE_DEVICES"); }
};

// Four devices that contain their ordinals.
class Numbered : public minimal::Device {
 public:
  explicit Numbered(int ordinal) { created.push_back(ordinal); }
  static inline std::vector<int> created;
};
class FourDevices : public minimal::PlatformOf<Numbered> {
 public:
  absl::StatusOr<int> DeviceCount() override { return 4; }
};

// Creates all devices of a platform. Returns the ordinals in the author's
// numbering, followed by -1 if one more can be created.
template <class PlatformT>
std::vector<int> CreatedOrdinals() {
  const auto host = Register<PlatformT>().value();
  Numbered::created.clear();
  const int count = host->DeviceCount().value();
  for (int i = 0; i < count; ++i) {
    const auto device = host->Device(i);
    REQUIRE(device.ok());
    CHECK((*device)->ordinal() == i);
  }
  std::vector<int> created = std::exchange(Numbered::created, {});
  if (host->Device(count).ok()) created.push_back(-1);
  return created;
}

TEST_CASE("TFPLUG_VISIBLE_DEVICES selects and orders devices") {
  testing::ScopedFakeTensorFlow fake(Fixture<minimal::Platform>::WithLog());
  testing::LogCapture log;
  using Ordinals = std::vector<int>;
  CHECK(CreatedOrdinals<FourDevices>() == Ordinals{0, 1, 2, 3});
  struct Case {
    const char* value;
    Ordinals expected;
  };
  const Case cases[] = {{"0", {0}},
                        {"2,0", {2, 0}},
                        {" 3 , 1 ", {3, 1}},
                        {"", {}},
                        {"MINIMAL:1,OTHER:9,MINIMAL:0", {1, 0}},
                        {"OTHER:9", {0, 1, 2, 3}}};
  for (const Case& each : cases) {
    CAPTURE(each.value);
    const ScopedVisible visible(each.value);
    CHECK(CreatedOrdinals<FourDevices>() == each.expected);
  }
  CHECK(log.text() == "");
}

TEST_CASE("an invalid TFPLUG_VISIBLE_DEVICES hides all devices with a reason") {
  testing::ScopedFakeTensorFlow fake(Fixture<minimal::Platform>::WithLog());
  struct Case {
    const char* value;
    const char* reason;
  };
  const Case cases[] = {
      {"4", "contain 4, but MINIMAL has 4 devices"},
      {"1,1", "contain 1 twice"},
      {"0,x", "TFPLUG_VISIBLE_DEVICES=0,x is no list of devices"},
      {"-1", "is no list of devices"},
      {"+1", "is no list of devices"},
      {"0,", "is no list of devices"},
      {"99999999999", "is no list of devices"},
      {"MINIMAL:", "is no list of devices"},
      {"minimal:0", "is no list of devices"},
      {"MINIMAL:0,1", "is no list of devices"},
      {"OTHER:x,MINIMAL:0", "is no list of devices"}};
  for (const Case& each : cases) {
    CAPTURE(each.value);
    const ScopedVisible visible(each.value);
    testing::LogCapture log;
    CHECK(CreatedOrdinals<FourDevices>().empty());
    CHECK(log.text().find(each.reason) != std::string::npos);
  }
}

TEST_CASE("a platform without devices ignores TFPLUG_VISIBLE_DEVICES") {
  testing::ScopedFakeTensorFlow fake(Fixture<minimal::Platform>::WithLog());
  const ScopedVisible visible("0,1");
  testing::LogCapture log;
  reported_count = 0;
  CHECK(Register<Counting>().value()->DeviceCount().value() == 0);
  CHECK(log.text() == "");
}

// Uses the last device only, whatever the environment says.
class LastDevice : public FourDevices {
 public:
  absl::StatusOr<std::vector<int>> VisibleDevices(absl::string_view type,
                                                  int count) override {
    CHECK(type == "MINIMAL");
    return std::vector<int>{count - 1};
  }
};

TEST_CASE("a platform can select its devices") {
  testing::ScopedFakeTensorFlow fake;
  const ScopedVisible visible("0,1");
  CHECK(CreatedOrdinals<LastDevice>() == std::vector<int>{3});
}

TEST_CASE("another major version is rejected with the remedy") {
  testing::ScopedFakeTensorFlow fake;
  testing::HostOptions options;
  options.major_version = 1;
  Record::Get().Take();
  CHECK(Register<recording::Platform>(options).status() ==
        absl::FailedPreconditionError(
            "SE_InitPlugin: this TensorFlow has version 1 of the "
            "StreamExecutor C API, but this plug-in was built for version 0; "
            "rebuild it with a newer tfplug"));
  CHECK(Record::Get().Take() == Calls{});  // No hook was called.
}

TEST_CASE("another minor version is accepted") {
  testing::ScopedFakeTensorFlow fake;
  testing::HostOptions options;
  options.minor_version = 9;
  options.patch_version = 9;
  CHECK(Register<minimal::Platform>(options).ok());
}

}  // namespace
}  // namespace tfplug::platform_test
