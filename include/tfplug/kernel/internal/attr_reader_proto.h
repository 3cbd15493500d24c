// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_ATTR_READER_PROTO_H_
#define TFPLUG_KERNEL_INTERNAL_ATTR_READER_PROTO_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/function.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/attr_reader.h"
#include "tfplug/kernel/internal/node_attrs.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Shapes. No C function returns a shape of unknown rank or a list of shapes;
// since 2.11 the NodeDef has both. The C function, which supports only fully
// known shapes, serves 2.6 to 2.10.
template <>
struct AttrReader<PartialShape> {
  static constexpr char kKind[] = "shape";
  template <class Attrs>
  static ReadResult<Attrs, PartialShape> Read(const Attrs& attrs,
                                              const char* attr) {
    if (!Has(&CApi::TF_OpKernelConstruction_GetNodeDef) &&
        Has(&CApi::TF_OpKernelConstruction_GetAttrTensorShape)) {
      return ReadByFunction(attrs, attr);
    }
    Buffer node;
    const auto value = attrs.GetValue(attr, &node);
    if (!value.ok()) return value.status();
    const auto shape = internal::AttrField(*value, internal::kShapeField);
    if (!shape.has_value()) return NodeAttrs::WrongKindError();
    return internal::ParseShape(*shape);
  }

 private:
  template <class Attrs>
  static ReadResult<Attrs, PartialShape> ReadByFunction(const Attrs& attrs,
                                                        const char* attr) {
    const auto sizes = attrs.GetSizes(attr);
    if (!sizes.ok()) return sizes.status();
    Dependent<Attrs, std::vector<int64_t>> dims(
        sizes->total > 0 ? static_cast<size_t>(sizes->total) : 0);
    absl::Status status =
        attrs.Call(&CApi::TF_OpKernelConstruction_GetAttrTensorShape, attr,
                   dims.data(), dims.size());
    if (!status.ok()) return status;
    return PartialShape(Shape(absl::MakeConstSpan(dims)));
  }
};
template <>
struct AttrReader<std::vector<PartialShape>> {
  static constexpr char kKind[] = "list(shape)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<PartialShape>> Read(const Attrs& attrs,
                                                           const char* attr) {
    Buffer node;
    const auto value = attrs.GetValue(attr, &node);
    if (!value.ok()) return value.status();
    const auto list =
        internal::AttrListField(*value, internal::kShapeInListField);
    if (!list.has_value()) return NodeAttrs::WrongKindError();
    Dependent<Attrs, std::vector<PartialShape>> shapes;
    for (absl::string_view shape : *list)
      shapes.push_back(internal::ParseShape(shape));
    return shapes;
  }
};
template <class Attrs>
ReadResult<Attrs, Shape> FullShape(const PartialShape& shape) {
  if (shape.is_fully_known()) return shape.shape();
  return absl::InvalidArgumentError("the shape " + shape.ToString() +
                                    " is not fully known");
}
template <>
struct AttrReader<Shape> {
  static constexpr char kKind[] = "fully known shape";
  template <class Attrs>
  static ReadResult<Attrs, Shape> Read(const Attrs& attrs, const char* attr) {
    const auto shape = AttrReader<PartialShape>::Read(attrs, attr);
    if (!shape.ok()) return shape.status();
    return FullShape<Attrs>(*shape);
  }
};
template <>
struct AttrReader<std::vector<Shape>> {
  static constexpr char kKind[] = "list(fully known shape)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<Shape>> Read(const Attrs& attrs,
                                                    const char* attr) {
    const auto shapes =
        AttrReader<std::vector<PartialShape>>::Read(attrs, attr);
    if (!shapes.ok()) return shapes.status();
    Dependent<Attrs, std::vector<Shape>> result;
    for (const PartialShape& partial : *shapes) {
      auto shape = FullShape<Attrs>(partial);
      if (!shape.ok()) return shape.status();
      result.push_back(*std::move(shape));
    }
    return result;
  }
};

// Functions. Since 2.11; only the NodeDef has lists of them.
inline Function MakeFunction(absl::string_view name_attr_list) {
  return {std::string(internal::FunctionName(name_attr_list)),
          std::string(name_attr_list)};
}
template <>
struct AttrReader<Function> {
  static constexpr char kKind[] = "func";
  template <class Attrs>
  static ReadResult<Attrs, Function> Read(const Attrs& attrs,
                                          const char* attr) {
    const auto function = &CApi::TF_OpKernelConstruction_GetAttrFunction;
    if (auto status = Require(function); !status.ok()) return status;
    OwnedStatus status;
    const Buffer buffer((internal::tensorflow.*function)(attrs.construction(),
                                                         attr, status.get()));
    if (!status.ok()) return status.ToStatus();
    return MakeFunction(buffer.bytes());
  }
};
template <>
struct AttrReader<std::vector<Function>> {
  static constexpr char kKind[] = "list(func)";
  template <class Attrs>
  static ReadResult<Attrs, std::vector<Function>> Read(const Attrs& attrs,
                                                       const char* attr) {
    Buffer node;
    const auto value = attrs.GetValue(attr, &node);
    if (!value.ok()) return value.status();
    const auto list =
        internal::AttrListField(*value, internal::kFunctionInListField);
    if (!list.has_value()) return NodeAttrs::WrongKindError();
    Dependent<Attrs, std::vector<Function>> functions;
    for (absl::string_view f : *list) functions.push_back(MakeFunction(f));
    return functions;
  }
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_ATTR_READER_PROTO_H_
