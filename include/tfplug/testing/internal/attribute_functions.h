// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_ATTRIBUTE_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_ATTRIBUTE_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/runtime/constructed_node.h"
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

// The node of a construction, for the functions of runtime/constructed_node.h.
class FakeConstruction final : public runtime::ConstructedNode {
 public:
  explicit FakeConstruction(const TF_OpKernelConstruction* construction)
      : node_(construction->node) {}

  absl::string_view name() const override { return node_.name; }
  std::string NodeDef() const override { return SerializeNodeDef(node_); }
  std::optional<std::string> FindAttr(absl::string_view attr) const override {
    const auto found = node_.attrs.find(std::string(attr));
    if (found == node_.attrs.end()) return std::nullopt;
    std::string value;
    std::visit([&](const auto& v) { AppendAttrValue(value, v); },
               found->second);
    return value;
  }
  bool FailsAt(const char* function, TF_Status* status) const override {
    return Fault::Hits(function, status);
  }
  bool HasType(absl::string_view attr, const std::string& type) const override {
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::vector<TF_Tensor>>) {
            return type == "list(tensor)";
          } else if constexpr (std::is_same_v<T, TF_Tensor>) {
            return type == "tensor";
          } else {
            return graph::AttrCodec<T>::TypeName() == type;
          }
        },
        node_.attrs.at(std::string(attr)));
  }
  const capi::Functions& tensorflow() const override {
    static const capi::Functions functions = [] {
      capi::Functions used;
      used.TF_SetStatus = &TF_SetStatus;
      used.TF_AllocateTensor = [](TF_DataType dtype, const int64_t* dims,
                                  int num_dims, size_t size) {
        return new TF_Tensor(dtype, {dims, dims + num_dims},
                             TensorBuffer::OnHost(size));
      };
      used.TF_TensorData = &TF_TensorData;
      used.TF_NewBufferFromString = [](const void* bytes, size_t size) {
        return MakeBuffer({static_cast<const char*>(bytes), size});
      };
      return used;
    }();
    return functions;
  }

 private:
  const Node& node_;
};

#define TFPLUG_FAKE_GET_ATTR(Name, C)                                          \
  TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name(             \
      TF_OpKernelConstruction* construction, const char* name, C* value,       \
      TF_Status* status) {                                                     \
    runtime::GetAttr##Name(FakeConstruction(construction), name, value,        \
                           status);                                            \
  }                                                                            \
  TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttr##Name##List(       \
      TF_OpKernelConstruction* construction, const char* name, C* values,      \
      int max, TF_Status* status) {                                            \
    runtime::GetAttr##Name##List(FakeConstruction(construction), name, values, \
                                 max, status);                                 \
  }
TFPLUG_FAKE_GET_ATTR(Bool, capi::TF_Bool)
TFPLUG_FAKE_GET_ATTR(Int32, int32_t)
TFPLUG_FAKE_GET_ATTR(Int64, int64_t)
TFPLUG_FAKE_GET_ATTR(Float, float)
TFPLUG_FAKE_GET_ATTR(Type, capi::TF_DataType)
TFPLUG_FAKE_GET_ATTR(Tensor, TF_Tensor*)
#undef TFPLUG_FAKE_GET_ATTR

TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* construction, const char* name, char* value,
    size_t max_length, TF_Status* status) {
  runtime::GetAttrString(FakeConstruction(construction), name, value,
                         max_length, status);
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* construction, const char* name, char** values,
    size_t* lengths, int max, void* storage, size_t storage_size,
    TF_Status* status) {
  runtime::GetAttrStringList(FakeConstruction(construction), name, values,
                             lengths, max, storage, storage_size, status);
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrTensorShape(
    TF_OpKernelConstruction* construction, const char* name, int64_t* dims,
    size_t num_dims, TF_Status* status) {
  runtime::GetAttrTensorShape(FakeConstruction(construction), name, dims,
                              num_dims, status);
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(
    TF_OpKernelConstruction* construction, const char* name,
    TF_Status* status) {
  return runtime::GetAttrFunction(FakeConstruction(construction), name, status);
}
TFPLUG_FAKE_FUNCTION void TF_OpKernelConstruction_GetAttrSize(
    TF_OpKernelConstruction* construction, const char* name, int32_t* list_size,
    int32_t* total_size, TF_Status* status) {
  runtime::GetAttrSize(FakeConstruction(construction), name, list_size,
                       total_size, status);
}
TFPLUG_FAKE_FUNCTION bool TF_OpKernelConstruction_HasAttr(
    TF_OpKernelConstruction* construction, const char* name,
    TF_Status* status) {
  return runtime::HasAttr(FakeConstruction(construction), name, status);
}
TFPLUG_FAKE_FUNCTION capi::TF_StringView TF_OpKernelConstruction_GetName(
    TF_OpKernelConstruction* construction) {
  return runtime::GetName(FakeConstruction(construction));
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_OpKernelConstruction_GetNodeDef(
    TF_OpKernelConstruction* construction, TF_Status* status) {
  return runtime::GetNodeDef(FakeConstruction(construction), status);
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
