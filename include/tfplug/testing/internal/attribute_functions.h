// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_ATTRIBUTE_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_ATTRIBUTE_FUNCTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/testing/internal/buffer_functions.h"
#include "tfplug/testing/node.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

// The construction of a kernel for a node.
struct TF_OpKernelConstruction {
  testing::Node node;
  // The first failure that the kernel reports.
  absl::Status failure;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelConstruction;

// Returns the attribute if it has type T; otherwise null, with an error in
// `status`.
template <class T>
const T* FindAttr(const char* function,
                  const TF_OpKernelConstruction* construction, const char* name,
                  TF_Status* status) {
  if (Fault::Hits(function, status)) return nullptr;
  const auto& attrs = construction->node.attrs;
  const auto found = attrs.find(name);
  if (found == attrs.end()) {
    TF_SetStatus(status, capi::TF_NOT_FOUND,
                 ("No attr named '" + std::string(name) + "'").c_str());
    return nullptr;
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "AttrValue had value with another type");
    return nullptr;
  }
  SetOk(status);
  return value;
}

template <class T, class C>
void GetAttr(const char* function, TF_OpKernelConstruction* construction,
             const char* name, C* to, TF_Status* status) {
  const T* value = FindAttr<T>(function, construction, name, status);
  if (value == nullptr) return;
  if constexpr (std::is_same_v<C, int32_t>) {
    if (*value < std::numeric_limits<int32_t>::min() ||
        *value > std::numeric_limits<int32_t>::max()) {
      TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                   "Attr has a value out of range for an int32");
      return;
    }
  }
  *to = static_cast<C>(*value);
}
// Unlike GetAttr, narrows integers without a check, as TensorFlow does.
template <class T, class C>
void GetAttrList(const char* function, TF_OpKernelConstruction* construction,
                 const char* name, C* to, int max, TF_Status* status) {
  const auto* list =
      FindAttr<std::vector<T>>(function, construction, name, status);
  if (list == nullptr) return;
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<C>((*list)[i]);
}

#define TFPLUG_FAKE_GET_ATTR(Name, T, C)                                    \
  TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name(          \
      TF_OpKernelConstruction* construction, const char* name, C* value,    \
      TF_Status* status) {                                                  \
    GetAttr<T>("TF_OpKernelConstruction_GetAttr" #Name, construction, name, \
               value, status);                                              \
  }                                                                         \
  TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name##List(    \
      TF_OpKernelConstruction* construction, const char* name, C* values,   \
      int max, TF_Status* status) {                                         \
    GetAttrList<T>("TF_OpKernelConstruction_GetAttr" #Name "List",          \
                   construction, name, values, max, status);                \
  }
TFPLUG_FAKE_GET_ATTR(Bool, bool, capi::TF_Bool)
TFPLUG_FAKE_GET_ATTR(Int32, int64_t, int32_t)
TFPLUG_FAKE_GET_ATTR(Int64, int64_t, int64_t)
TFPLUG_FAKE_GET_ATTR(Float, float, float)
TFPLUG_FAKE_GET_ATTR(Type, DataType, capi::TF_DataType)
#undef TFPLUG_FAKE_GET_ATTR

TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* construction, const char* name, char* value,
    size_t max_length, TF_Status* status) {
  const auto* text = FindAttr<std::string>(
      "TF_OpKernelConstruction_GetAttrString", construction, name, status);
  if (text == nullptr) return;
  std::memcpy(value, text->data(), std::min(max_length, text->size()));
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* construction, const char* name, char** values,
    size_t* lengths, int max, void* storage, size_t storage_size,
    TF_Status* status) {
  const auto* list = FindAttr<std::vector<std::string>>(
      "TF_OpKernelConstruction_GetAttrStringList", construction, name, status);
  if (list == nullptr) return;
  char* to = static_cast<char*>(storage);
  const char* const end = to + storage_size;
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& text = (*list)[i];
    if (to + text.size() > end) {
      TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                   "Not enough storage to hold the requested list of strings");
      return;
    }
    std::memcpy(to, text.data(), text.size());
    values[i] = to;
    lengths[i] = text.size();
    to += text.size();
  }
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrTensor(
    TF_OpKernelConstruction* construction, const char* name, TF_Tensor** value,
    TF_Status* status) {
  *value = nullptr;
  const auto* tensor = FindAttr<TF_Tensor>(
      "TF_OpKernelConstruction_GetAttrTensor", construction, name, status);
  if (tensor != nullptr) *value = new TF_Tensor(*tensor);
}
// After a failure in the middle, the caller owns the tensors read before it.
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrTensorList(
    TF_OpKernelConstruction* construction, const char* name, TF_Tensor** values,
    int max, TF_Status* status) {
  constexpr char kName[] = "TF_OpKernelConstruction_GetAttrTensorList";
  const auto* list =
      FindAttr<std::vector<TF_Tensor>>(kName, construction, name, status);
  if (list == nullptr) return;
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) {
    if (Fault::Hits(kName, status)) return;
    values[i] = new TF_Tensor((*list)[i]);
  }
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrTensorShape(
    TF_OpKernelConstruction* construction, const char* name, int64_t* dims,
    size_t num_dims, TF_Status* status) {
  const auto* shape = FindAttr<PartialShape>(
      "TF_OpKernelConstruction_GetAttrTensorShape", construction, name, status);
  if (shape == nullptr) return;
  if (!shape->is_fully_known() ||
      static_cast<size_t>(shape->rank()) != num_dims) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "not fully defined");
    return;
  }
  for (int i = 0; i < shape->rank(); ++i) dims[i] = shape->dim(i);
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(
    TF_OpKernelConstruction* construction, const char* name,
    TF_Status* status) {
  const auto* function = FindAttr<Function>(
      "TF_OpKernelConstruction_GetAttrFunction", construction, name, status);
  if (function == nullptr) return nullptr;
  return MakeBuffer(SerializeFunction(*function));
}

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

// Returns the length of a string or the rank of a shape; -1 for other types.
template <class T>
int32_t VariableSize(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return static_cast<int32_t>(value.size());
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return value.rank();
  } else {
    return -1;
  }
}

// Does not set the status on success. A size that does not apply is -1; the
// size of an empty list is 0, whatever its type.
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrSize(
    TF_OpKernelConstruction* construction, const char* name, int32_t* list_size,
    int32_t* total_size, TF_Status* status) {
  *list_size = *total_size = -1;
  if (Fault::Hits("TF_OpKernelConstruction_GetAttrSize", status)) return;
  const auto found = construction->node.attrs.find(name);
  if (found == construction->node.attrs.end()) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 ("No attr named '" + std::string(name) + "'").c_str());
    return;
  }
  std::visit(
      [&](const auto& value) {
        if constexpr (kIsList<std::decay_t<decltype(value)>>) {
          *list_size = static_cast<int32_t>(value.size());
          for (const auto& element : value) {
            const int32_t size = VariableSize(element);
            if (size >= 0) *total_size = std::max(*total_size, 0) + size;
          }
        } else {
          *total_size = VariableSize(value);
        }
      },
      found->second);
}

TFPLUG_FAKE_FUNCTION bool TF_OpKernelConstruction_HasAttr(
    TF_OpKernelConstruction* construction, const char* name, TF_Status*) {
  return construction->node.attrs.count(name) != 0;
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_OpKernelConstruction_GetName(
    TF_OpKernelConstruction* construction) {
  const std::string& name = construction->node.name;
  return {name.data(), name.size()};
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_OpKernelConstruction_GetNodeDef(
    TF_OpKernelConstruction* construction, TF_Status* status) {
  if (Fault::Hits("TF_OpKernelConstruction_GetNodeDef", status)) return nullptr;
  SetOk(status);
  return MakeBuffer(SerializeNodeDef(construction->node));
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_Failure(
    TF_OpKernelConstruction* construction, TF_Status* status) {
  construction->failure.Update(ReadStatus(*status));
}

inline void InstallAttributeFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrBool);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrBoolList);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrInt32);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrInt32List);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrInt64);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrInt64List);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrFloat);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrFloatList);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrType);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrTypeList);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrString);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrStringList);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrTensor);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrTensorList);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrTensorShape);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrFunction);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetAttrSize);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_HasAttr);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetName);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_GetNodeDef);
  TFPLUG_FAKE_INSTALL(TF_OpKernelConstruction_Failure);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_ATTRIBUTE_FUNCTIONS_H_
