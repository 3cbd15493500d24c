// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_CONSTRUCTION_H_
#define TFPLUG_KERNEL_CONSTRUCTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/data_type.h"
#include "tfplug/internal/core.h"
#include "tfplug/status.h"

namespace tfplug {

// The node that a kernel is made for (TF_OpKernelConstruction). Lives during
// the kernel's construction only.
class KernelConstruction {
 public:
  explicit KernelConstruction(abi::TF_OpKernelConstruction* construction)
      : construction_(construction) {}
  KernelConstruction(const KernelConstruction&) = delete;
  KernelConstruction& operator=(const KernelConstruction&) = delete;

  // The node's name.
  absl::string_view name() const {
    const abi::TF_StringView name =
        internal::core.TF_OpKernelConstruction_GetName(construction_);
    return absl::string_view(name.data, name.len);
  }

  bool HasAttr(const char* attr) const {
    OwnedStatus status;
    const bool has = internal::core.TF_OpKernelConstruction_HasAttr(
        construction_, attr, status.get());
    return has && status.ok();
  }

  // The attribute `attr` as T: bool, int32_t, int64_t, float, DataType,
  // std::string, or a std::vector of these. An attribute that is not there, or
  // is of another kind, is an error that names node and attribute.
  template <class T>
  absl::StatusOr<T> GetAttr(const char* attr) const {
    OwnedStatus status;
    T value = Get(attr, status.get(), static_cast<T*>(nullptr));
    if (!status.ok()) return Explain(attr, status.ToStatus());
    return value;
  }

  abi::TF_OpKernelConstruction* get() const { return construction_; }

 private:
  struct Sizes {
    int32_t list = 0;   // How many elements; -1: not a list.
    int32_t total = 0;  // How many bytes in all, of strings.
  };

  Sizes GetSizes(const char* attr, abi::TF_Status* status) const {
    Sizes sizes;
    internal::core.TF_OpKernelConstruction_GetAttrSize(
        construction_, attr, &sizes.list, &sizes.total, status);
    return sizes;
  }

  bool ok(abi::TF_Status* status) const {
    return internal::core.TF_GetCode(status) == abi::TF_OK;
  }

  absl::Status Explain(const char* attr, const absl::Status& status) const {
    return absl::Status(status.code(),
                        std::string("attribute '") + attr + "' of node '" +
                            std::string(name()) +
                            "': " + std::string(status.message()));
  }

  // One overload a type; the last argument only selects.
  bool Get(const char* attr, abi::TF_Status* status, bool*) const {
    unsigned char value = 0;
    internal::core.TF_OpKernelConstruction_GetAttrBool(construction_, attr,
                                                       &value, status);
    return value != 0;
  }
  int32_t Get(const char* attr, abi::TF_Status* status, int32_t*) const {
    int32_t value = 0;
    internal::core.TF_OpKernelConstruction_GetAttrInt32(construction_, attr,
                                                        &value, status);
    return value;
  }
  int64_t Get(const char* attr, abi::TF_Status* status, int64_t*) const {
    int64_t value = 0;
    internal::core.TF_OpKernelConstruction_GetAttrInt64(construction_, attr,
                                                        &value, status);
    return value;
  }
  float Get(const char* attr, abi::TF_Status* status, float*) const {
    float value = 0;
    internal::core.TF_OpKernelConstruction_GetAttrFloat(construction_, attr,
                                                        &value, status);
    return value;
  }
  DataType Get(const char* attr, abi::TF_Status* status, DataType*) const {
    abi::TF_DataType value = abi::TF_FLOAT;
    internal::core.TF_OpKernelConstruction_GetAttrType(construction_, attr,
                                                       &value, status);
    return static_cast<DataType>(value);
  }
  std::string Get(const char* attr, abi::TF_Status* status,
                  std::string*) const {
    const Sizes sizes = GetSizes(attr, status);
    if (!ok(status) || sizes.total < 0) return NotA("string", status);
    std::string value(static_cast<size_t>(sizes.total), '\0');
    internal::core.TF_OpKernelConstruction_GetAttrString(
        construction_, attr, value.data(), value.size(), status);
    return value;
  }

  template <class T>
  std::vector<T> Get(const char* attr, abi::TF_Status* status,
                     std::vector<T>*) const {
    const Sizes sizes = GetSizes(attr, status);
    if (!ok(status)) return {};
    if (sizes.list < 0) {
      NotA("list", status);
      return {};
    }
    return GetList(attr, status, sizes, static_cast<T*>(nullptr));
  }

  std::string NotA(const char* kind, abi::TF_Status* status) const {
    if (ok(status)) {
      const std::string message = std::string("is not a ") + kind;
      internal::core.TF_SetStatus(status, abi::TF_INVALID_ARGUMENT,
                                  message.c_str());
    }
    return "";
  }

  std::vector<int32_t> GetList(const char* attr, abi::TF_Status* status,
                               Sizes sizes, int32_t*) const {
    std::vector<int32_t> values(static_cast<size_t>(sizes.list));
    internal::core.TF_OpKernelConstruction_GetAttrInt32List(
        construction_, attr, values.data(), sizes.list, status);
    return values;
  }
  std::vector<int64_t> GetList(const char* attr, abi::TF_Status* status,
                               Sizes sizes, int64_t*) const {
    std::vector<int64_t> values(static_cast<size_t>(sizes.list));
    internal::core.TF_OpKernelConstruction_GetAttrInt64List(
        construction_, attr, values.data(), sizes.list, status);
    return values;
  }
  std::vector<float> GetList(const char* attr, abi::TF_Status* status,
                             Sizes sizes, float*) const {
    std::vector<float> values(static_cast<size_t>(sizes.list));
    internal::core.TF_OpKernelConstruction_GetAttrFloatList(
        construction_, attr, values.data(), sizes.list, status);
    return values;
  }
  std::vector<bool> GetList(const char* attr, abi::TF_Status* status,
                            Sizes sizes, bool*) const {
    std::vector<unsigned char> values(static_cast<size_t>(sizes.list));
    internal::core.TF_OpKernelConstruction_GetAttrBoolList(
        construction_, attr, values.data(), sizes.list, status);
    return std::vector<bool>(values.begin(), values.end());
  }
  std::vector<DataType> GetList(const char* attr, abi::TF_Status* status,
                                Sizes sizes, DataType*) const {
    std::vector<abi::TF_DataType> values(static_cast<size_t>(sizes.list));
    internal::core.TF_OpKernelConstruction_GetAttrTypeList(
        construction_, attr, values.data(), sizes.list, status);
    std::vector<DataType> types;
    for (abi::TF_DataType value : values) {
      types.push_back(static_cast<DataType>(value));
    }
    return types;
  }
  std::vector<std::string> GetList(const char* attr, abi::TF_Status* status,
                                   Sizes sizes, std::string*) const {
    const size_t count = static_cast<size_t>(sizes.list);
    std::vector<char*> starts(count);
    std::vector<size_t> lengths(count);
    std::vector<char> storage(static_cast<size_t>(sizes.total));
    internal::core.TF_OpKernelConstruction_GetAttrStringList(
        construction_, attr, starts.data(), lengths.data(), sizes.list,
        storage.data(), storage.size(), status);
    std::vector<std::string> values;
    if (!ok(status)) return values;
    for (size_t i = 0; i < count; ++i) {
      values.emplace_back(starts[i], lengths[i]);
    }
    return values;
  }

  abi::TF_OpKernelConstruction* const construction_;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_CONSTRUCTION_H_
