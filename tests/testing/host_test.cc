// SPDX-License-Identifier: Apache-2.0
#include <tfplug/testing/host.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"

// The stand-in for core finds what is wrong with a plug-in. Each plug-in here
// is a good one with one thing spoilt.
namespace tfplug {
namespace {

using testing::Host;

using Good = internal::PlatformRegistration<minimal::Platform>;
using GoodFns = internal::PlatformFnsTable<minimal::Platform>;

std::function<void(capi::SE_PlatformRegistrationParams&)> spoil_params;
std::function<void(capi::SP_StreamExecutor&)> spoil_executor;

void CreateStreamExecutor(const capi::SP_Platform* platform,
                          capi::SE_CreateStreamExecutorParams* params,
                          capi::TF_Status* status) {
  GoodFns::create_stream_executor(platform, params, status);
  spoil_executor(*params->stream_executor);
}

void InitPlugin(capi::SE_PlatformRegistrationParams* params,
                capi::TF_Status* status) {
  Good::InitPlugin(params, status);
  if (spoil_executor) {
    params->platform_fns->create_stream_executor = &CreateStreamExecutor;
  }
  if (spoil_params) spoil_params(*params);
}

class SpoiltFixture {
 protected:
  ~SpoiltFixture() {
    spoil_params = nullptr;
    spoil_executor = nullptr;
  }

  std::string Error(const testing::HostOptions& options = {}) {
    return std::string(Host::Register(&InitPlugin, options).status().message());
  }
  std::string ErrorWithParams(
      std::function<void(capi::SE_PlatformRegistrationParams&)> spoil) {
    spoil_params = std::move(spoil);
    return Error();
  }
  std::unique_ptr<Host> HostWithExecutor(
      std::function<void(capi::SP_StreamExecutor&)> spoil) {
    spoil_executor = std::move(spoil);
    auto host = Host::Register(&InitPlugin);
    REQUIRE_MESSAGE(host.ok(), host.status().ToString());
    return *std::move(host);
  }

  testing::ScopedFakeTensorFlow core_;
};

TEST_CASE_FIXTURE(SpoiltFixture, "the good one is good") {
  CHECK(Error() == "");
  const auto host = Host::Register(&InitPlugin).value();
  CHECK(host->Device(0).ok());
  CHECK(host->Device(0).value() == host->Device(0).value());
  CHECK(host->Problems().ok());
}

TEST_CASE_FIXTURE(SpoiltFixture, "what core aborts on") {
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
  CHECK(ErrorWithParams([](Params& p) { p.platform->type = "my-device"; }) ==
        "'my-device' must begin with a capital letter and hold capital letters "
        "and underscores only");
  CHECK(ErrorWithParams([](Params& p) {
          p.platform_fns->destroy_device_fns = nullptr;
        }) == "SP_PlatformFns::destroy_device_fns is null");
  CHECK(ErrorWithParams([](Params& p) {
          p.platform->supports_unified_memory = 1;
        }) == "SP_StreamExecutor::unified_memory_allocate is null");
}

TEST_CASE_FIXTURE(SpoiltFixture, "each function that core needs") {
  const auto slot_at = [](capi::SP_StreamExecutor& se, size_t offset) {
    return reinterpret_cast<char*>(&se) + offset;
  };
  int required = 0, optional = 0;
  for (size_t offset = offsetof(capi::SP_StreamExecutor, allocate);
       offset < sizeof(capi::SP_StreamExecutor); offset += sizeof(void*)) {
    CAPTURE(offset);
    spoil_executor = [&](capi::SP_StreamExecutor& se) {
      std::memset(slot_at(se, offset), 0, sizeof(void*));
    };
    ++(Error().empty() ? optional : required);
  }
  // The unified pair, block_host_until_done, create_stream_with_options.
  CHECK(optional == 4);
  CHECK(required == 31);
}

TEST_CASE_FIXTURE(SpoiltFixture, "writing beyond a struct") {
  testing::HostOptions options;
  options.sizes = testing::StructSizes({2, 21});
  spoil_executor = [](capi::SP_StreamExecutor& se) {
    se.create_stream_with_options = nullptr;  // 2.22's, in 2.21's 288 bytes
  };
  CHECK(Error(options) == "the plug-in wrote beyond an SP_StreamExecutor");
  options.sizes = testing::StructSizes({2, 5});
  spoil_executor = nullptr;
  spoil_params = [](capi::SE_PlatformRegistrationParams& params) {
    params.platform->force_memory_growth = 1;  // 2.9's, in 2.5's 34 bytes
  };
  CHECK(Error(options) == "SE_InitPlugin wrote beyond a struct");

  spoil_params = nullptr;
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

TEST_CASE_FIXTURE(SpoiltFixture, "OK without an object") {
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

TEST_CASE_FIXTURE(SpoiltFixture, "host tasks that do not run once") {
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

TEST_CASE("a library that is none, and one that is no plug-in") {
  CHECK(Host::Load("/nowhere/plugin.so").status().code() ==
        absl::StatusCode::kNotFound);
  const absl::Status no_plugin = Host::Load("libm.so.6").status();
  CHECK(no_plugin.code() == absl::StatusCode::kNotFound);
  CHECK(no_plugin.message().find("SE_InitPlugin") != absl::string_view::npos);
}

TEST_CASE("the core that is played has its release's functions") {
  const auto core = [](uint8_t minor) {
    testing::FakeOptions options;
    options.release = {2, minor};
    return testing::MakeFakeTensorFlow(options);
  };
  const auto has = [](auto function) { return function != nullptr; };
  CHECK(has(core(5).TF_NewStatus));
  CHECK_FALSE(has(core(6).TF_SetPayload));
  CHECK(has(core(7).TF_SetPayload));
  CHECK_FALSE(has(core(13).TF_ForEachPayload));
  CHECK(has(core(14).TF_ForEachPayload));
  CHECK(has(core(20).TF_Log));
  CHECK_FALSE(has(core(21).TF_Log));
  CHECK(has(core(22).TF_Message));
  testing::FakeOptions options;
  options.missing = {"TF_Message"};
  CHECK_FALSE(has(testing::MakeFakeTensorFlow(options).TF_Message));
  CHECK(has(testing::MakeFakeTensorFlow(options).TF_GetCode));
}

TEST_CASE("ScopedFakeTensorFlow puts back what was there") {
  const auto has_core = [] {
    return internal::tensorflow.TF_NewStatus != nullptr;
  };
  CHECK_FALSE(has_core());
  {
    testing::ScopedFakeTensorFlow core;
    CHECK(has_core());
  }
  CHECK_FALSE(has_core());
}

}  // namespace
}  // namespace tfplug
