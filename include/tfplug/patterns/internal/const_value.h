// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_CONST_VALUE_H_
#define TFPLUG_PATTERNS_INTERNAL_CONST_VALUE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "tfplug/base/data_type.h"
#include "tfplug/base/narrow_types.h"
#include "tfplug/graph/constant.h"

#pragma GCC visibility push(hidden)

// Numbers that constants hold.
namespace tfplug::patterns_internal {

template <class T>
double ReadNumber(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(
      static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(
          value));
}

// Returns the value of all elements; nothing if they differ, if there are none,
// or if they are not numbers.
inline std::optional<double> SplatOf(const Constant& constant) {
  const size_t size = DataTypeSize(constant.dtype());
  if (size == 0 || constant.num_elements() <= 0) return std::nullopt;
  const std::string bytes = constant.is_splat()
                                ? constant.Reshaped(Shape{}).GetBytes()
                                : constant.GetBytes();
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) !=
      0) {
    return std::nullopt;
  }
  switch (constant.dtype()) {
    case DataType::kFloat:
      return ReadNumber<float>(bytes);
    case DataType::kDouble:
      return ReadNumber<double>(bytes);
    case DataType::kHalf:
      return ReadNumber<Half>(bytes);
    case DataType::kBfloat16:
      return ReadNumber<BFloat16>(bytes);
    case DataType::kInt32:
      return ReadNumber<int32_t>(bytes);
    case DataType::kInt64:
      return ReadNumber<int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

inline bool IsSplatOf(const Constant& constant, double value,
                      double tolerance) {
  const std::optional<double> found = SplatOf(constant);
  if (!found.has_value()) return false;
  switch (constant.dtype()) {
    case DataType::kHalf:
      tolerance = std::max(tolerance, 0x1p-11);
      break;
    case DataType::kBfloat16:
      tolerance = std::max(tolerance, 0x1p-8);
      break;
    case DataType::kFloat:
      tolerance = std::max(tolerance, 0x1p-24);
      break;
    default:
      break;
  }
  return std::abs(*found - value) <= tolerance * std::abs(value);
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_CONST_VALUE_H_
