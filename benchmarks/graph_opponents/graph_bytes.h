// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_GRAPH_BYTES_H_
#define TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_GRAPH_BYTES_H_

#include <cstddef>
#include <string_view>

#include "upb/generated_code_support.h"
#include "upb/port/def.inc"

// The tables and accessors that upb's generator would write for this schema,
// which reads GraphDefs and leaves attributes unparsed:
//
//   syntax = "proto3";
//   message Graph { repeated Node node = 1; }  // The rest is unknown fields.
//   message Node {
//     bytes name = 1;
//     bytes op = 2;
//     repeated bytes input = 3;
//     bytes device = 4;
//     repeated bytes attr = 5;
//   }
//
// upb's generator is not part of a package, so they are written by hand.
namespace graph_bytes {

inline constexpr int kBytesMode =
    kUpb_FieldMode_Scalar | kUpb_FieldRep_StringView << kUpb_FieldRep_Shift;
inline constexpr int kListMode =
    kUpb_FieldMode_Array | kUpb_FieldRep_8Byte << kUpb_FieldRep_Shift;
inline constexpr upb_MiniTableField kNodeFields[] = {
    {1, 8, 0, kUpb_NoSub, kUpb_FieldType_Bytes, kBytesMode},
    {2, 24, 0, kUpb_NoSub, kUpb_FieldType_Bytes, kBytesMode},
    {3, 56, 0, kUpb_NoSub, kUpb_FieldType_Bytes, kListMode},
    {4, 40, 0, kUpb_NoSub, kUpb_FieldType_Bytes, kBytesMode},
    {5, 64, 0, kUpb_NoSub, kUpb_FieldType_Bytes, kListMode},
};
inline constexpr const upb_MiniTableField& kName = kNodeFields[0];
inline constexpr const upb_MiniTableField& kOp = kNodeFields[1];
inline constexpr const upb_MiniTableField& kInput = kNodeFields[2];
inline constexpr const upb_MiniTableField& kDevice = kNodeFields[3];
inline constexpr const upb_MiniTableField& kAttr = kNodeFields[4];
inline constexpr upb_MiniTable kNodeTable = {
    kNodeFields, 72, 5, kUpb_ExtMode_NonExtendable, 5, 0, 0};

struct GraphFields {
  upb_MiniTableField fields[1];
  upb_MiniTableSubInternal subs[1];
};
inline constexpr GraphFields kGraphFields = {
    {{1, 8, 0, offsetof(GraphFields, subs) / kUpb_SubmsgOffsetBytes,
      kUpb_FieldType_Message, kListMode}},
    {{&kNodeTable}}};
inline constexpr const upb_MiniTableField& kNode = kGraphFields.fields[0];
inline constexpr upb_MiniTable kGraphTable = {
    kGraphFields.fields, 16, 1, kUpb_ExtMode_NonExtendable, 1, 0, 0};

inline std::string_view Get(const upb_Message* node,
                            const upb_MiniTableField& field) {
  const upb_StringView value =
      upb_Message_GetString(node, &field, upb_StringView{nullptr, 0});
  return std::string_view(value.data, value.size);
}
inline void Set(upb_Message* node, const upb_MiniTableField& field,
                std::string_view text) {
  const upb_StringView value = {text.data(), text.size()};
  upb_Message_SetBaseField(node, &field, &value);
}

// The elements of a repeated field.
template <class T>
struct List {
  const T* data = nullptr;
  size_t size = 0;
};
template <class T>
List<T> GetList(const upb_Message* message, const upb_MiniTableField& field) {
  const upb_Array* const array = upb_Message_GetArray(message, &field);
  if (array == nullptr) return {};
  return {static_cast<const T*>(upb_Array_DataPtr(array)),
          upb_Array_Size(array)};
}

}  // namespace graph_bytes

#include "upb/port/undef.inc"

#endif  // TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_GRAPH_BYTES_H_
