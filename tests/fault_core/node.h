// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_NODE_H_
#define TFPLUG_TESTS_FAULT_CORE_NODE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fault_core/run.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"

namespace tfplug::testing {

// An attribute of the stand-in's: of one kind, single or a list.
struct TestAttr {
  enum Kind { kString, kInt, kFloat, kBool, kType, kShape, kTensor, kFunction };

  Kind kind = kInt;
  bool is_list = false;
  std::vector<std::string> strings;  // Of functions: the names.
  std::vector<int64_t> numbers;      // Ints, bools and types.
  std::vector<float> floats;
  std::vector<PartialShape> shapes;
  std::vector<TF_Tensor> tensors;

  size_t size() const {
    return std::max({strings.size(), numbers.size(), floats.size(),
                     shapes.size(), tensors.size()});
  }

  // As a serialised AttrValue; of tensors only that they are some.
  std::string Serialize() const {
    const int kFields[] = {2, 3, 4, 5, 6, 7, 8, is_list ? 9 : 10};
    const int field = kFields[kind];
    std::string value;
    for (size_t i = 0; i < size(); ++i) {
      if (!numbers.empty()) {
        internal::AppendField(value, field, static_cast<uint64_t>(numbers[i]));
      } else if (kind == kFunction) {
        internal::AppendField(value, field, NameAttrList(i));
      } else if (kind == kShape) {
        internal::AppendField(value, field, ShapeProto(shapes[i]));
      } else {
        internal::AppendField(value, field, strings.empty() ? "" : strings[i]);
      }
    }
    if (!is_list) return value;
    std::string list;
    internal::AppendField(list, 1, value);
    return list;
  }
  std::string NameAttrList(size_t i) const {
    std::string message;
    internal::AppendField(message, 1, strings[i]);
    return message;
  }

 private:
  static std::string ShapeProto(const PartialShape& shape) {
    std::string message;
    if (!shape.has_rank()) {
      internal::AppendField(message, 3, uint64_t{1});
      return message;
    }
    for (int64_t size : shape.shape().dims()) {
      std::string dim;
      internal::AppendField(dim, 1, static_cast<uint64_t>(size));
      internal::AppendField(message, 2, dim);
    }
    return message;
  }
};

}  // namespace tfplug::testing

namespace tfplug::capi {

// The stand-in's TF_OpKernelConstruction: the node that a kernel is made for.
struct TF_OpKernelConstruction {
  std::string op = "Op";
  std::string node = "node";
  std::map<std::string, testing::TestAttr> attrs;

  absl::Status status;  // The failure that the kernel told of.
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelConstruction;

// The attribute if it is there and of the kind; else the status says what core
// would say.
inline const TestAttr* FindAttr(const char* function,
                                TF_OpKernelConstruction* node, const char* name,
                                TestAttr::Kind kind, bool is_list,
                                TF_Status* status) {
  if (Fault::Hits(function, status)) return nullptr;
  const auto found = node->attrs.find(name);
  if (found == node->attrs.end()) {
    TF_SetStatus(status, capi::TF_NOT_FOUND, "No attr named so");
    return nullptr;
  }
  if (found->second.kind != kind || found->second.is_list != is_list) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT,
                 "AttrValue had value with another type");
    return nullptr;
  }
  TF_SetStatus(status, capi::TF_OK, "");
  return &found->second;
}

TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_Failure(
    TF_OpKernelConstruction* node, TF_Status* status) {
  if (node->status.ok()) node->status = FromCore(*status);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_StringView
TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* node) {
  return View(node->node);
}
TFPLUG_TESTING_CORE_FUNCTION bool TF_OpKernelConstruction_HasAttr(
    TF_OpKernelConstruction* node, const char* name, TF_Status*) {
  return node->attrs.count(name) != 0;
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer*
TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* node,
                                   TF_Status* status) {
  if (Fault::Hits("TF_OpKernelConstruction_GetNodeDef", status)) return nullptr;
  std::string bytes;
  internal::AppendField(bytes, 1, node->node);
  internal::AppendField(bytes, 2, node->op);
  for (const auto& [name, attr] : node->attrs) {
    std::string entry;
    internal::AppendField(entry, 1, name);
    internal::AppendField(entry, 2, attr.Serialize());
    internal::AppendField(bytes, 5, entry);
  }
  ++LiveBufferCount();
  auto* const buffer = new capi::TF_Buffer;
  FillBuffer(buffer, bytes);
  return buffer;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrSize(
    TF_OpKernelConstruction* node, const char* name, int32_t* list,
    int32_t* total, TF_Status* status) {
  *list = *total = -1;
  if (Fault::Hits("TF_OpKernelConstruction_GetAttrSize", status)) return;
  const auto found = node->attrs.find(name);
  if (found == node->attrs.end()) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "has no attr named so");
    return;
  }
  const TestAttr& attr = found->second;
  if (attr.is_list) *list = static_cast<int32_t>(attr.size());
  if (attr.kind == TestAttr::kString && attr.size() != 0) {
    *total = 0;
    for (const std::string& text : attr.strings) {
      *total += static_cast<int32_t>(text.size());
    }
  }
  if (attr.kind == TestAttr::kShape && !attr.is_list) {
    *total = attr.shapes[0].rank();
  }
}

// The functions for numbers: single, and list.
template <class C, TestAttr::Kind kind>
void GiveNumber(const char* function, TF_OpKernelConstruction* node,
                const char* name, C* value, TF_Status* status) {
  const TestAttr* attr = FindAttr(function, node, name, kind, false, status);
  if (attr == nullptr) return;
  if constexpr (kind == TestAttr::kFloat) {
    *value = attr->floats[0];
  } else {
    *value = static_cast<C>(attr->numbers[0]);
    if (static_cast<int64_t>(*value) != attr->numbers[0]) {
      TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "out of range");
    }
  }
}
template <class C, TestAttr::Kind kind>
void GiveNumbers(const char* function, TF_OpKernelConstruction* node,
                 const char* name, C* values, int max_values,
                 TF_Status* status) {
  const TestAttr* attr = FindAttr(function, node, name, kind, true, status);
  if (attr == nullptr) return;
  const size_t n = std::min(static_cast<size_t>(max_values), attr->size());
  for (size_t i = 0; i < n; ++i) {
    if constexpr (kind == TestAttr::kFloat) {
      values[i] = attr->floats[i];
    } else {
      values[i] = static_cast<C>(attr->numbers[i]);
    }
  }
}
#define TFPLUG_TESTING_NUMBER_ATTR(Name, C, kind)                              \
  TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name(     \
      TF_OpKernelConstruction* node, const char* name, C* value,               \
      TF_Status* status) {                                                     \
    GiveNumber<C, kind>("TF_OpKernelConstruction_GetAttr" #Name, node, name,   \
                        value, status);                                        \
  }                                                                            \
  TFPLUG_TESTING_CORE_FUNCTION void                                            \
      TF_OpKernelConstruction_GetAttr##Name##List(                             \
          TF_OpKernelConstruction* node, const char* name, C* values, int n,   \
          TF_Status* status) {                                                 \
    GiveNumbers<C, kind>("TF_OpKernelConstruction_GetAttr" #Name "List", node, \
                         name, values, n, status);                             \
  }
TFPLUG_TESTING_NUMBER_ATTR(Int32, int32_t, TestAttr::kInt)
TFPLUG_TESTING_NUMBER_ATTR(Int64, int64_t, TestAttr::kInt)
TFPLUG_TESTING_NUMBER_ATTR(Float, float, TestAttr::kFloat)
TFPLUG_TESTING_NUMBER_ATTR(Bool, capi::TF_Bool, TestAttr::kBool)
TFPLUG_TESTING_NUMBER_ATTR(Type, capi::TF_DataType, TestAttr::kType)
#undef TFPLUG_TESTING_NUMBER_ATTR

TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* node, const char* name, char* value, size_t max,
    TF_Status* status) {
  const TestAttr* attr = FindAttr("TF_OpKernelConstruction_GetAttrString", node,
                                  name, TestAttr::kString, false, status);
  if (attr == nullptr) return;
  std::memcpy(value, attr->strings[0].data(),
              std::min(max, attr->strings[0].size()));
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* node, const char* name, char** values,
    size_t* lengths, int max, void* storage, size_t storage_size,
    TF_Status* status) {
  const TestAttr* attr = FindAttr("TF_OpKernelConstruction_GetAttrStringList",
                                  node, name, TestAttr::kString, true, status);
  if (attr == nullptr) return;
  char* to = static_cast<char*>(storage);
  const char* const end = to + storage_size;
  for (int i = 0; i < max; ++i) {
    const std::string& text = attr->strings[static_cast<size_t>(i)];
    if (to + text.size() > end) FakeWouldAbort("GetAttrStringList");
    std::memcpy(to, text.data(), text.size());
    values[i] = to;
    lengths[i] = text.size();
    to += text.size();
  }
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrTensor(
    TF_OpKernelConstruction* node, const char* name, TF_Tensor** value,
    TF_Status* status) {
  *value = nullptr;
  const TestAttr* attr = FindAttr("TF_OpKernelConstruction_GetAttrTensor", node,
                                  name, TestAttr::kTensor, false, status);
  if (attr != nullptr) *value = new TF_Tensor(attr->tensors[0]);
}
// Fails in the middle, with what was made before handed out, as core can.
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrTensorList(
    TF_OpKernelConstruction* node, const char* name, TF_Tensor** values,
    int max, TF_Status* status) {
  constexpr char kName[] = "TF_OpKernelConstruction_GetAttrTensorList";
  const TestAttr* attr =
      FindAttr(kName, node, name, TestAttr::kTensor, true, status);
  if (attr == nullptr) return;
  for (int i = 0; i < max; ++i) {
    if (Fault::Hits(kName, status)) return;
    values[i] = new TF_Tensor(attr->tensors[static_cast<size_t>(i)]);
  }
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpKernelConstruction_GetAttrTensorShape(
    TF_OpKernelConstruction* node, const char* name, int64_t* dims,
    size_t num_dims, TF_Status* status) {
  const TestAttr* attr = FindAttr("TF_OpKernelConstruction_GetAttrTensorShape",
                                  node, name, TestAttr::kShape, false, status);
  if (attr == nullptr) return;
  const PartialShape& shape = attr->shapes[0];
  if (!shape.is_fully_known() ||
      static_cast<size_t>(shape.rank()) != num_dims) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "not fully defined");
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) dims[i] = shape.dim(i);
}
TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer*
TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* node,
                                        const char* name, TF_Status* status) {
  const TestAttr* attr =
      FindAttr("TF_OpKernelConstruction_GetAttrFunction", node, name,
               TestAttr::kFunction, false, status);
  if (attr == nullptr) return nullptr;
  ++LiveBufferCount();
  auto* const buffer = new capi::TF_Buffer;
  FillBuffer(buffer, attr->NameAttrList(0));
  return buffer;
}

inline void InstallNodeFunctions(capi::Functions& core) {
#define TFPLUG_TESTING_INSTALL(name) \
  core.TF_OpKernelConstruction_##name = &TF_OpKernelConstruction_##name
  TFPLUG_TESTING_INSTALL(Failure);
  TFPLUG_TESTING_INSTALL(GetName);
  TFPLUG_TESTING_INSTALL(HasAttr);
  TFPLUG_TESTING_INSTALL(GetNodeDef);
  TFPLUG_TESTING_INSTALL(GetAttrSize);
  TFPLUG_TESTING_INSTALL(GetAttrInt32);
  TFPLUG_TESTING_INSTALL(GetAttrInt32List);
  TFPLUG_TESTING_INSTALL(GetAttrInt64);
  TFPLUG_TESTING_INSTALL(GetAttrInt64List);
  TFPLUG_TESTING_INSTALL(GetAttrFloat);
  TFPLUG_TESTING_INSTALL(GetAttrFloatList);
  TFPLUG_TESTING_INSTALL(GetAttrBool);
  TFPLUG_TESTING_INSTALL(GetAttrBoolList);
  TFPLUG_TESTING_INSTALL(GetAttrType);
  TFPLUG_TESTING_INSTALL(GetAttrTypeList);
  TFPLUG_TESTING_INSTALL(GetAttrString);
  TFPLUG_TESTING_INSTALL(GetAttrStringList);
  TFPLUG_TESTING_INSTALL(GetAttrTensor);
  TFPLUG_TESTING_INSTALL(GetAttrTensorList);
  TFPLUG_TESTING_INSTALL(GetAttrTensorShape);
  TFPLUG_TESTING_INSTALL(GetAttrFunction);
#undef TFPLUG_TESTING_INSTALL
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_NODE_H_
