// SPDX-License-Identifier: Apache-2.0
#include "runtime/fault.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

namespace cpu_sim::rt::fault_test {
namespace {

TEST_CASE("faults: hook, after and times select the calls that fail") {
  REQUIRE(InjectFault("hook=a,after=1,times=2").ok());
  CHECK(CheckFault("b").ok());
  CHECK(CheckFault("a").ok());
  CHECK(FaultPending());
  CHECK(CheckFault("a").code() == absl::StatusCode::kInternal);
  CHECK(CheckFault("a").code() == absl::StatusCode::kInternal);
  CHECK_FALSE(FaultPending());
  CHECK(CheckFault("a").ok());
}

TEST_CASE("faults: every kind of failure") {
  REQUIRE(InjectFault("hook=a,kind=oom").ok());
  CHECK(CheckFault("a").code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(InjectFault("hook=a,kind=throw").ok());
  CHECK_THROWS_AS((void)CheckFault("a"), std::runtime_error);
  REQUIRE(InjectFault("hook=a,kind=bad_alloc").ok());
  CHECK_THROWS_AS((void)CheckFault("a"), std::bad_alloc);
  REQUIRE(InjectFault("hook=a,kind=unknown").ok());
  CHECK_THROWS_AS((void)CheckFault("a"), int);
  CHECK(CheckFault("a").ok());
}

TEST_CASE("faults: malformed text is rejected") {
  REQUIRE(InjectFault("hook=a").ok());
  for (const char* text :
       {"hook", "hook=b,kind=", "hook=b,after=x", "hook=b,what=1",
        "hook=a_name_that_is_longer_than_the_field_of_the_control"}) {
    CAPTURE(text);
    CHECK(InjectFault(text).code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(CheckFault("a").ok());  // the earlier fault is unchanged
  REQUIRE(InjectFault("hook=a").ok());
  REQUIRE(InjectFault("").ok());
  CHECK(CheckFault("a").ok());
}

}  // namespace
}  // namespace cpu_sim::rt::fault_test
