// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_ATTR_TYPES_H_
#define TFPLUG_KERNEL_INTERNAL_OP_ATTR_TYPES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/base/function.h"
#include "tfplug/base/shape.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

template <class T>
struct Tag {
  using type = T;
};

// Returns the C++ type of attributes of this kind, in a Tag.
template <class E>
constexpr auto AttrTag() {
  constexpr std::string_view kKind = kernel_internal::kKind<E>;
  static_assert(!IsInput(kKind) && !IsOutput(kKind),
                "tfplug: this is an input or output of the op; an attribute is "
                "expected here");
  if constexpr (kKind == "Bools") {
    return Tag<bool>();
  } else if constexpr (kKind == "Ints") {
    return Tag<int64_t>();
  } else if constexpr (kKind == "Floats") {
    return Tag<float>();
  } else if constexpr (kKind == "Strings") {
    return Tag<std::string>();
  } else if constexpr (kKind == "Types") {
    return Tag<DataType>();
  } else if constexpr (kKind == "Shapes") {
    return Tag<PartialShape>();
  } else if constexpr (kKind == "Tensors") {
    return Tag<Tensor>();
  } else if constexpr (kKind == "Functions") {
    return Tag<Function>();
  } else if constexpr (kKind == "BoolLists") {
    return Tag<std::vector<bool>>();
  } else if constexpr (kKind == "IntLists") {
    return Tag<std::vector<int64_t>>();
  } else if constexpr (kKind == "FloatLists") {
    return Tag<std::vector<float>>();
  } else if constexpr (kKind == "StringLists") {
    return Tag<std::vector<std::string>>();
  } else if constexpr (kKind == "TypeLists") {
    return Tag<std::vector<DataType>>();
  } else if constexpr (kKind == "ShapeLists") {
    return Tag<std::vector<PartialShape>>();
  } else if constexpr (kKind == "TensorLists") {
    return Tag<std::vector<Tensor>>();
  } else if constexpr (kKind == "FunctionLists") {
    return Tag<std::vector<Function>>();
  } else {
    return Tag<bool>();  // Not reached: the static_assert has failed.
  }
}
template <class E>
using AttrType = typename decltype(AttrTag<E>())::type;

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_ATTR_TYPES_H_
