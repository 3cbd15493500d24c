// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ATTR_READER_H_
#define TFPLUG_KERNEL_INTERNAL_ATTR_READER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/kernel/internal/node_attrs.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Reads an attribute as a T: one specialization per type, with the kind's name
// for error messages (kKind) and the function Read. To save compile time, Read
// is a template whose types all depend on its parameter, which is always
// NodeAttrs: a file compiles only the functions that it calls. Shapes and
// functions are in attr_reader_proto.h.
template <class Attrs, class T>
using Dependent = std::enable_if_t<sizeof(Attrs) != 0, T>;
template <class Attrs, class T>
using ReadResult = absl::StatusOr<Dependent<Attrs, T>>;

template <class T>
struct AttrReader {
  static constexpr char kKind[] = "";
  static absl::StatusOr<T> Read(const NodeAttrs&, const char*) {
    static_assert(sizeof(T) == 0,
                  "tfplug: an attribute can be read as bool, int32_t, int64_t, "
                  "float, DataType, std::string, Shape, PartialShape, Tensor, "
                  "Function, or a std::vector of one of these");
    return absl::InternalError("");
  }
};

// Read an attribute that is a number or a list of numbers with the C function
// `one` or `list`, whose values have the type C.
template <class T, class C, auto one>
absl::StatusOr<T> ReadNumber(const NodeAttrs& attrs, const char* attr) {
  C value{};
  absl::Status status = attrs.Call(one, attr, &value);
  if (!status.ok()) return status;
  return static_cast<T>(value);
}
template <class T, class C, auto list>
absl::StatusOr<std::vector<T>> ReadNumbers(const NodeAttrs& attrs,
                                           const char* attr) {
  const auto sizes = attrs.GetListSizes(attr);
  if (!sizes.ok()) return sizes.status();
  const auto size = static_cast<size_t>(sizes->list);
  const auto values = std::make_unique<C[]>(size + 1);
  absl::Status status = attrs.Call(list, attr, values.get(), sizes->list);
  if (!status.ok()) return status;
  std::vector<T> result(size);
  for (size_t i = 0; i < size; ++i) result[i] = static_cast<T>(values[i]);
  return result;
}

#define TFPLUG_INTERNAL_ATTR_READER(T, C, kind, Function_)                   \
  template <>                                                                \
  struct AttrReader<T> {                                                     \
    static constexpr char kKind[] = kind;                                    \
    template <class Attrs>                                                   \
    static ReadResult<Attrs, T> Read(const Attrs& attrs, const char* attr) { \
      return ReadNumber<T, C, &CApi::Function_>(attrs, attr);                \
    }                                                                        \
  };                                                                         \
  template <>                                                                \
  struct AttrReader<std::vector<T>> {                                        \
    static constexpr char kKind[] = "list(" kind ")";                        \
    template <class Attrs>                                                   \
    static ReadResult<Attrs, std::vector<T>> Read(const Attrs& attrs,        \
                                                  const char* attr) {        \
      return ReadNumbers<T, C, &CApi::Function_##List>(attrs, attr);         \
    }                                                                        \
  }
TFPLUG_INTERNAL_ATTR_READER(bool, capi::TF_Bool, "bool",
                            TF_OpKernelConstruction_GetAttrBool);
TFPLUG_INTERNAL_ATTR_READER(int64_t, int64_t, "int",
                            TF_OpKernelConstruction_GetAttrInt64);
TFPLUG_INTERNAL_ATTR_READER(float, float, "float",
                            TF_OpKernelConstruction_GetAttrFloat);
TFPLUG_INTERNAL_ATTR_READER(DataType, capi::TF_DataType, "type",
                            TF_OpKernelConstruction_GetAttrType);
#undef TFPLUG_INTERNAL_ATTR_READER

template <>
struct AttrReader<int32_t> {
  static constexpr char kKind[] = "int32";
  template <class Attrs>
  static ReadResult<Attrs, int32_t> Read(const Attrs& attrs, const char* attr) {
    return ReadNumber<int32_t, int32_t,
                      &CApi::TF_OpKernelConstruction_GetAttrInt32>(attrs, attr);
  }
};
// TensorFlow silently truncates elements that do not fit into 32 bits, so the
// values are checked first.
template <>
struct AttrReader<std::vector<int32_t>> {
  static constexpr char kKind[] = "list(int32)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<int32_t>> Read(const Attrs& attrs,
                                                      const char* attr) {
    const auto wide = AttrReader<std::vector<int64_t>>::Read(attrs, attr);
    if (!wide.ok()) return wide.status();
    for (int64_t value : *wide) {
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(std::to_string(value) +
                                          " does not fit into 32 bits");
      }
    }
    return ReadNumbers<int32_t, int32_t,
                       &CApi::TF_OpKernelConstruction_GetAttrInt32List>(attrs,
                                                                        attr);
  }
};

template <>
struct AttrReader<std::string> {
  static constexpr char kKind[] = "string";
  template <class Attrs>
  static ReadResult<Attrs, std::string> Read(const Attrs& attrs,
                                             const char* attr) {
    const auto sizes = attrs.GetSizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Attrs, std::string> value(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0, '\0');
    absl::Status status =
        attrs.Call(&CApi::TF_OpKernelConstruction_GetAttrString, attr,
                   value.data(), value.size());
    if (!status.ok()) return status;
    return value;
  }
};
template <>
struct AttrReader<std::vector<std::string>> {
  static constexpr char kKind[] = "list(string)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<std::string>> Read(const Attrs& attrs,
                                                          const char* attr) {
    const auto sizes = attrs.GetListSizes(attr);
    if (!sizes.ok()) return sizes.status();
    const auto n = static_cast<size_t>(sizes->list);
    Dependent<Attrs, std::vector<char*>> values(n + 1);
    Dependent<Attrs, std::vector<size_t>> lengths(n + 1);
    Dependent<Attrs, std::string> storage(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0, '\0');
    absl::Status status =
        attrs.Call(&CApi::TF_OpKernelConstruction_GetAttrStringList, attr,
                   values.data(), lengths.data(), sizes->list,
                   static_cast<void*>(storage.data()), storage.size());
    if (!status.ok()) return status;
    Dependent<Attrs, std::vector<std::string>> result;
    for (size_t i = 0; i < n; ++i) result.emplace_back(values[i], lengths[i]);
    return result;
  }
};

// Tensors, which are in host memory. Since 2.8.
template <>
struct AttrReader<Tensor> {
  static constexpr char kKind[] = "tensor";
  template <class Attrs>
  static ReadResult<Attrs, Tensor> Read(const Attrs& attrs, const char* attr) {
    capi::TF_Tensor* raw = nullptr;
    absl::Status status =
        attrs.Call(&CApi::TF_OpKernelConstruction_GetAttrTensor, attr, &raw);
    Tensor tensor(raw);
    if (!status.ok()) return status;
    if (!tensor) return absl::InternalError("TensorFlow returned no tensor");
    return tensor;
  }
};
template <>
struct AttrReader<std::vector<Tensor>> {
  static constexpr char kKind[] = "list(tensor)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<Tensor>> Read(const Attrs& attrs,
                                                     const char* attr) {
    const auto sizes = attrs.GetListSizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Attrs, std::vector<capi::TF_Tensor*>> raw(
        static_cast<size_t>(sizes->list) + 1);
    absl::Status status =
        attrs.Call(&CApi::TF_OpKernelConstruction_GetAttrTensorList, attr,
                   raw.data(), sizes->list);
    raw.pop_back();
    // Some of the tensors may exist even after a failure.
    Dependent<Attrs, std::vector<Tensor>> tensors;
    for (capi::TF_Tensor* tensor : raw) tensors.emplace_back(tensor);
    if (!status.ok()) return status;
    return tensors;
  }
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_ATTR_READER_H_
