// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/internal/environment.h>
#include <tfplug/base/internal/type_setting.h>

#include <cstdlib>
#include <string>

namespace tfplug::environment_test {
namespace {

TEST_CASE("a variable turns off with 0, false, off and no, and else on") {
  constexpr char kName[] = "TFPLUG_TEST_ENVIRONMENT";
  for (const char* const value :
       {"0", "00", "false", "FALSE", "off", "Off", "no"}) {
    INFO(value);
    ::setenv(kName, value, 1);
    CHECK_FALSE(internal::IsTurnedOn(kName, true));
  }
  for (const char* const value : {"1", "true", "on", "yes", "offline", "2"}) {
    INFO(value);
    ::setenv(kName, value, 1);
    CHECK(internal::IsTurnedOn(kName, false));
  }
  for (const bool otherwise : {false, true}) {
    ::setenv(kName, "", 1);
    CHECK(internal::IsTurnedOn(kName, otherwise) == otherwise);
    ::unsetenv(kName);
    CHECK(internal::IsTurnedOn(kName, otherwise) == otherwise);
  }
}

TEST_CASE("TFPLUG_DEVICE_TYPE registers one type as another, or is refused") {
  constexpr char kName[] = "TFPLUG_DEVICE_TYPE";
  const auto registered = [&](const char* setting) {
    ::setenv(kName, setting, 1);
    return std::string(internal::RegisteredType("SIM"));
  };
  CHECK(registered("SIM=GPU") == "GPU");
  CHECK(registered("OTHER=GPU") == "SIM");
  CHECK(registered("") == "SIM");
  CHECK(internal::ReadTypeSetting().ok());
  for (const char* const text : {"SIM", "SIM=", "=GPU", "SIM=CPU", "SIM=gpu"}) {
    INFO(text);
    CHECK(registered(text) == "SIM");
    CHECK(absl::IsInvalidArgument(internal::ReadTypeSetting().status()));
  }
  ::unsetenv(kName);
  CHECK(std::string(internal::RegisteredType("SIM")) == "SIM");
}

}  // namespace
}  // namespace tfplug::environment_test
