// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/capability.h>
#include <tfplug/base/internal/device_name.h>
#include <tfplug/base/internal/device_type.h>
#include <tfplug/base/internal/intern_string.h>
#include <tfplug/base/internal/release.h>
#include <tfplug/base/internal/tensorflow.h>
#include <tfplug/testing.h>

#include <string>
#include <utility>

#include "capture_stderr.h"
#include "minimal_device.h"

namespace tfplug::tensorflow_test {
namespace {

// Must run first, because LoadTensorFlow caches its result.
TEST_CASE("LoadTensorFlow: returns false without TensorFlow in the process") {
  testing::WithCanary<capi::SE_PlatformRegistrationParams> params(64);
  capi::TF_Status status;
  const std::string text = CaptureStderr([&] {
    device_internal::PlatformRegistration<minimal::Platform>::InitPlugin(
        params.get(), &status);
  });
  CHECK(text ==
        "tfplug: SE_InitPlugin: found no TensorFlow in this process; load the "
        "plug-in through TensorFlow\n");
  CHECK(params.intact());
  CHECK((params.Read().destroy_platform == nullptr));
  CHECK_FALSE(internal::LoadTensorFlow());
}

TEST_CASE("FindInProcess: finds a symbol or returns null") {
  CHECK(internal::FindInProcess("malloc") != nullptr);
  CHECK(internal::FindInProcess("TF_NewStatus") == nullptr);
}

TEST_CASE("Require: the error names the releases that have the function") {
  const auto missing_in = [](const std::string& version) {
    return "this TensorFlow (" + version + ") lacks ";
  };
  {
    testing::ScopedFakeTensorFlow fake({{2, 22}, {"TF_AssignVariable"}});
    const std::string releases =
        "TF_AssignVariable; releases 2.6 to 2.18 and from 2.22 on have it";
    const auto message = [&](const std::string& version) {
      testing::FakeVersion() = version;
      return std::string(Require(&CApi::TF_AssignVariable).message());
    };
    for (const std::string early : {"2.22.0-dev20260101", "2.22.0"}) {
      CHECK(message(early) ==
            missing_in(early) + releases + ", but not this build of 2.22");
    }
    for (const std::string other : {"2.21.0", "2.220.0", "3.2.22.0"}) {
      CHECK(message(other) == missing_in(other) + releases);
    }
    CHECK(Require(&CApi::TF_GetInput) == absl::OkStatus());
    CHECK(Require(&CApi::TF_DVLog).message() ==
          missing_in("3.2.22.0") + "TF_DVLog; releases 2.5 to 2.20 have it");
  }
  testing::ScopedFakeTensorFlow fake({{2, 15}, {}});
  CHECK(Require(&CApi::TF_GetRendezvous).message() ==
        missing_in("2.15.0") +
            "TF_GetRendezvous; releases from 2.16 on have it");
  internal::tensorflow.TF_Version = nullptr;
  const absl::Status status = Require(&CApi::TF_GetRendezvous);
  CHECK(absl::IsUnimplemented(status));
  CHECK(status.message().find("this TensorFlow lacks TF_Get") == 0);
}

TEST_CASE("ParseRelease reads two numbers, or none") {
  const auto parsed = [](const char* version) {
    const internal::Release release = internal::ParseRelease(version);
    return std::pair(release.major, release.minor);
  };
  CHECK((parsed("2.22.0-rc0") == std::pair(2L, 22L)));
  CHECK((parsed("12.3") == std::pair(12L, 3L)));
  for (const char* const version : {"", "2", "unknown"}) {
    CHECK((parsed(version) == std::pair(0L, 0L)));
  }
}

TEST_CASE("LogError calls TF_Log where it exists") {
  testing::FakeOptions options;
  options.release = {2, 20};
  testing::ScopedFakeTensorFlow fake(options);
  testing::LogCapture log;
  const std::string text = CaptureStderr(
      [] { internal::LogError("slot", absl::InternalError("100% wrong")); });
  CHECK(text.empty());
  CHECK(log.text() == "tfplug: slot: INTERNAL: 100% wrong\n");
}

TEST_CASE("LogError writes to standard error otherwise") {
  testing::FakeOptions options;
  options.release = {2, 21};
  testing::ScopedFakeTensorFlow fake(options);
  testing::LogCapture log;
  const std::string text =
      CaptureStderr([] { internal::LogError("slot", "100% wrong"); });
  CHECK(text == "tfplug: slot: 100% wrong\n");
  CHECK(log.lines().empty());
}

TEST_CASE("IsDeviceType agrees with TensorFlow") {
  for (const char* name : {"A", "Z", "MY_DEVICE", "A_", "A__B"}) {
    CHECK_MESSAGE(internal::IsDeviceType(name), name);
    CHECK(testing::ValidateDeviceType("type", name).ok());
  }
  for (const char* name :
       {"", "_", "_A", "my-device", "My", "A1", "A B", "A:", "\xc3\x84"}) {
    CHECK_MESSAGE(!internal::IsDeviceType(name), name);
    CHECK_FALSE(testing::ValidateDeviceType("type", name).ok());
  }
}

TEST_CASE("IsFullDeviceName: names of a task's devices") {
  const auto name = [](const std::string& job, const std::string& type,
                       const std::string& index) {
    return "/job:" + job + "/replica:0/task:12/device:" + type + ":" + index;
  };
  for (const std::string word : {"a", "z", "A", "Z", "My_9"}) {
    CHECK_MESSAGE(internal::IsFullDeviceName(name(word, word, "0")), word);
  }
  CHECK(internal::IsFullDeviceName(name("w", "CPU", "123456789")));
  CHECK_FALSE(internal::IsFullDeviceName(name("w", "CPU", "1234567890")));
  CHECK_FALSE(internal::IsFullDeviceName(name("w", "CPU", "")));
  CHECK_FALSE(internal::IsFullDeviceName(name("w", "CPU", "0") + "/"));
  for (const std::string word : {"", "_", "9a", "@", "[", "`", "{", "a-b"}) {
    CHECK_MESSAGE(!internal::IsFullDeviceName(name(word, "CPU", "0")), word);
    CHECK_MESSAGE(!internal::IsFullDeviceName(name("w", word, "0")), word);
  }
  CHECK_FALSE(internal::IsFullDeviceName("/device:CPU:0"));
}

TEST_CASE("CpuInSameTask and DeviceTypeOf: every form of a name") {
  const std::string task = "/job:w/replica:0/task:1";
  CHECK(internal::CpuInSameTask(task + "/device:SIM:3") ==
        task + "/device:CPU:0");
  CHECK(internal::CpuInSameTask("/device:SIM:3/task:1") ==
        "/device:CPU:0/task:1");
  CHECK(internal::CpuInSameTask("/SIM:3") == "/device:CPU:0");
  CHECK(internal::DeviceTypeOf(task + "/device:SIM:3") == "SIM");
  CHECK(internal::DeviceTypeOf("/device:SIM/task:1") == "SIM");
  for (const char* name : {"/cpu:0", "CPU:0", "/job:w/CPU"}) {
    CHECK_MESSAGE(internal::DeviceTypeOf(name) == "CPU", name);
  }
  CHECK(internal::DeviceTypeOf("/gpu:0") == "GPU");
  CHECK(internal::DeviceTypeOf(task) == "");
  CHECK(internal::DevicePartOf("/device:SIM:3").index == "3");
  CHECK(internal::DevicePartOf("/GPU:2").index == "2");
  CHECK(internal::DevicePartOf("/device:SIM").index == "");
}

TEST_CASE("IsTakenForCpu: detects types that contain CPU") {
  for (const char* type : {"CPU", "MY_CPU", "CPU_SIM", "CPCPU"}) {
    CHECK_MESSAGE(internal::IsTakenForCpu(type), type);
  }
  for (const char* type : {"", "C", "CP", "C_PU", "CP_U", "GPU"}) {
    CHECK_MESSAGE(!internal::IsTakenForCpu(type), type);
  }
}

TEST_CASE("InternString keeps one copy of each string") {
  const char* a = internal::InternString(std::string("name"));
  CHECK(std::string(a) == "name");
  CHECK(internal::InternString("name") == a);
  CHECK(internal::InternString("other") != a);
  CHECK(internal::InternString("") == nullptr);
}

}  // namespace
}  // namespace tfplug::tensorflow_test
