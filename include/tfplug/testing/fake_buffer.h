// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_BUFFER_H_
#define TFPLUG_TESTING_FAKE_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/fake_node.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

using capi::TF_Buffer;

TFPLUG_TESTING_CORE_FUNCTION TF_Buffer* TF_NewBuffer() {
  return new TF_Buffer{nullptr, 0, nullptr};
}
TFPLUG_TESTING_CORE_FUNCTION TF_Buffer* TF_NewBufferFromString(const void* data,
                                                               size_t length) {
  void* const copy = std::malloc(length + 1);
  if (copy == nullptr) return nullptr;
  if (length > 0) std::memcpy(copy, data, length);
  return new TF_Buffer{copy, length, [](void* copy, size_t) { free(copy); }};
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  delete buffer;
}
TFPLUG_TESTING_CORE_FUNCTION TF_Buffer TF_GetBuffer(TF_Buffer* buffer) {
  return *buffer;
}

// One scalar as a field of tensorflow.AttrValue, or of its list.
template <class T>
void AppendAttrScalar(std::string& to, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    internal::AppendField(to, 2, value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    internal::AppendField(to, 3, static_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, float>) {
    internal::AppendVarint(to, 4 << 3 | 5);
    to.append(reinterpret_cast<const char*>(&value), sizeof(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    internal::AppendField(to, 5, uint64_t{value});
  } else {
    internal::AppendField(to, 6, static_cast<uint64_t>(value));
  }
}

// A serialised tensorflow.NodeDef.
inline std::string SerializeNodeDef(const Node& node) {
  std::string out;
  internal::AppendField(out, 1, node.name);
  internal::AppendField(out, 2, node.op);
  for (const auto& [name, attr] : node.attrs) {
    std::string value;
    std::visit(
        [&value](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::vector<bool>>) {
            std::string list;
            for (const bool element : v) AppendAttrScalar(list, element);
            internal::AppendField(value, 1, list);
          } else if constexpr (std::is_same_v<T, std::string> ||
                               !std::is_class_v<T>) {
            AppendAttrScalar(value, v);
          } else {
            std::string list;
            for (const auto& element : v) AppendAttrScalar(list, element);
            internal::AppendField(value, 1, list);
          }
        },
        attr);
    std::string entry;
    internal::AppendField(entry, 1, name);
    internal::AppendField(entry, 2, value);
    internal::AppendField(out, 5, entry);
  }
  return out;
}

TFPLUG_TESTING_CORE_FUNCTION TF_Buffer* TF_OpKernelConstruction_GetNodeDef(
    TF_OpKernelConstruction* construction, TF_Status* status) {
  TF_SetStatus(status, capi::TF_OK, "");
  const std::string node_def = SerializeNodeDef(construction->node);
  return TF_NewBufferFromString(node_def.data(), node_def.size());
}

inline void InstallBufferFunctions(capi::Functions& core) {
  core.TF_NewBuffer = &TF_NewBuffer;
  core.TF_NewBufferFromString = &TF_NewBufferFromString;
  core.TF_DeleteBuffer = &TF_DeleteBuffer;
  core.TF_GetBuffer = &TF_GetBuffer;
  core.TF_OpKernelConstruction_GetNodeDef = &TF_OpKernelConstruction_GetNodeDef;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_BUFFER_H_
