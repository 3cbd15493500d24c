// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tfplug::narrow_types_test {
namespace {

// Checks that every code of T survives a round trip through float, and that
// values between two codes round to the nearer code, ties to the even code.
template <class T>
void CheckRounding(uint32_t codes, uint32_t sign) {
  std::vector<float> values;
  for (uint32_t code = 0; code < codes; ++code) {
    const T value = T::FromBits(static_cast<decltype(T().bits())>(code));
    const float as_float = value;
    if (std::isnan(as_float)) {
      CHECK(std::isnan(static_cast<float>(T(as_float))));
      continue;
    }
    if (T(as_float).bits() != code) FAIL_CHECK("code ", code, " ", as_float);
    if (code < sign && std::isfinite(as_float)) values.push_back(as_float);
  }
  for (size_t i = 1; i < values.size(); ++i) {
    const float low = values[i - 1], high = values[i];
    CHECK(low < high);
    const float middle = low + (high - low) / 2;
    const float even = i % 2 == 0 ? high : low;
    if (static_cast<float>(T(middle)) != even) FAIL_CHECK("tie at ", middle);
    if (static_cast<float>(T(std::nextafter(middle, 0.0f))) != low ||
        static_cast<float>(T(-std::nextafter(
            middle, std::numeric_limits<float>::infinity()))) != -high) {
      FAIL_CHECK("next to ", middle);
    }
  }
}

TEST_CASE("every code survives a round trip; ties round to even") {
  CheckRounding<Half>(0x10000, 0x8000);
  CheckRounding<BFloat16>(0x10000, 0x8000);
  CheckRounding<Float8E5m2>(0x100, 0x80);
  CheckRounding<Float8E4m3fn>(0x100, 0x80);
  CheckRounding<Float8E4m3fnuz>(0x100, 0x80);
  CheckRounding<Float8E4m3b11fnuz>(0x100, 0x80);
  CheckRounding<Float8E5m2fnuz>(0x100, 0x80);
  CheckRounding<Float4E2m1fn>(0x10, 0x8);
}

TEST_CASE("limits, infinities and NaNs have their standard codes") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(Half(1.0f).bits() == 0x3c00);
  CHECK(Half(65504.0f).bits() == 0x7bff);
  CHECK(Half(65520.0f).bits() == 0x7c00);
  CHECK(Half(-inf).bits() == 0xfc00);
  for (float tiny : {1e-8f, 1e-16f, 1e-30f, 1e-40f}) {
    CHECK_MESSAGE(Half(tiny).bits() == 0, tiny);
    CHECK_MESSAGE(Half(-tiny).bits() == 0x8000, tiny);
  }
  CHECK(std::isnan(static_cast<float>(Half(nan))));
  CHECK(BFloat16(1.0f).bits() == 0x3f80);
  CHECK(BFloat16(3.4e38f).bits() == 0x7f80);
  CHECK(std::isnan(static_cast<float>(BFloat16(nan))));
  CHECK(static_cast<float>(Float8E5m2::FromBits(0x7b)) == 57344);
  CHECK(std::isinf(static_cast<float>(Float8E5m2(1e6f))));
  CHECK(static_cast<float>(Float8E4m3fn::FromBits(0x7e)) == 448);
  CHECK(std::isnan(static_cast<float>(Float8E4m3fn(465.0f))));
  CHECK(static_cast<float>(Float8E4m3fn(464.0f)) == 448);
  CHECK(static_cast<float>(Float8E4m3fnuz::FromBits(0x7f)) == 240);
  CHECK(Float8E4m3fnuz(inf).bits() == 0x80);
  CHECK(Float8E4m3fnuz(-0.0f).bits() == 0);
  CHECK(static_cast<float>(Float8E4m3b11fnuz::FromBits(0x7f)) == 30);
  CHECK(static_cast<float>(Float8E5m2fnuz::FromBits(0x7f)) == 57344);
  CHECK(static_cast<float>(Float4E2m1fn(100.0f)) == 6);
  CHECK(static_cast<float>(Float4E2m1fn(-inf)) == -6);
}

TEST_CASE("small integers keep the low bits") {
  CHECK(Int4(7) == 7);
  CHECK(Int4(-8) == -8);
  CHECK(Int4(8) == -8);
  CHECK(Uint4(15) == 15);
  CHECK(Uint4(16) == 0);
  CHECK(Int2(-2) == -2);
  CHECK(Int2(2) == -2);
  CHECK(Uint2(3) == 3);
  CHECK(sizeof(Int4) == 1);
}

}  // namespace
}  // namespace tfplug::narrow_types_test
