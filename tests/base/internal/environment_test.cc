// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/internal/environment.h>

#include <cstdlib>

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

}  // namespace
}  // namespace tfplug::environment_test
