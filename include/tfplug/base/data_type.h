// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_DATA_TYPE_H_
#define TFPLUG_BASE_DATA_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "tfplug/abi/enums.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The enumerators have the values of TF_DataType.
enum class DataType {
  kFloat = capi::TF_FLOAT,
  kDouble = capi::TF_DOUBLE,
  kInt32 = capi::TF_INT32,
  kUint8 = capi::TF_UINT8,
  kInt16 = capi::TF_INT16,
  kInt8 = capi::TF_INT8,
  kString = capi::TF_STRING,
  kComplex64 = capi::TF_COMPLEX64,
  kInt64 = capi::TF_INT64,
  kBool = capi::TF_BOOL,
  kQint8 = capi::TF_QINT8,
  kQuint8 = capi::TF_QUINT8,
  kQint32 = capi::TF_QINT32,
  kBfloat16 = capi::TF_BFLOAT16,
  kQint16 = capi::TF_QINT16,
  kQuint16 = capi::TF_QUINT16,
  kUint16 = capi::TF_UINT16,
  kComplex128 = capi::TF_COMPLEX128,
  kHalf = capi::TF_HALF,
  kResource = capi::TF_RESOURCE,
  kVariant = capi::TF_VARIANT,
  kUint32 = capi::TF_UINT32,
  kUint64 = capi::TF_UINT64,
  // Added after 2.5; a TensorFlow that lacks the type returns an error.
  kFloat8E5m2 = capi::TF_FLOAT8_E5M2,
  kFloat8E4m3fn = capi::TF_FLOAT8_E4M3FN,
  kFloat8E4m3fnuz = capi::TF_FLOAT8_E4M3FNUZ,
  kFloat8E4m3b11fnuz = capi::TF_FLOAT8_E4M3B11FNUZ,
  kFloat8E5m2fnuz = capi::TF_FLOAT8_E5M2FNUZ,
  kInt4 = capi::TF_INT4,
  kUint4 = capi::TF_UINT4,
  kInt2 = capi::TF_INT2,
  kUint2 = capi::TF_UINT2,
  kFloat4E2m1fn = capi::TF_FLOAT4_E2M1FN,
  kFloat8E8m0fnu = capi::TF_FLOAT8_E8M0FNU,
};

// TensorFlow 1's variables have reference types. The value of a reference type
// is this offset plus the value of the type that it refers to.
inline constexpr int kRefTypeOffset = 100;

constexpr bool IsRefType(DataType type) {
  return static_cast<int>(type) > kRefTypeOffset;
}
constexpr DataType RemoveRef(DataType type) {
  return IsRefType(type)
             ? static_cast<DataType>(static_cast<int>(type) - kRefTypeOffset)
             : type;
}

namespace internal {

struct DataTypeInfo {
  const char* name;
  uint8_t size;  // bytes of one element; 0 if it is not fixed
};

// Indexed by TF_DataType.
inline constexpr DataTypeInfo kDataTypes[] = {
    {"invalid", 0},
    {"float", 4},
    {"double", 8},
    {"int32", 4},
    {"uint8", 1},
    {"int16", 2},
    {"int8", 1},
    {"string", 0},
    {"complex64", 8},
    {"int64", 8},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"qint16", 2},
    {"quint16", 2},
    {"uint16", 2},
    {"complex128", 16},
    {"half", 2},
    {"resource", 0},
    {"variant", 0},
    {"uint32", 4},
    {"uint64", 8},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"int4", 1},
    {"uint4", 1},
    {"int2", 1},
    {"uint2", 1},
    {"float4_e2m1fn", 1},
    {"float8_e8m0fnu", 1},
};
inline constexpr int kDataTypeCount =
    static_cast<int>(sizeof(kDataTypes) / sizeof(DataTypeInfo));

constexpr DataTypeInfo InfoOf(DataType type) {
  const int index = static_cast<int>(type);
  return kDataTypes[index > 0 && index < kDataTypeCount ? index : 0];
}

// Recognizes std::complex and similar types: two values of value_type, with
// real() and imag(). An #include of <complex> would add about a tenth to the
// compile time of these headers.
template <class T, class = void>
struct ComplexType {
  static constexpr DataType kType = DataType(0);
};
template <class T>
struct ComplexType<
    T, std::enable_if_t<
           sizeof(T) == 2 * sizeof(typename T::value_type) &&
           std::is_convertible_v<decltype(std::declval<const T&>().real()),
                                 typename T::value_type> &&
           std::is_convertible_v<decltype(std::declval<const T&>().imag()),
                                 typename T::value_type>>> {
  using Part = typename T::value_type;
  static constexpr DataType kType =
      std::is_same_v<Part, float>    ? DataType::kComplex64
      : std::is_same_v<Part, double> ? DataType::kComplex128
                                     : DataType(0);
};

}  // namespace internal

// Returns the size of one element in bytes; 0 if it is not fixed (string,
// resource, variant) or if the type is newer than these headers. Elements of 4
// and 2 bits take a byte each.
constexpr size_t DataTypeSize(DataType type) {
  return internal::InfoOf(type).size;
}

// Returns the size of one element in bytes according to the TensorFlow in this
// process (TF_DataTypeSize); also 0 for a type that the release lacks. For
// strings, resources and variants, some releases return the size of their own
// C++ class.
inline size_t DataTypeSizeInTensorFlow(DataType type) {
  return internal::tensorflow.TF_DataTypeSize(
      static_cast<capi::TF_DataType>(type));
}

// Returns the name as in a NodeDef: "float", "int32", "float_ref"; "type 99" if
// the type is newer than these headers.
inline std::string DataTypeName(DataType type) {
  const int index = static_cast<int>(RemoveRef(type));
  if (index <= 0 || index >= internal::kDataTypeCount) {
    return "type " + std::to_string(static_cast<int>(type));
  }
  return std::string(internal::kDataTypes[index].name) +
         (IsRefType(type) ? "_ref" : "");
}

// The DataType of a C++ type, including std::complex; narrow_types.h and
// tstring.h add more. Specialize it for other types, such as a library's half:
//
//   template <>
//   inline constexpr tfplug::DataType tfplug::kDataTypeOf<Eigen::half> =
//       tfplug::DataType::kHalf;
template <class T>
inline constexpr DataType kDataTypeOf = internal::ComplexType<T>::kType;

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

// Returns kDataTypeOf<T>, or fails to compile with an explanation.
template <class T>
constexpr DataType DataTypeOf() {
  static_assert(kDataTypeOf<T> != DataType(0),
                "tfplug: TensorFlow has no data type for this C++ type; use "
                "tfplug::TString for strings (tstring.h), or specialize "
                "tfplug::kDataTypeOf for yours");
  return kDataTypeOf<T>;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_DATA_TYPE_H_
