// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_NODE_H_
#define TFPLUG_TESTING_FAKE_NODE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// The kinds of attributes that the stand-in knows.
using AttrValue =
    std::variant<bool, int64_t, float, DataType, std::string, std::vector<bool>,
                 std::vector<int64_t>, std::vector<float>,
                 std::vector<DataType>, std::vector<std::string>>;

// A node of a graph: what a kernel is made for.
struct Node {
  std::string op;
  std::string name;
  std::map<std::string, AttrValue> attrs;
  // The op's input arguments in order, each with how many inputs it has. Only
  // needed where a kernel asks for inputs by name.
  std::vector<std::pair<std::string, int>> input_args;
};

}  // namespace tfplug::testing

namespace tfplug::capi {

struct TF_OpKernelConstruction {
  const testing::Node& node;
  absl::Status failure;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelConstruction;

// Reads the attribute if it is a T; says why not otherwise.
template <class T>
const T* FindAttr(const TF_OpKernelConstruction* construction,
                  const char* attr_name, TF_Status* status) {
  const auto& attrs = construction->node.attrs;
  const auto found = attrs.find(attr_name);
  if (found == attrs.end()) {
    const std::string message = "No attr named '" + std::string(attr_name);
    TF_SetStatus(status, capi::TF_NOT_FOUND, message.c_str());
    return nullptr;
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "the attr is of another kind");
    return nullptr;
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return value;
}
template <class T, class C>
void GetAttr(TF_OpKernelConstruction* construction, const char* attr_name,
             C* to, TF_Status* status) {
  const T* value = FindAttr<T>(construction, attr_name, status);
  if (value != nullptr) *to = static_cast<C>(*value);
}
template <class T, class C>
void GetAttrList(TF_OpKernelConstruction* construction, const char* attr_name,
                 C* to, int max_vals, TF_Status* status) {
  const auto* list = FindAttr<std::vector<T>>(construction, attr_name, status);
  if (list == nullptr) return;
  const auto n = std::min(static_cast<size_t>(max_vals), list->size());
  for (size_t i = 0; i < n; ++i) to[i] = static_cast<C>((*list)[i]);
}

#define TFPLUG_TESTING_GET_ATTR(Name, T, C)                                   \
  TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name(    \
      TF_OpKernelConstruction* construction, const char* attr_name, C* value, \
      TF_Status* status) {                                                    \
    GetAttr<T>(construction, attr_name, value, status);                       \
  }                                                                           \
  TFPLUG_TESTING_CORE_FUNCTION void                                           \
      TF_OpKernelConstruction_GetAttr##Name##List(                            \
          TF_OpKernelConstruction* construction, const char* attr_name,       \
          C* values, int max_vals, TF_Status* status) {                       \
    GetAttrList<T>(construction, attr_name, values, max_vals, status);        \
  }
TFPLUG_TESTING_GET_ATTR(Bool, bool, capi::TF_Bool)
TFPLUG_TESTING_GET_ATTR(Int64, int64_t, int64_t)
TFPLUG_TESTING_GET_ATTR(Float, float, float)
TFPLUG_TESTING_GET_ATTR(Type, DataType, capi::TF_DataType)
#undef TFPLUG_TESTING_GET_ATTR

TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrInt32(
    TF_OpKernelConstruction* construction, const char* attr_name,
    int32_t* value, TF_Status* status) {
  int64_t wide = 0;
  GetAttr<int64_t>(construction, attr_name, &wide, status);
  if (wide < std::numeric_limits<int32_t>::min() ||
      wide > std::numeric_limits<int32_t>::max()) {
    return TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                        "out of range for an int32");
  }
  *value = static_cast<int32_t>(wide);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrInt32List(
    TF_OpKernelConstruction* construction, const char* attr_name,
    int32_t* values, int max_vals, TF_Status* status) {
  GetAttrList<int64_t>(construction, attr_name, values, max_vals, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* construction, const char* attr_name, char* value,
    size_t max_length, TF_Status* status) {
  const auto* text = FindAttr<std::string>(construction, attr_name, status);
  if (text == nullptr) return;
  std::memcpy(value, text->data(), std::min(max_length, text->size()));
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* construction, const char* attr_name, char** values,
    size_t* lengths, int max_values, void* storage, size_t storage_size,
    TF_Status* status) {
  const auto* list =
      FindAttr<std::vector<std::string>>(construction, attr_name, status);
  if (list == nullptr) return;
  char* to = static_cast<char*>(storage);
  for (size_t i = 0; i < list->size() && i < static_cast<size_t>(max_values);
       ++i) {
    const std::string& text = (*list)[i];
    if (to + text.size() > static_cast<char*>(storage) + storage_size) {
      return TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                          "not enough storage for the strings");
    }
    std::memcpy(to, text.data(), text.size());
    values[i] = to;
    lengths[i] = text.size();
    to += text.size();
  }
}

// -1 where a size has no meaning.
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrSize(
    TF_OpKernelConstruction* construction, const char* attr_name,
    int32_t* list_size, int32_t* total_size, TF_Status* status) {
  const auto found = construction->node.attrs.find(attr_name);
  *list_size = *total_size = -1;
  if (found == construction->node.attrs.end()) {
    return TF_SetStatus(status, capi::TF_NOT_FOUND, "no such attr");
  }
  TF_SetStatus(status, capi::TF_OK, "");
  const auto size_of = [](const auto& sized) {
    return static_cast<int32_t>(sized.size());
  };
  const AttrValue& value = found->second;
  if (const auto* text = std::get_if<std::string>(&value)) {
    *total_size = size_of(*text);
  } else if (const auto* texts =
                 std::get_if<std::vector<std::string>>(&value)) {
    *list_size = size_of(*texts);
    *total_size = 0;
    for (const std::string& text : *texts) *total_size += size_of(text);
  } else if (const auto* bools = std::get_if<std::vector<bool>>(&value)) {
    *list_size = size_of(*bools);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    *list_size = size_of(*ints);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
    *list_size = size_of(*floats);
  } else if (const auto* types = std::get_if<std::vector<DataType>>(&value)) {
    *list_size = size_of(*types);
  }
}

TFPLUG_TESTING_CORE_FUNCTION bool TF_OpKernelConstruction_HasAttr(
    TF_OpKernelConstruction* construction, const char* attr_name,
    TF_Status* status) {
  TF_SetStatus(status, capi::TF_OK, "");
  return construction->node.attrs.count(attr_name) != 0;
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView
TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* construction) {
  const std::string& name = construction->node.name;
  return {name.data(), name.size()};
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_Failure(
    TF_OpKernelConstruction* construction, TF_Status* status) {
  construction->failure.Update(FromCore(*status));
}

inline void InstallNodeFunctions(capi::Functions& core) {
  core.TF_OpKernelConstruction_GetAttrBool =
      &TF_OpKernelConstruction_GetAttrBool;
  core.TF_OpKernelConstruction_GetAttrBoolList =
      &TF_OpKernelConstruction_GetAttrBoolList;
  core.TF_OpKernelConstruction_GetAttrInt32 =
      &TF_OpKernelConstruction_GetAttrInt32;
  core.TF_OpKernelConstruction_GetAttrInt32List =
      &TF_OpKernelConstruction_GetAttrInt32List;
  core.TF_OpKernelConstruction_GetAttrInt64 =
      &TF_OpKernelConstruction_GetAttrInt64;
  core.TF_OpKernelConstruction_GetAttrInt64List =
      &TF_OpKernelConstruction_GetAttrInt64List;
  core.TF_OpKernelConstruction_GetAttrFloat =
      &TF_OpKernelConstruction_GetAttrFloat;
  core.TF_OpKernelConstruction_GetAttrFloatList =
      &TF_OpKernelConstruction_GetAttrFloatList;
  core.TF_OpKernelConstruction_GetAttrType =
      &TF_OpKernelConstruction_GetAttrType;
  core.TF_OpKernelConstruction_GetAttrTypeList =
      &TF_OpKernelConstruction_GetAttrTypeList;
  core.TF_OpKernelConstruction_GetAttrString =
      &TF_OpKernelConstruction_GetAttrString;
  core.TF_OpKernelConstruction_GetAttrStringList =
      &TF_OpKernelConstruction_GetAttrStringList;
  core.TF_OpKernelConstruction_GetAttrSize =
      &TF_OpKernelConstruction_GetAttrSize;
  core.TF_OpKernelConstruction_HasAttr = &TF_OpKernelConstruction_HasAttr;
  core.TF_OpKernelConstruction_GetName = &TF_OpKernelConstruction_GetName;
  core.TF_OpKernelConstruction_Failure = &TF_OpKernelConstruction_Failure;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_NODE_H_
