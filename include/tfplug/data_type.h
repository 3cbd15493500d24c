// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DATA_TYPE_H_
#define TFPLUG_DATA_TYPE_H_

#include <complex>
#include <cstdint>

#include "tfplug/abi/enums.h"

namespace tfplug {

// TF_DataType, value for value.
enum class DataType {
  kFloat = abi::TF_FLOAT,
  kDouble = abi::TF_DOUBLE,
  kInt32 = abi::TF_INT32,
  kUint8 = abi::TF_UINT8,
  kInt16 = abi::TF_INT16,
  kInt8 = abi::TF_INT8,
  kString = abi::TF_STRING,
  kComplex64 = abi::TF_COMPLEX64,
  kInt64 = abi::TF_INT64,
  kBool = abi::TF_BOOL,
  kQint8 = abi::TF_QINT8,
  kQuint8 = abi::TF_QUINT8,
  kQint32 = abi::TF_QINT32,
  kBfloat16 = abi::TF_BFLOAT16,
  kQint16 = abi::TF_QINT16,
  kQuint16 = abi::TF_QUINT16,
  kUint16 = abi::TF_UINT16,
  kComplex128 = abi::TF_COMPLEX128,
  kHalf = abi::TF_HALF,
  kResource = abi::TF_RESOURCE,
  kVariant = abi::TF_VARIANT,
  kUint32 = abi::TF_UINT32,
  kUint64 = abi::TF_UINT64,
  kFloat8E5m2 = abi::TF_FLOAT8_E5M2,      // Since 2.12.
  kFloat8E4m3fn = abi::TF_FLOAT8_E4M3FN,  // Since 2.12.
  kInt4 = abi::TF_INT4,                   // Since 2.15.
  kUint4 = abi::TF_UINT4,                 // Since 2.15.
};

// The DataType of a C++ type. Specialise it for a type of your own, such as a
// library's half:
//
//   template <>
//   inline constexpr tfplug::DataType tfplug::kDataTypeOf<Eigen::half> =
//       tfplug::DataType::kHalf;
template <class T>
inline constexpr DataType kDataTypeOf = DataType(0);

template <>
inline constexpr DataType kDataTypeOf<float> = DataType::kFloat;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::kDouble;
template <>
inline constexpr DataType kDataTypeOf<int8_t> = DataType::kInt8;
template <>
inline constexpr DataType kDataTypeOf<int16_t> = DataType::kInt16;
template <>
inline constexpr DataType kDataTypeOf<int32_t> = DataType::kInt32;
template <>
inline constexpr DataType kDataTypeOf<int64_t> = DataType::kInt64;
template <>
inline constexpr DataType kDataTypeOf<uint8_t> = DataType::kUint8;
template <>
inline constexpr DataType kDataTypeOf<uint16_t> = DataType::kUint16;
template <>
inline constexpr DataType kDataTypeOf<uint32_t> = DataType::kUint32;
template <>
inline constexpr DataType kDataTypeOf<uint64_t> = DataType::kUint64;
template <>
inline constexpr DataType kDataTypeOf<bool> = DataType::kBool;
template <>
inline constexpr DataType kDataTypeOf<std::complex<float>> =
    DataType::kComplex64;
template <>
inline constexpr DataType kDataTypeOf<std::complex<double>> =
    DataType::kComplex128;

// kDataTypeOf<T>, or a compile error in words.
template <class T>
constexpr DataType DataTypeOf() {
  static_assert(kDataTypeOf<T> != DataType(0),
                "tfplug: TensorFlow has no data type for this C++ type; "
                "specialise tfplug::kDataTypeOf for it");
  return kDataTypeOf<T>;
}

}  // namespace tfplug

#endif  // TFPLUG_DATA_TYPE_H_
