// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_CONSTRUCTED_NODE_H_
#define TFPLUG_RUNTIME_CONSTRUCTED_NODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/abi/functions.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"

#pragma GCC visibility push(hidden)

// TensorFlow's half of the construction of a kernel: the functions
// TF_OpKernelConstruction_... for a NodeDef. The kernels of a region are
// constructed with them (sub_node.h), and those of unit tests (testing/).
namespace tfplug::runtime {

// The node that a kernel is constructed for.
class ConstructedNode {
 public:
  virtual ~ConstructedNode() = default;

  virtual absl::string_view name() const = 0;
  // Returns the serialized NodeDef.
  virtual std::string NodeDef() const = 0;
  // Returns the serialized AttrValue of an attribute, or nothing.
  virtual std::optional<std::string> FindAttr(absl::string_view attr) const = 0;
  // Returns a new tensor in host memory with the value of a serialized
  // TensorProto, or null if it has none.
  virtual capi::TF_Tensor* MakeTensor(absl::string_view tensor_proto) const {
    const auto constant = Constant::Parse(tensor_proto);
    if (!constant.ok()) return nullptr;
    const std::string bytes = constant->GetBytes();
    capi::TF_Tensor* const tensor = tensorflow().TF_AllocateTensor(
        static_cast<capi::TF_DataType>(constant->dtype()),
        constant->shape().dims().data(), constant->shape().rank(),
        bytes.size());
    if (tensor != nullptr && !bytes.empty()) {
      std::memcpy(tensorflow().TF_TensorData(tensor), bytes.data(),
                  bytes.size());
    }
    return tensor;
  }
  // Is called by each function: returns true, with an error in the status, if
  // the call must fail.
  virtual bool FailsAt(const char* /*function*/, capi::TF_Status*) const {
    return false;
  }
  // Returns whether the attribute has a type such as "list(int)", which the
  // bytes of an empty list do not tell.
  virtual bool HasType(absl::string_view /*attr*/,
                       const std::string& /*type*/) const {
    return true;
  }
  // Returns the functions with which results are made.
  virtual const capi::Functions& tensorflow() const = 0;

  void Fail(capi::TF_Status* status, capi::TF_Code code,
            const std::string& message) const {
    tensorflow().TF_SetStatus(status, code, message.c_str());
  }
  void Succeed(capi::TF_Status* status) const { Fail(status, capi::TF_OK, ""); }

  // Returns the serialized AttrValue; otherwise nothing, with an error in the
  // status.
  std::optional<std::string> Find(const char* function, const char* attr,
                                  capi::TF_Status* status,
                                  capi::TF_Code missing) const {
    if (FailsAt(function, status)) return std::nullopt;
    auto value = FindAttr(attr);
    if (!value.has_value()) {
      Fail(status, missing, "No attr named '" + std::string(attr) + "'");
    }
    return value;
  }
  // Does the same as Find for a value that has been decoded.
  template <class T>
  std::optional<T> Read(const char* function, const char* attr,
                        capi::TF_Status* status) const {
    const auto value = Find(function, attr, status, capi::TF_NOT_FOUND);
    if (!value.has_value()) return std::nullopt;
    std::optional<T> decoded = graph::AttrCodec<T>::Decode(*value);
    if (!decoded.has_value() ||
        !HasType(attr, graph::AttrCodec<T>::TypeName())) {
      FailType(status);
      return std::nullopt;
    }
    Succeed(status);
    return decoded;
  }
  void FailType(capi::TF_Status* status) const {
    Fail(status, capi::TF_INVALID_ARGUMENT,
         "AttrValue had value with another type");
  }
};

// ---- Numbers and types -------------------------------------------------------

template <class T, class C>
void GetAttr(const char* function, const ConstructedNode& node,
             const char* attr, C* to, capi::TF_Status* status) {
  const auto value = node.Read<T>(function, attr, status);
  if (!value.has_value()) return;
  if constexpr (std::is_same_v<C, int32_t>) {
    if (*value < std::numeric_limits<int32_t>::min() ||
        *value > std::numeric_limits<int32_t>::max()) {
      return node.Fail(status, capi::TF_INVALID_ARGUMENT,
                       "Attr has a value out of range for an int32");
    }
  }
  *to = static_cast<C>(*value);
}
// Reads at most `max` elements. Narrows integers without a check, unlike GetAttr,
// as TensorFlow does.
template <class T, class C>
void GetAttrList(const char* function, const ConstructedNode& node,
                 const char* attr, C* to, int max, capi::TF_Status* status) {
  const auto list = node.Read<std::vector<T>>(function, attr, status);
  if (!list.has_value()) return;
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<C>((*list)[i]);
}

#define TFPLUG_INTERNAL_GET_ATTR(Name, T, C)                                   \
  inline void GetAttr##Name(const ConstructedNode& node, const char* attr,     \
                            C* value, capi::TF_Status* status) {               \
    GetAttr<T>("TF_OpKernelConstruction_GetAttr" #Name, node, attr, value,     \
               status);                                                        \
  }                                                                            \
  inline void GetAttr##Name##List(const ConstructedNode& node,                 \
                                  const char* attr, C* values, int max,        \
                                  capi::TF_Status* status) {                   \
    GetAttrList<T>("TF_OpKernelConstruction_GetAttr" #Name "List", node, attr, \
                   values, max, status);                                       \
  }
TFPLUG_INTERNAL_GET_ATTR(Bool, bool, capi::TF_Bool)
TFPLUG_INTERNAL_GET_ATTR(Int32, int64_t, int32_t)
TFPLUG_INTERNAL_GET_ATTR(Int64, int64_t, int64_t)
TFPLUG_INTERNAL_GET_ATTR(Float, float, float)
TFPLUG_INTERNAL_GET_ATTR(Type, DataType, capi::TF_DataType)
#undef TFPLUG_INTERNAL_GET_ATTR

// ---- Strings, tensors, shapes and functions ----------------------------------

inline void GetAttrString(const ConstructedNode& node, const char* attr,
                          char* value, size_t max_length,
                          capi::TF_Status* status) {
  const auto text = node.Read<std::string>(
      "TF_OpKernelConstruction_GetAttrString", attr, status);
  if (!text.has_value()) return;
  std::memcpy(value, text->data(), std::min(max_length, text->size()));
}
inline void GetAttrStringList(const ConstructedNode& node, const char* attr,
                              char** values, size_t* lengths, int max,
                              void* storage, size_t storage_size,
                              capi::TF_Status* status) {
  const auto list = node.Read<std::vector<std::string>>(
      "TF_OpKernelConstruction_GetAttrStringList", attr, status);
  if (!list.has_value()) return;
  char* to = static_cast<char*>(storage);
  const char* const end = to + storage_size;
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& text = (*list)[i];
    if (text.size() > static_cast<size_t>(end - to)) {
      return node.Fail(
          status, capi::TF_INVALID_ARGUMENT,
          "Not enough storage to hold the requested list of strings");
    }
    std::memcpy(to, text.data(), text.size());
    values[i] = to;
    lengths[i] = text.size();
    to += text.size();
  }
}

inline constexpr int kTensorField = 8;

inline void GetAttrTensor(const ConstructedNode& node, const char* attr,
                          capi::TF_Tensor** value, capi::TF_Status* status) {
  *value = nullptr;
  const auto bytes = node.Find("TF_OpKernelConstruction_GetAttrTensor", attr,
                               status, capi::TF_NOT_FOUND);
  if (!bytes.has_value()) return;
  const auto tensor = internal::AttrField(*bytes, kTensorField);
  if (tensor.has_value()) *value = node.MakeTensor(*tensor);
  if (*value == nullptr) return node.FailType(status);
  node.Succeed(status);
}
// After a failure in the middle, the caller owns the tensors read before it.
inline void GetAttrTensorList(const ConstructedNode& node, const char* attr,
                              capi::TF_Tensor** values, int max,
                              capi::TF_Status* status) {
  constexpr char kName[] = "TF_OpKernelConstruction_GetAttrTensorList";
  const auto bytes = node.Find(kName, attr, status, capi::TF_NOT_FOUND);
  if (!bytes.has_value()) return;
  const auto list = internal::AttrListField(*bytes, kTensorField);
  if (!list.has_value() || !node.HasType(attr, "list(tensor)")) {
    return node.FailType(status);
  }
  const auto count = std::min(static_cast<size_t>(max), list->size());
  for (size_t i = 0; i < count; ++i) {
    if (node.FailsAt(kName, status)) return;
    values[i] = node.MakeTensor((*list)[i]);
    if (values[i] == nullptr) return node.FailType(status);
  }
  node.Succeed(status);
}

inline void GetAttrTensorShape(const ConstructedNode& node, const char* attr,
                               int64_t* dims, size_t num_dims,
                               capi::TF_Status* status) {
  const auto shape = node.Read<PartialShape>(
      "TF_OpKernelConstruction_GetAttrTensorShape", attr, status);
  if (!shape.has_value()) return;
  if (!shape->is_fully_known() ||
      static_cast<size_t>(shape->rank()) != num_dims) {
    return node.Fail(status, capi::TF_INVALID_ARGUMENT, "not fully defined");
  }
  for (int i = 0; i < shape->rank(); ++i) dims[i] = shape->dim(i);
}

inline capi::TF_Buffer* MakeBuffer(const ConstructedNode& node,
                                   absl::string_view bytes) {
  return node.tensorflow().TF_NewBufferFromString(bytes.data(), bytes.size());
}
inline capi::TF_Buffer* GetAttrFunction(const ConstructedNode& node,
                                        const char* attr,
                                        capi::TF_Status* status) {
  const auto bytes = node.Find("TF_OpKernelConstruction_GetAttrFunction", attr,
                               status, capi::TF_NOT_FOUND);
  if (!bytes.has_value()) return nullptr;
  const auto function = internal::AttrField(*bytes, internal::kFunctionField);
  if (!function.has_value()) {
    node.FailType(status);
    return nullptr;
  }
  node.Succeed(status);
  return MakeBuffer(node, *function);
}

// Does not set the status on success. A size that does not apply is -1; the
// size of an empty list is 0, whatever its type.
inline void GetAttrSize(const ConstructedNode& node, const char* attr,
                        int32_t* list_size, int32_t* total_size,
                        capi::TF_Status* status) {
  *list_size = *total_size = -1;
  const auto bytes = node.Find("TF_OpKernelConstruction_GetAttrSize", attr,
                               status, capi::TF_INVALID_ARGUMENT);
  if (!bytes.has_value()) return;
  const auto add = [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      *total_size =
          std::max(*total_size, 0) + static_cast<int32_t>(value.size());
    } else if (value.rank() >= 0) {
      *total_size = std::max(*total_size, 0) + value.rank();
    }
  };
  if (auto text = graph::AttrCodec<std::string>::Decode(*bytes)) add(*text);
  if (auto shape = graph::AttrCodec<PartialShape>::Decode(*bytes)) {
    *total_size = shape->rank();
  }
  const auto list = internal::AttrField(*bytes, internal::kListField);
  if (!list.has_value()) return;
  internal::WireReader element(*list);
  if (!element.Next()) {
    *list_size = 0;
    return;
  }
  const auto count = [&](auto like) {
    const auto values =
        graph::AttrCodec<std::vector<decltype(like)>>::Decode(*bytes);
    if (!values.has_value()) return;
    *list_size = static_cast<int32_t>(values->size());
    if constexpr (std::is_same_v<decltype(like), std::string> ||
                  std::is_same_v<decltype(like), PartialShape>) {
      for (const auto& value : *values) add(value);
    }
  };
  switch (element.number()) {
    case 2:
      return count(std::string());
    case 3:
      return count(int64_t{});
    case 4:
      return count(float{});
    case 5:
      return count(bool{});
    case 6:
      return count(DataType{});
    case internal::kShapeInListField:
      return count(PartialShape());
    default:  // Tensors and functions.
      *list_size = 1;
      while (element.Next()) ++*list_size;
  }
}

inline bool HasAttr(const ConstructedNode& node, const char* attr,
                    capi::TF_Status*) {
  return node.FindAttr(attr).has_value();
}
inline capi::TF_StringView GetName(const ConstructedNode& node) {
  return {node.name().data(), node.name().size()};
}
inline capi::TF_Buffer* GetNodeDef(const ConstructedNode& node,
                                   capi::TF_Status* status) {
  if (node.FailsAt("TF_OpKernelConstruction_GetNodeDef", status)) {
    return nullptr;
  }
  node.Succeed(status);
  return MakeBuffer(node, node.NodeDef());
}

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_CONSTRUCTED_NODE_H_
