// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_NARROW_TYPES_H_
#define TFPLUG_BASE_NARROW_TYPES_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

// Numbers of 16 bits and fewer, as TensorFlow stores them, for reading and
// writing tensors on the host. They convert to float exactly, and from float by
// rounding to the nearest value, ties to even. Do arithmetic in float.
namespace tfplug {
namespace internal {

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Selects the codes that represent infinities and NaN.
enum class Special {
  kIeee,      // infinities and NaNs as in IEEE 754
  kNan,       // the highest code is NaN; no infinity, overflow gives NaN
  kUnsigned,  // the code of -0 is NaN, and there is no -0; no infinity
  kNone,      // no infinity and no NaN; overflow gives the largest number
};

// A format of one sign bit, `kExponent` bits of exponent and `kMantissa` bits
// of mantissa; `kBias` is the bias of the exponent.
template <int kExponent, int kMantissa, int kBias, Special kSpecial>
struct SmallFloatFormat {
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr uint32_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr uint32_t kNan =
      kSpecial == Special::kIeee       ? kInfinity | (1u << (kMantissa - 1))
      : kSpecial == Special::kUnsigned ? kSign
      : kSpecial == Special::kNan      ? kSign - 1
                                       : kSign;  // -0, because there is no NaN
  static constexpr uint32_t kLargest = kSpecial == Special::kIeee
                                           ? kInfinity - 1
                                       : kSpecial == Special::kNan ? kSign - 2
                                                                   : kSign - 1;
  static constexpr uint32_t kOverflow = kSpecial == Special::kIeee   ? kInfinity
                                        : kSpecial == Special::kNone ? kLargest
                                                                     : kNan;

  static uint32_t Encode(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t sign = (bits >> 31) != 0 ? kSign : 0;
    if (value != value)
      return kSpecial == Special::kUnsigned ? kNan : sign | kNan;
    const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127;
    const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    // A number below the smallest normal number is stored with the smallest
    // exponent.
    const int stored = exponent > 1 - kBias ? exponent : 1 - kBias;
    const int shift = 23 - kMantissa + (stored - exponent);
    uint32_t magnitude = 0;
    if (exponent == 128) {
      magnitude = kLargest + 1;
    } else if (exponent > -127 && shift <= 24) {
      magnitude = mantissa >> shift;
      const uint32_t rest = mantissa & ((1u << shift) - 1);
      const uint32_t half = 1u << (shift - 1);
      if (rest > half || (rest == half && (magnitude & 1) != 0)) ++magnitude;
      // The addition carries an overflowing mantissa into the exponent.
      magnitude += static_cast<uint32_t>(stored + kBias - 1) << kMantissa;
    }
    if (magnitude > kLargest) {
      return kSpecial == Special::kUnsigned ? kNan : sign | kOverflow;
    }
    if (kSpecial == Special::kUnsigned && magnitude == 0) return 0;
    return sign | magnitude;
  }

  static float Decode(uint32_t code) {
    const uint32_t magnitude = code & (kSign - 1);
    const float sign = (code & kSign) != 0 ? -1.0f : 1.0f;
    if constexpr (kSpecial == Special::kIeee) {
      if (magnitude == kInfinity) {
        return sign * std::numeric_limits<float>::infinity();
      }
      if (magnitude > kInfinity) return std::numeric_limits<float>::quiet_NaN();
    } else if constexpr (kSpecial == Special::kNan) {
      if (magnitude == kNan) return std::numeric_limits<float>::quiet_NaN();
    } else if constexpr (kSpecial == Special::kUnsigned) {
      if (code == kNan) return std::numeric_limits<float>::quiet_NaN();
    }
    const int exponent = static_cast<int>(magnitude >> kMantissa);
    const uint32_t mantissa = magnitude & ((1u << kMantissa) - 1);
    const uint32_t significand =
        exponent == 0 ? mantissa : mantissa | (1u << kMantissa);
    return sign *
           std::ldexp(static_cast<float>(significand),
                      (exponent == 0 ? 1 : exponent) - kBias - kMantissa);
  }
};

// bfloat16: the upper 16 bits of a float.
struct BFloat16Format {
  static uint32_t Encode(float value) {
    const uint32_t bits = BitsOf(value);
    if (value != value) return (bits >> 16 & 0x8000) | 0x7fc0;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  static float Decode(uint32_t code) { return FloatOf(code << 16); }
};

template <class Bits, class Format>
class SmallFloat {
 public:
  SmallFloat() = default;
  explicit SmallFloat(float value)
      : bits_(static_cast<Bits>(Format::Encode(value))) {}
  static SmallFloat FromBits(Bits bits) {
    SmallFloat result;
    result.bits_ = bits;
    return result;
  }
  Bits bits() const { return bits_; }
  operator float() const { return Format::Decode(bits_); }

 private:
  Bits bits_;
};

// An integer of `kBits` bits that occupies a byte. Excess bits are discarded,
// as in C.
template <int kBits, bool kSigned>
class SmallInt {
 public:
  using Value = std::conditional_t<kSigned, int8_t, uint8_t>;

  SmallInt() = default;
  explicit SmallInt(int value) : stored_(Cut(value)) {}
  operator Value() const { return Cut(stored_); }

 private:
  static Value Cut(int value) {
    const int low = value & ((1 << kBits) - 1);
    const bool is_negative = kSigned && (low >> (kBits - 1)) != 0;
    return static_cast<Value>(is_negative ? low - (1 << kBits) : low);
  }
  Value stored_;
};

}  // namespace internal

using BFloat16 = internal::SmallFloat<uint16_t, internal::BFloat16Format>;
using Half = internal::SmallFloat<
    uint16_t, internal::SmallFloatFormat<5, 10, 15, internal::Special::kIeee>>;
using Float8E5m2 = internal::SmallFloat<
    uint8_t, internal::SmallFloatFormat<5, 2, 15, internal::Special::kIeee>>;
using Float8E4m3fn = internal::SmallFloat<
    uint8_t, internal::SmallFloatFormat<4, 3, 7, internal::Special::kNan>>;
using Float8E4m3fnuz = internal::SmallFloat<
    uint8_t, internal::SmallFloatFormat<4, 3, 8, internal::Special::kUnsigned>>;
using Float8E4m3b11fnuz = internal::SmallFloat<
    uint8_t,
    internal::SmallFloatFormat<4, 3, 11, internal::Special::kUnsigned>>;
using Float8E5m2fnuz = internal::SmallFloat<
    uint8_t,
    internal::SmallFloatFormat<5, 2, 16, internal::Special::kUnsigned>>;
using Float4E2m1fn = internal::SmallFloat<
    uint8_t, internal::SmallFloatFormat<2, 1, 1, internal::Special::kNone>>;
using Int4 = internal::SmallInt<4, true>;
using Uint4 = internal::SmallInt<4, false>;
using Int2 = internal::SmallInt<2, true>;
using Uint2 = internal::SmallInt<2, false>;

// Quantized numbers. Their scale and offset are in separate tensors.
namespace internal {
template <class Storage, int kNumber>
struct Quantized {
  Storage value;
};
}  // namespace internal
using Qint8 = internal::Quantized<int8_t, capi::TF_QINT8>;
using Quint8 = internal::Quantized<uint8_t, capi::TF_QUINT8>;
using Qint16 = internal::Quantized<int16_t, capi::TF_QINT16>;
using Quint16 = internal::Quantized<uint16_t, capi::TF_QUINT16>;
using Qint32 = internal::Quantized<int32_t, capi::TF_QINT32>;

template <>
inline constexpr DataType kDataTypeOf<BFloat16> = DataType::kBfloat16;
template <>
inline constexpr DataType kDataTypeOf<Half> = DataType::kHalf;
template <>
inline constexpr DataType kDataTypeOf<Float8E5m2> = DataType::kFloat8E5m2;
template <>
inline constexpr DataType kDataTypeOf<Float8E4m3fn> = DataType::kFloat8E4m3fn;
template <>
inline constexpr DataType kDataTypeOf<Float8E4m3fnuz> =
    DataType::kFloat8E4m3fnuz;
template <>
inline constexpr DataType kDataTypeOf<Float8E4m3b11fnuz> =
    DataType::kFloat8E4m3b11fnuz;
template <>
inline constexpr DataType kDataTypeOf<Float8E5m2fnuz> =
    DataType::kFloat8E5m2fnuz;
template <>
inline constexpr DataType kDataTypeOf<Float4E2m1fn> = DataType::kFloat4E2m1fn;
template <>
inline constexpr DataType kDataTypeOf<Int4> = DataType::kInt4;
template <>
inline constexpr DataType kDataTypeOf<Uint4> = DataType::kUint4;
template <>
inline constexpr DataType kDataTypeOf<Int2> = DataType::kInt2;
template <>
inline constexpr DataType kDataTypeOf<Uint2> = DataType::kUint2;
template <>
inline constexpr DataType kDataTypeOf<Qint8> = DataType::kQint8;
template <>
inline constexpr DataType kDataTypeOf<Quint8> = DataType::kQuint8;
template <>
inline constexpr DataType kDataTypeOf<Qint16> = DataType::kQint16;
template <>
inline constexpr DataType kDataTypeOf<Quint16> = DataType::kQuint16;
template <>
inline constexpr DataType kDataTypeOf<Qint32> = DataType::kQint32;

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_NARROW_TYPES_H_
