// SPDX-License-Identifier: Apache-2.0
#include <tfplug/testing/host.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"

// Tests that Host finds mistakes of a plug-in. Each case is a correct plug-in
// with one mistake added.
namespace tfplug::host_test {
namespace {

using testing::Host;

using Correct = device_internal::PlatformRegistration<minimal::Platform>;
using CorrectFns = device_internal::PlatformFnsTable<minimal::Platform>;

std::function<void(capi::SE_PlatformRegistrationParams&)> break_params;
std::function<void(capi::SP_StreamExecutor&)> break_executor;

void CreateStreamExecutor(const capi::SP_Platform* platform,
                          capi::SE_CreateStreamExecutorParams* params,
                          capi::TF_Status* status) {
  CorrectFns::create_stream_executor(platform, params, status);
  break_executor(*params->stream_executor);
}

void InitPlugin(capi::SE_PlatformRegistrationParams* params,
                capi::TF_Status* status) {
  Correct::InitPlugin(params, status);
  if (break_executor) {
    params->platform_fns->create_stream_executor = &CreateStreamExecutor;
  }
  if (break_params) break_params(*params);
}

class BrokenFixture {
 protected:
  ~BrokenFixture() {
    break_params = nullptr;
    break_executor = nullptr;
  }

  std::string Error(const testing::HostOptions& options = {}) {
    return std::string(Host::Register(&InitPlugin, options).status().message());
  }
  std::string ErrorWithParams(
      std::function<void(capi::SE_PlatformRegistrationParams&)> change) {
    break_params = std::move(change);
    return Error();
  }
  std::unique_ptr<Host> HostWithExecutor(
      std::function<void(capi::SP_StreamExecutor&)> change) {
    break_executor = std::move(change);
    auto host = Host::Register(&InitPlugin);
    REQUIRE_MESSAGE(host.ok(), host.status().ToString());
    return *std::move(host);
  }

  testing::ScopedFakeTensorFlow tensorflow_;
};

TEST_CASE_FIXTURE(BrokenFixture, "the correct plug-in is accepted") {
  CHECK(Error() == "");
  const auto host = Host::Register(&InitPlugin).value();
  CHECK(host->Device(0).ok());
  CHECK(host->Device(0).value() == host->Device(0).value());
  CHECK(host->Problems().ok());
}

TEST_CASE_FIXTURE(BrokenFixture, "mistakes that make TensorFlow abort") {
  using Params = capi::SE_PlatformRegistrationParams;
  CHECK(ErrorWithParams([](Params& p) { p.struct_size = 0; }) ==
        "SE_PlatformRegistrationParams::struct_size is 0");
  CHECK(ErrorWithParams([](Params& p) { p.destroy_platform_fns = nullptr; }) ==
        "SE_PlatformRegistrationParams::destroy_platform_fns is null");
  CHECK(ErrorWithParams([](Params& p) { p.platform->struct_size = 0; }) ==
        "SP_Platform::struct_size is 0");
  CHECK(ErrorWithParams([](Params& p) { p.platform->name = nullptr; }) ==
        "SP_Platform::name is null");
  CHECK(ErrorWithParams([](Params& p) { p.platform->type = nullptr; }) ==
        "SP_Platform::type is null");
  CHECK(
      ErrorWithParams([](Params& p) { p.platform->type = "my-device"; }) ==
      "SP_Platform::type is 'my-device', but must begin with a capital letter "
      "and contain only capital letters and underscores");
  CHECK(ErrorWithParams([](Params& p) {
          p.platform_fns->destroy_device_fns = nullptr;
        }) == "SP_PlatformFns::destroy_device_fns is null");
  CHECK(ErrorWithParams([](Params& p) {
          p.platform->supports_unified_memory = 1;
        }) == "SP_StreamExecutor::unified_memory_allocate is null");
}

TEST_CASE_FIXTURE(BrokenFixture, "each function that TensorFlow requires") {
  const auto slot_at = [](capi::SP_StreamExecutor& se, size_t offset) {
    return reinterpret_cast<char*>(&se) + offset;
  };
  int required = 0, optional = 0;
  for (size_t offset = offsetof(capi::SP_StreamExecutor, allocate);
       offset < sizeof(capi::SP_StreamExecutor); offset += sizeof(void*)) {
    CAPTURE(offset);
    break_executor = [&](capi::SP_StreamExecutor& se) {
      std::memset(slot_at(se, offset), 0, sizeof(void*));
    };
    ++(Error().empty() ? optional : required);
  }
  // The unified pair, block_host_until_done, create_stream_with_options.
  CHECK(optional == 4);
  CHECK(required == 31);
}

TEST_CASE_FIXTURE(BrokenFixture, "writing beyond a struct") {
  testing::HostOptions options;
  options.sizes = testing::StructSizes({2, 21});
  break_executor = [](capi::SP_StreamExecutor& se) {
    se.create_stream_with_options =
        nullptr;  // a field of 2.22, beyond the 288 bytes of 2.21
  };
  CHECK(Error(options) == "the plug-in wrote beyond an SP_StreamExecutor");
  options.sizes = testing::StructSizes({2, 5});
  break_executor = nullptr;
  break_params = [](capi::SE_PlatformRegistrationParams& params) {
    params.platform->force_memory_growth =
        1;  // a field of 2.9, beyond the 34 bytes of 2.5
  };
  CHECK(Error(options) == "SE_InitPlugin wrote beyond a struct");

  break_params = nullptr;
  const auto host = HostWithExecutor([](capi::SP_StreamExecutor& se) {
    se.allocate = [](const capi::SP_Device*, uint64_t, int64_t,
                     capi::SP_DeviceMemoryBase* memory) {
      (&memory->payload)[1] = 1;
    };
  });
  testing::FakeDevice& device = *host->Device(0).value();
  CHECK(host->Problems().ok());
  device.Allocate(8);
  CHECK(host->Problems().message() ==
        "allocate wrote beyond its SP_DeviceMemoryBase");
}

TEST_CASE_FIXTURE(BrokenFixture, "a call that returns OK without an object") {
  const auto host = HostWithExecutor([](capi::SP_StreamExecutor& se) {
    se.create_event = [](const capi::SP_Device*, capi::SP_Event*,
                         capi::TF_Status*) {};
  });
  CHECK(host->Device(0).value()->CreateEvent().status().message() ==
        "create_event returned OK and left the handle unset");
}

std::string HostTaskProblem(Host& host) {
  auto ran = host.Device(0).value()->compute().RunOnHost(
      [] { return absl::OkStatus(); });
  ran.IgnoreError();
  return std::string(host.Problems().message());
}

TEST_CASE_FIXTURE(BrokenFixture, "host tasks that do not run exactly once") {
  using Device = const capi::SP_Device;
  const auto never = HostWithExecutor([](capi::SP_StreamExecutor& se) {
    se.host_callback = [](Device*, capi::SP_Stream, capi::SE_StatusCallbackFn,
                          void*) -> capi::TF_Bool { return true; };
  });
  CHECK(HostTaskProblem(*never) == "a host task that was accepted ran 0 times");
  const auto twice = HostWithExecutor([](capi::SP_StreamExecutor& se) {
    se.host_callback = [](Device*, capi::SP_Stream,
                          capi::SE_StatusCallbackFn function,
                          void* argument) -> capi::TF_Bool {
      capi::TF_Status status;
      function(argument, &status);
      function(argument, &status);
      return true;
    };
  });
  CHECK(HostTaskProblem(*twice) == "a host task that was accepted ran 2 times");
  const auto refused = HostWithExecutor([](capi::SP_StreamExecutor& se) {
    se.host_callback = [](Device*, capi::SP_Stream,
                          capi::SE_StatusCallbackFn function,
                          void* argument) -> capi::TF_Bool {
      capi::TF_Status status;
      function(argument, &status);
      return false;
    };
  });
  CHECK(HostTaskProblem(*refused) ==
        "a host task that was rejected ran 1 times");
}

TEST_CASE("a file that is not a library, and a library that is not a plug-in") {
  CHECK(Host::Load("/nowhere/plugin.so").status().code() ==
        absl::StatusCode::kNotFound);
  const absl::Status no_plugin = Host::Load("libm.so.6").status();
  CHECK(no_plugin.code() == absl::StatusCode::kNotFound);
  CHECK(no_plugin.message().find("SE_InitPlugin") != absl::string_view::npos);
}

TEST_CASE("the fake has the functions of its release") {
  const auto fake = [](uint8_t minor) {
    testing::FakeOptions options;
    options.release = {2, minor};
    return testing::MakeFakeTensorFlow(options);
  };
  const auto has = [](auto function) { return function != nullptr; };
  CHECK(has(fake(5).TF_NewStatus));
  CHECK_FALSE(has(fake(6).TF_SetPayload));
  CHECK(has(fake(7).TF_SetPayload));
  CHECK_FALSE(has(fake(13).TF_ForEachPayload));
  CHECK(has(fake(14).TF_ForEachPayload));
  CHECK(has(fake(20).TF_Log));
  CHECK_FALSE(has(fake(21).TF_Log));
  CHECK(has(fake(22).TF_Message));
  testing::FakeOptions options;
  options.missing = {"TF_Message"};
  CHECK_FALSE(has(testing::MakeFakeTensorFlow(options).TF_Message));
  CHECK(has(testing::MakeFakeTensorFlow(options).TF_GetCode));
}

TEST_CASE("ScopedFakeTensorFlow restores the previous functions") {
  const auto has_functions = [] {
    return internal::tensorflow.TF_NewStatus != nullptr;
  };
  CHECK_FALSE(has_functions());
  {
    testing::ScopedFakeTensorFlow tensorflow;
    CHECK(has_functions());
  }
  CHECK_FALSE(has_functions());
}

}  // namespace
}  // namespace tfplug::host_test
