// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_RANDOM_VALUES_H_
#define TFPLUG_TESTING_INTERNAL_RANDOM_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "tfplug/primitives/reference_value.h"
#include "tfplug/testing/internal/random_views.h"

#pragma GCC visibility push(hidden)

// Values of all types that primitives store, as bits.
namespace tfplug::testing {

inline int MantissaBits(DataType type) {
  return type == DataType::kDouble  ? 52
         : type == DataType::kFloat ? 23
         : type == DataType::kHalf  ? 10
                                    : 7;
}
inline int TypeBits(DataType type) {
  return 8 * static_cast<int>(DataTypeSize(type));
}
inline uint64_t LowBits(int n) {
  return n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}

// Returns the bits of an integer as a number of the type.
inline uint64_t BitsOfInteger(DataType type, int64_t integer) {
  uint64_t bits = 0;
  primitives::WriteElement(
      type, primitives::Converted(DataType::kInt64, type, {0, integer}), &bits);
  return bits;
}

enum class Values {
  kSmall,  // integers in [-4, 4], or [0, 4]: sums of them are exact
  kOnes,   // mostly 1: products of them are exact
  kAny,    // also infinities, NaN, denormals, extreme integers
};

// Returns the bits of a random value.
inline uint64_t RandomBits(Random& random, DataType type, Values values,
                           bool has_denormals) {
  if (type == DataType::kBool) return Below(random, 2) == 0 ? 0 : 1;
  if (values == Values::kOnes) {
    return BitsOfInteger(type, Below(random, 40) == 0 ? 2 : 1);
  }
  const bool is_unsigned =
      type == DataType::kUint8 || type == DataType::kUint16 ||
      type == DataType::kUint32 || type == DataType::kUint64;
  if (values == Values::kSmall || Below(random, 3) == 0) {
    return BitsOfInteger(
        type, Below(random, is_unsigned ? 5 : 9) - (is_unsigned ? 0 : 4));
  }
  const int bits = TypeBits(type);
  const uint64_t any =
      (static_cast<uint64_t>(random()) << 32 | random()) & LowBits(bits);
  const uint64_t sign = uint64_t{1} << (bits - 1);
  if (!IsFloat(type)) {
    const uint64_t extremes[] = {sign, sign - 1, LowBits(bits), sign + 1};
    return Below(random, 2) == 0 ? any : extremes[Below(random, 4)];
  }
  const int mantissa = MantissaBits(type);
  const uint64_t exponent = LowBits(bits - 1) & ~LowBits(mantissa);
  uint64_t value = any;
  switch (Below(random, 10)) {
    case 0:
      value = exponent;  // infinity
      break;
    case 1:
      value = exponent | uint64_t{1} << (mantissa - 1);  // NaN
      break;
    case 2:
      value = any & LowBits(mantissa);  // a denormal
      break;
    case 3:
      value = exponent - 1;  // the largest number
      break;
    case 4:
    case 5:
      break;
    default:  // between 1/8 and 8
      value =
          (any & LowBits(mantissa)) | (((exponent >> (mantissa + 1)) - 3 +
                                        static_cast<uint64_t>(Below(random, 6)))
                                       << mantissa);
  }
  if (!has_denormals && (value & exponent) == 0) value = 0;
  return value | (any & sign);
}

inline bool IsNanBits(DataType type, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (TypeBits(type) - 1);
  const uint64_t exponent = (sign - 1) & ~LowBits(MantissaBits(type));
  return IsFloat(type) && (bits & (sign - 1)) > exponent;
}

// Returns the number of steps from one value to the other through the
// representable values: 0 if they are equal or both NaN. Distances above 2^53
// are rounded.
inline double UlpDistance(DataType type, uint64_t a, uint64_t b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a == b) return 0;
  if (!IsFloat(type)) return kInfinity;
  const bool a_is_nan = IsNanBits(type, a), b_is_nan = IsNanBits(type, b);
  if (a_is_nan || b_is_nan) return a_is_nan && b_is_nan ? 0 : kInfinity;
  const uint64_t sign = uint64_t{1} << (TypeBits(type) - 1);
  const auto order = [&](uint64_t bits) {
    const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
  };
  // The difference is exact before it becomes a double, and may need 64 bits.
  const auto high = static_cast<uint64_t>(std::max(order(a), order(b)));
  const auto low = static_cast<uint64_t>(std::min(order(a), order(b)));
  return static_cast<double>(high - low);
}

// Returns the bits as a number.
inline double NumberOf(DataType type, uint64_t bits) {
  const auto value = primitives::ReadElement(type, &bits);
  return IsFloat(type) ? value.real : static_cast<double>(value.integer);
}

inline std::string ValueText(DataType type, uint64_t bits) {
  if (type == DataType::kBool) return bits != 0 ? "true" : "false";
  if (type == DataType::kUint64) return std::to_string(bits);
  if (type == DataType::kInt64) {
    return std::to_string(static_cast<int64_t>(bits));
  }
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", type == DataType::kDouble ? 17 : 10,
                NumberOf(type, bits));
  return text;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_RANDOM_VALUES_H_
