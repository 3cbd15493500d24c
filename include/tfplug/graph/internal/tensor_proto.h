// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_TENSOR_PROTO_H_
#define TFPLUG_GRAPH_INTERNAL_TENSOR_PROTO_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/internal/attr_codec.h"

#pragma GCC visibility push(hidden)

// The typed fields of a serialized tensorflow.TensorProto (float_val, int_val,
// ...). They may hold fewer elements than the shape has; the last one is then
// repeated.
namespace tfplug::graph_internal {

inline PartialShape TensorShapeOf(absl::string_view tensor_proto) {
  return internal::ParseShape(
      internal::MessageField(tensor_proto, 2).value_or(""));
}

// The field with the elements of a type, and their encoding.
struct ElementsField {
  enum class Form { kVarint, kFixed32, kFixed64, kBytes };
  uint32_t field;
  Form form;
};
inline ElementsField ElementsFieldOf(DataType dtype) {
  using Form = ElementsField::Form;
  switch (dtype) {
    case DataType::kFloat:
      return {5, Form::kFixed32};
    case DataType::kDouble:
      return {6, Form::kFixed64};
    case DataType::kComplex64:
      return {9, Form::kFixed32};
    case DataType::kInt64:
      return {10, Form::kVarint};
    case DataType::kBool:
      return {11, Form::kVarint};
    case DataType::kComplex128:
      return {12, Form::kFixed64};
    case DataType::kHalf:
    case DataType::kBfloat16:
      return {13, Form::kVarint};
    case DataType::kUint32:
      return {16, Form::kVarint};
    case DataType::kUint64:
      return {17, Form::kVarint};
    case DataType::kFloat8E5m2:
    case DataType::kFloat8E4m3fn:
    case DataType::kFloat8E4m3fnuz:
    case DataType::kFloat8E4m3b11fnuz:
    case DataType::kFloat8E5m2fnuz:
      return {18, Form::kBytes};
    default:
      return {7, Form::kVarint};
  }
}

// Appends the elements of the typed field, as they are stored in host memory.
// Returns false if the field is malformed.
inline bool ReadElements(absl::string_view tensor_proto, DataType dtype,
                         std::string& elements) {
  using Form = ElementsField::Form;
  const ElementsField typed = ElementsFieldOf(dtype);
  const auto append = [&](uint64_t value) {
    if (dtype == DataType::kBool) value = value != 0 ? 1 : 0;
    // All hosts that TensorFlow supports are little-endian.
    elements.append(reinterpret_cast<const char*>(&value), DataTypeSize(dtype));
  };
  for (internal::WireReader field(tensor_proto); field.Next();) {
    if (field.number() != static_cast<int>(typed.field)) continue;
    const absl::string_view bytes = field.bytes();
    const bool is_packed = field.type() == internal::kBytesType;
    if (typed.form == Form::kBytes) {
      if (is_packed) elements.assign(bytes.data(), bytes.size());
    } else if (typed.form != Form::kVarint) {
      const internal::WireType type = typed.form == Form::kFixed32
                                          ? internal::kFixed32Type
                                          : internal::kFixed64Type;
      if (is_packed || field.type() == type) {
        elements.append(bytes.data(), bytes.size());
      }
    } else if (field.type() == internal::kVarintType) {
      append(field.varint());
    } else if (is_packed) {
      const char* p = bytes.data();
      const char* const end = p + bytes.size();
      while (p != end) {
        uint64_t value;
        p = internal::ReadVarint(p, end, &value);
        if (p == nullptr) return false;
        append(value);
      }
    }
  }
  return true;
}

// Appends a TensorProto whose typed field holds `elements`. The last one is
// repeated for the rest of the tensor.
inline void AppendRepeatingTensor(std::string& to, DataType dtype,
                                  const Shape& shape,
                                  absl::string_view elements) {
  const ElementsField typed = ElementsFieldOf(dtype);
  internal::AppendField(to, 1, static_cast<uint64_t>(dtype));
  AppendNested(to, 2, [&] { AppendShape(to, shape); });
  if (typed.form != ElementsField::Form::kVarint) {
    return internal::AppendField(to, static_cast<int>(typed.field), elements);
  }
  const size_t size = DataTypeSize(dtype);
  bool is_signed = false;
  for (DataType type : {DataType::kInt8, DataType::kInt16, DataType::kInt32,
                        DataType::kQint8, DataType::kQint16, DataType::kQint32,
                        DataType::kInt4, DataType::kInt2}) {
    is_signed = is_signed || dtype == type;
  }
  AppendNested(to, typed.field, [&] {
    for (size_t at = 0; at < elements.size(); at += size) {
      uint64_t value = 0;
      memcpy(&value, elements.data() + at, size);
      if (is_signed && (value >> (8 * size - 1)) != 0) {
        value |= ~uint64_t{0} << 8 * size;
      }
      internal::AppendVarint(to, value);
    }
  });
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_TENSOR_PROTO_H_
