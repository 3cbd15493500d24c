// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/platform.h>

#include <string>
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
          "INTERNAL: C++ exception of an unknown type"};
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
