// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_NODE_H_
#define TFPLUG_TESTING_NODE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/base/function.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"
#include "tfplug/testing/internal/tensor_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The value of an attribute.
using AttrValue =
    std::variant<bool, int64_t, float, DataType, std::string, PartialShape,
                 TF_Tensor, Function, std::vector<bool>, std::vector<int64_t>,
                 std::vector<float>, std::vector<DataType>,
                 std::vector<std::string>, std::vector<PartialShape>,
                 std::vector<TF_Tensor>, std::vector<Function>>;

// The node of a graph for which a kernel is created.
struct Node {
  std::string op = "Op";
  std::string name = "node";
  std::map<std::string, AttrValue> attrs;
  // The op's input arguments in order, each with its number of inputs. Needed
  // only for kernels that look up inputs by name, of an op that no plug-in in
  // this process has registered or that has several lists.
  std::vector<std::pair<std::string, int>> input_args;
};

// Returns a serialized tensorflow.TensorShapeProto.
inline std::string SerializeShape(const PartialShape& shape) {
  std::string out;
  if (!shape.has_rank()) {
    internal::AppendField(out, 3, uint64_t{1});
    return out;
  }
  for (int64_t size : shape.shape().dims()) {
    std::string dim;
    internal::AppendField(dim, 1, static_cast<uint64_t>(size));
    internal::AppendField(out, 2, dim);
  }
  return out;
}

// Returns a serialized tensorflow.TensorProto, for a tensor in host memory.
inline std::string SerializeTensor(const TF_Tensor& tensor) {
  std::string out;
  internal::AppendField(out, 1, static_cast<uint64_t>(tensor.dtype));
  internal::AppendField(out, 2,
                        SerializeShape(PartialShape(Shape(tensor.dims))));
  internal::AppendField(
      out, 4,
      absl::string_view(static_cast<const char*>(tensor.buffer->data),
                        tensor.buffer->size));
  return out;
}

// Returns a serialized tensorflow.NameAttrList.
inline std::string SerializeFunction(const Function& function) {
  if (!function.name_attr_list.empty()) return function.name_attr_list;
  std::string out;
  internal::AppendField(out, 1, function.name);
  return out;
}

// Appends a value to a serialized tensorflow.AttrValue, or to its ListValue.
template <class T>
void AppendAttrValue(std::string& to, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    internal::AppendField(to, 2, value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    internal::AppendField(to, 3, static_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, float>) {
    internal::AppendVarint(to, 4 << 3 | 5);
    to.append(reinterpret_cast<const char*>(&value), sizeof(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    internal::AppendField(to, 5, uint64_t{value});
  } else if constexpr (std::is_same_v<T, DataType>) {
    internal::AppendField(to, 6, static_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    internal::AppendField(to, 7, SerializeShape(value));
  } else if constexpr (std::is_same_v<T, TF_Tensor>) {
    internal::AppendField(to, 8, SerializeTensor(value));
  } else if constexpr (std::is_same_v<T, Function>) {
    // ListValue and AttrValue use different field numbers for functions.
    internal::AppendField(to, 10, SerializeFunction(value));
  } else {
    std::string list;
    for (const auto& element : value) {
      using Element = typename T::value_type;
      if constexpr (std::is_same_v<Element, Function>) {
        internal::AppendField(list, 9, SerializeFunction(element));
      } else {
        AppendAttrValue<Element>(list, element);
      }
    }
    internal::AppendField(to, 1, list);
  }
}

// Returns a serialized tensorflow.NodeDef.
inline std::string SerializeNodeDef(const Node& node) {
  std::string out;
  internal::AppendField(out, 1, node.name);
  internal::AppendField(out, 2, node.op);
  for (const auto& [name, attr] : node.attrs) {
    std::string value;
    std::visit([&value](const auto& v) { AppendAttrValue(value, v); }, attr);
    std::string entry;
    internal::AppendField(entry, 1, name);
    internal::AppendField(entry, 2, value);
    internal::AppendField(out, 5, entry);
  }
  return out;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_NODE_H_
