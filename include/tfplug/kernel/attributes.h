// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_ATTRIBUTES_H_
#define TFPLUG_KERNEL_ATTRIBUTES_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/function.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/shape.h"
#include "tfplug/kernel/internal/construction_attrs.h"
#include "tfplug/kernel/tensor.h"

namespace tfplug {

namespace internal {

// How an attribute is read as a T: kKind, the words for it in an error, and
// Read. One specialisation a type. Read is a template (Source is AttrSource) so
// that a file's compilation pays for the types that it reads, not for all;
// its types depend on Source for the same.
template <class Source, class T>
using Dependent = std::enable_if_t<sizeof(Source) != 0, T>;
template <class Source, class T>
using ReadResult = absl::StatusOr<Dependent<Source, T>>;

template <class T>
struct AttrReader {
  static constexpr char kKind[] = "";
  static absl::StatusOr<T> Read(const AttrSource&, const char*) {
    static_assert(sizeof(T) == 0,
                  "tfplug: an attribute is read as bool, int32_t, int64_t, "
                  "float, DataType, std::string, Shape, PartialShape, Tensor, "
                  "Function, or a std::vector of one of these");
    return absl::InternalError("");
  }
};

// Scalars and lists that core gives as numbers: C is the number's type in C,
// `one` and `list` are the functions.
template <class T, class C, auto one>
absl::StatusOr<T> ReadNumber(const AttrSource& source, const char* attr) {
  C value{};
  absl::Status status = source.Call(one, attr, &value);
  if (!status.ok()) return status;
  return static_cast<T>(value);
}
template <class T, class C, auto list>
absl::StatusOr<std::vector<T>> ReadNumbers(const AttrSource& source,
                                           const char* attr) {
  const auto sizes = source.ListSizes(attr);
  if (!sizes.ok()) return sizes.status();
  const auto size = static_cast<size_t>(sizes->list);
  const auto values = std::make_unique<C[]>(size + 1);
  absl::Status status = source.Call(list, attr, values.get(), sizes->list);
  if (!status.ok()) return status;
  std::vector<T> result(size);
  for (size_t i = 0; i < size; ++i) result[i] = static_cast<T>(values[i]);
  return result;
}

#define TFPLUG_INTERNAL_ATTR_READER(T, C, kind, Function_)                 \
  template <>                                                              \
  struct AttrReader<T> {                                                   \
    static constexpr char kKind[] = kind;                                  \
    template <class Source>                                                \
    static ReadResult<Source, T> Read(const Source& s, const char* attr) { \
      return ReadNumber<T, C, &CApi::Function_>(s, attr);                  \
    }                                                                      \
  };                                                                       \
  template <>                                                              \
  struct AttrReader<std::vector<T>> {                                      \
    static constexpr char kKind[] = "list(" kind ")";                      \
    template <class Source>                                                \
    static ReadResult<Source, std::vector<T>> Read(const Source& s,        \
                                                   const char* attr) {     \
      return ReadNumbers<T, C, &CApi::Function_##List>(s, attr);           \
    }                                                                      \
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
  static constexpr char kKind[] = "int of 32 bits";
  template <class Source>
  static ReadResult<Source, int32_t> Read(const Source& s, const char* attr) {
    return ReadNumber<int32_t, int32_t,
                      &CApi::TF_OpKernelConstruction_GetAttrInt32>(s, attr);
  }
};
// Core cuts the elements of a list down to 32 bits without a word, but only
// where one does not fit; so that is looked at first.
template <>
struct AttrReader<std::vector<int32_t>> {
  static constexpr char kKind[] = "list(int of 32 bits)";
  template <class Source>
  static ReadResult<Source, std::vector<int32_t>> Read(const Source& s,
                                                       const char* attr) {
    const auto wide = AttrReader<std::vector<int64_t>>::Read(s, attr);
    if (!wide.ok()) return wide.status();
    for (int64_t value : *wide) {
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(std::to_string(value) +
                                          " does not fit");
      }
    }
    return ReadNumbers<int32_t, int32_t,
                       &CApi::TF_OpKernelConstruction_GetAttrInt32List>(s,
                                                                        attr);
  }
};

template <>
struct AttrReader<std::string> {
  static constexpr char kKind[] = "string";
  template <class Source>
  static ReadResult<Source, std::string> Read(const Source& s,
                                              const char* attr) {
    const auto sizes = s.Sizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Source, std::string> value(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0, '\0');
    absl::Status status = s.Call(&CApi::TF_OpKernelConstruction_GetAttrString,
                                 attr, value.data(), value.size());
    if (!status.ok()) return status;
    return value;
  }
};
template <>
struct AttrReader<std::vector<std::string>> {
  static constexpr char kKind[] = "list(string)";
  template <class Source>
  static ReadResult<Source, std::vector<std::string>> Read(const Source& s,
                                                           const char* attr) {
    const auto sizes = s.ListSizes(attr);
    if (!sizes.ok()) return sizes.status();
    const auto n = static_cast<size_t>(sizes->list);
    Dependent<Source, std::vector<char*>> values(n + 1);
    Dependent<Source, std::vector<size_t>> lengths(n + 1);
    Dependent<Source, std::string> storage(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0, '\0');
    absl::Status status =
        s.Call(&CApi::TF_OpKernelConstruction_GetAttrStringList, attr,
               values.data(), lengths.data(), sizes->list,
               static_cast<void*>(storage.data()), storage.size());
    if (!status.ok()) return status;
    Dependent<Source, std::vector<std::string>> result;
    for (size_t i = 0; i < n; ++i) result.emplace_back(values[i], lengths[i]);
    return result;
  }
};

// Host tensors. Since 2.8.
template <>
struct AttrReader<Tensor> {
  static constexpr char kKind[] = "tensor";
  template <class Source>
  static ReadResult<Source, Tensor> Read(const Source& s, const char* attr) {
    capi::TF_Tensor* raw = nullptr;
    absl::Status status =
        s.Call(&CApi::TF_OpKernelConstruction_GetAttrTensor, attr, &raw);
    Tensor tensor(raw);
    if (!status.ok()) return status;
    if (!tensor) return absl::InternalError("core made no tensor");
    return tensor;
  }
};
template <>
struct AttrReader<std::vector<Tensor>> {
  static constexpr char kKind[] = "list(tensor)";
  template <class Source>
  static ReadResult<Source, std::vector<Tensor>> Read(const Source& s,
                                                      const char* attr) {
    const auto sizes = s.ListSizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Source, std::vector<capi::TF_Tensor*>> raw(
        static_cast<size_t>(sizes->list) + 1);
    absl::Status status =
        s.Call(&CApi::TF_OpKernelConstruction_GetAttrTensorList, attr,
               raw.data(), sizes->list);
    raw.pop_back();
    // Also where it fails, some may have been made.
    Dependent<Source, std::vector<Tensor>> tensors;
    for (capi::TF_Tensor* tensor : raw) tensors.emplace_back(tensor);
    if (!status.ok()) return status;
    return tensors;
  }
};

// Shapes. No C function gives one of unknown rank, or a list; since 2.11 the
// NodeDef does. The C function is for 2.6 to 2.10, and knows full shapes only.
template <>
struct AttrReader<PartialShape> {
  static constexpr char kKind[] = "shape";
  template <class Source>
  static ReadResult<Source, PartialShape> Read(const Source& s,
                                               const char* attr) {
    if (!Has(&CApi::TF_OpKernelConstruction_GetNodeDef) &&
        Has(&CApi::TF_OpKernelConstruction_GetAttrTensorShape)) {
      return ReadByFunction(s, attr);
    }
    Buffer node;
    const auto value = s.Value(attr, &node);
    if (!value.ok()) return value.status();
    const auto shape = AttrField(*value, kShapeField);
    if (!shape.has_value()) return AttrSource::WrongKind();
    return ParseShape(*shape);
  }

 private:
  template <class Source>
  static ReadResult<Source, PartialShape> ReadByFunction(const Source& s,
                                                         const char* attr) {
    const auto sizes = s.Sizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Source, std::vector<int64_t>> dims(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0);
    absl::Status status =
        s.Call(&CApi::TF_OpKernelConstruction_GetAttrTensorShape, attr,
               dims.data(), dims.size());
    if (!status.ok()) return status;
    return PartialShape(Shape(absl::MakeConstSpan(dims)));
  }
};
template <>
struct AttrReader<std::vector<PartialShape>> {
  static constexpr char kKind[] = "list(shape)";
  template <class Source>
  static ReadResult<Source, std::vector<PartialShape>> Read(const Source& s,
                                                            const char* attr) {
    Buffer node;
    const auto value = s.Value(attr, &node);
    if (!value.ok()) return value.status();
    const auto list = AttrListField(*value, kShapeInListField);
    if (!list.has_value()) return AttrSource::WrongKind();
    Dependent<Source, std::vector<PartialShape>> shapes;
    for (absl::string_view shape : *list) shapes.push_back(ParseShape(shape));
    return shapes;
  }
};
template <class Source>
ReadResult<Source, Shape> FullShape(const PartialShape& shape) {
  if (shape.is_fully_known()) return shape.shape();
  return absl::InvalidArgumentError("the shape is not fully known: " +
                                    shape.ToString());
}
template <>
struct AttrReader<Shape> {
  static constexpr char kKind[] = "shape, fully known";
  template <class Source>
  static ReadResult<Source, Shape> Read(const Source& s, const char* attr) {
    const auto shape = AttrReader<PartialShape>::Read(s, attr);
    if (!shape.ok()) return shape.status();
    return FullShape<Source>(*shape);
  }
};
template <>
struct AttrReader<std::vector<Shape>> {
  static constexpr char kKind[] = "list(shape), fully known";
  template <class Source>
  static ReadResult<Source, std::vector<Shape>> Read(const Source& s,
                                                     const char* attr) {
    const auto shapes = AttrReader<std::vector<PartialShape>>::Read(s, attr);
    if (!shapes.ok()) return shapes.status();
    Dependent<Source, std::vector<Shape>> result;
    for (const PartialShape& partial : *shapes) {
      auto shape = FullShape<Source>(partial);
      if (!shape.ok()) return shape.status();
      result.push_back(*std::move(shape));
    }
    return result;
  }
};

// Functions. Since 2.11; a list is in the NodeDef only.
inline Function MakeFunction(absl::string_view name_attr_list) {
  return {std::string(FunctionName(name_attr_list)),
          std::string(name_attr_list)};
}
template <>
struct AttrReader<Function> {
  static constexpr char kKind[] = "func";
  template <class Source>
  static ReadResult<Source, Function> Read(const Source& s, const char* attr) {
    const auto function = &CApi::TF_OpKernelConstruction_GetAttrFunction;
    if (auto status = Require(function); !status.ok()) return status;
    OwnedStatus status;
    const Buffer buffer(
        (tensorflow.*function)(s.construction(), attr, status.get()));
    if (!status.ok()) return status.ToStatus();
    return MakeFunction(buffer.bytes());
  }
};
template <>
struct AttrReader<std::vector<Function>> {
  static constexpr char kKind[] = "list(func)";
  template <class Source>
  static ReadResult<Source, std::vector<Function>> Read(const Source& s,
                                                        const char* attr) {
    Buffer node;
    const auto value = s.Value(attr, &node);
    if (!value.ok()) return value.status();
    const auto list = AttrListField(*value, kFunctionInListField);
    if (!list.has_value()) return AttrSource::WrongKind();
    Dependent<Source, std::vector<Function>> functions;
    for (absl::string_view f : *list) functions.push_back(MakeFunction(f));
    return functions;
  }
};

}  // namespace internal
}  // namespace tfplug

#endif  // TFPLUG_KERNEL_ATTRIBUTES_H_
