// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_NODE_CONTENT_H_
#define TFPLUG_GRAPH_NODE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/tensor_view.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/kernel/internal/op_attr_types.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The part of a Node that does not concern edges: name, op, device and
// attributes.
class NodeContent {
 public:
  // Returns an index below Graph::max_id(), for tables indexed by node.
  uint32_t id() const { return id_; }
  bool removed() const { return !state_->live(id_); }

  absl::string_view name() const { return state_->name(id_); }
  // Returns the op, or an empty text for a removed node.
  absl::string_view op() const {
    return removed() ? "" : state_->op_table().op(state_->op(id_));
  }
  // Returns the same as Graph::OpId(op()). Comparing ids is faster than
  // comparing names.
  uint32_t op_id() const { return state_->op(id_); }
  absl::string_view device() const { return state_->device(id_); }
  void SetOp(absl::string_view op) const {
    if (op != this->op() && !removed()) Edit().SetOp(id_, op);
  }
  void SetDevice(absl::string_view device) const {
    if (device != this->device()) {
      Edit().SetDevice(id_, state_->CopyToArena(device));
    }
  }

  // ---- Attributes ----

  bool HasAttr(absl::string_view attr) const {
    return RawAttr(attr).data() != nullptr;
  }
  // Returns the attribute as T: bool, int32_t, int64_t, float, DataType,
  // std::string, Shape, PartialShape, Function, or a std::vector of one of
  // these. NOT_FOUND if the node lacks the attribute; INVALID_ARGUMENT if it
  // has another type or its value does not fit into T.
  template <class T>
  absl::StatusOr<T> GetAttr(absl::string_view attr) const;
  // Returns the attribute of a typed op, such as ops::Conv2D::strides, with the
  // type that the op declares.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<kernel_internal::AttrType<E>> GetAttr(E attr) const {
    return GetAttr<kernel_internal::AttrType<E>>(kernel_internal::NameOf(attr));
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  bool HasAttr(E attr) const {
    return HasAttr(kernel_internal::NameOf(attr));
  }
  // Returns the serialized AttrValue; null data if there is no such attribute.
  // Like GetAttr() and HasAttr(), takes time linear in the number of the node's
  // attributes (at most 15 in the graphs of the benchmark) until one is edited.
  absl::string_view RawAttr(absl::string_view attr) const {
    return state_->FindAttr(id_, attr);
  }
  // Returns the names of all attributes and their serialized AttrValues, in an
  // unspecified order.
  std::vector<std::pair<absl::string_view, absl::string_view>> GetAttrs() const;

  // Accepts the types of GetAttr(), string literals, and any integer, which is
  // stored as int64_t.
  template <class T>
  void SetAttr(absl::string_view attr, const T& value) const {
    using Stored = graph::AttrTypeFor<T>;
    using Codec = graph::AttrCodec<Stored>;
    if constexpr (Codec::kIsScalar) {
      char bytes[Codec::kMaxScalar];
      const char* const end = Codec::Write(bytes, Stored(value));
      return SetRawAttr(
          attr, absl::string_view(bytes, static_cast<size_t>(end - bytes)));
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      const size_t size = graph::ListedSize(value);
      Edit().SetAttr(id_, attr, internal::BytesFieldSize(size),
                     [&](char* to) { graph::WriteList(to, size, value); });
    } else {
      std::string& bytes = state_->scratch();
      bytes.clear();
      if constexpr (std::is_same_v<T, Stored>) {
        Codec::Append(bytes, value);
      } else {
        Codec::Append(bytes, Stored(value));
      }
      SetRawAttr(attr, bytes);
    }
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  void SetAttr(E attr, const kernel_internal::AttrType<E>& value) const {
    SetAttr(absl::string_view(kernel_internal::NameOf(attr)), value);
  }
  // Sets an attribute to a tensor, such as the `value` of a Const. Copies the
  // elements, which are in row-major order. INVALID_ARGUMENT if their size does
  // not match the type and shape, or if the type has no fixed size.
  absl::Status SetTensor(absl::string_view attr, DataType dtype,
                         const Shape& shape, absl::string_view elements) const;
  template <class T, int kRank>
  void SetTensor(absl::string_view attr,
                 const TensorView<T, kRank>& tensor) const;
  // Copies `value`, a serialized AttrValue.
  void SetRawAttr(absl::string_view attr, absl::string_view value) const {
    Edit().SetAttr(id_, attr, value);
  }
  // Does nothing if the node lacks the attribute.
  void RemoveAttr(absl::string_view attr) const {
    if (HasAttr(attr)) Edit().RemoveAttr(id_, attr);
  }
  // Copies an attribute of a node of the same or of another graph. Within a
  // graph, both nodes share the value's bytes. NOT_FOUND if `from` lacks it.
  absl::Status CopyAttr(NodeContent from, absl::string_view attr) const;
  // Copies all attributes of `from`.
  void CopyAttrs(NodeContent from) const;

 protected:
  NodeContent() = default;
  NodeContent(graph_internal::GraphState* state, uint32_t id)
      : state_(state), id_(id) {}

  graph_internal::GraphEditor Edit() const {
    return graph_internal::GraphEditor(*state_);
  }
  std::string Describe() const {
    return absl::StrCat("node '", name(), "' (", op(), "): ");
  }

  graph_internal::GraphState* state_ = nullptr;
  uint32_t id_ = 0;
};

// ---- Implementation ----

template <class T>
absl::StatusOr<T> NodeContent::GetAttr(absl::string_view attr) const {
  using Codec = graph::AttrCodec<T>;
  const absl::string_view bytes = RawAttr(attr);
  if (bytes.data() == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(Describe(), "it has no attribute '", attr, "'"));
  }
  std::optional<T> value = Codec::Decode(bytes);
  if (value.has_value()) return *std::move(value);
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(), "attribute '", attr, "' is not of type ",
                   Codec::TypeName(), ", or its value does not fit"));
}

inline absl::Status NodeContent::SetTensor(absl::string_view attr,
                                           DataType dtype, const Shape& shape,
                                           absl::string_view elements) const {
  const size_t element_size = DataTypeSize(dtype);
  const int64_t count = shape.num_elements();
  size_t size = 0;
  const bool fits =
      count >= 0 && !__builtin_mul_overflow(element_size, count, &size);
  if (element_size == 0 || !fits || size != elements.size()) {
    const std::string prefix =
        absl::StrCat(Describe(), "cannot set attribute '", attr,
                     "' to a tensor of ", DataTypeName(dtype));
    return absl::InvalidArgumentError(
        element_size == 0
            ? absl::StrCat(prefix,
                           ", which has no fixed size; use SetRawAttr()")
            : absl::StrCat(prefix, shape.ToString(), " from ", elements.size(),
                           " bytes"));
  }
  std::string& bytes = state_->scratch();
  bytes.clear();
  graph_internal::AppendNested(bytes, graph_internal::kAttrTensor, [&] {
    graph_internal::AppendTensor(bytes, dtype, shape, elements);
  });
  SetRawAttr(attr, bytes);
  return absl::OkStatus();
}
template <class T, int kRank>
void NodeContent::SetTensor(absl::string_view attr,
                            const TensorView<T, kRank>& tensor) const {
  std::vector<int64_t> dims;
  for (int i = 0; i < kRank; ++i) dims.push_back(tensor.dim(i));
  constexpr DataType kType = DataTypeOf<std::remove_const_t<T>>();
  // Cannot fail: the size of a view is the product of its dimensions.
  SetTensor(attr, kType, Shape(dims),
            absl::string_view(reinterpret_cast<const char*>(tensor.data()),
                              static_cast<size_t>(tensor.size()) * sizeof(T)))
      .IgnoreError();
}

inline std::vector<std::pair<absl::string_view, absl::string_view>>
NodeContent::GetAttrs() const {
  std::vector<std::pair<absl::string_view, absl::string_view>> result;
  state_->ForEachAttr(id_,
                      [&](absl::string_view name, absl::string_view value) {
                        result.emplace_back(name, value);
                      });
  return result;
}
inline absl::Status NodeContent::CopyAttr(NodeContent from,
                                          absl::string_view attr) const {
  if (Edit().CopyAttr(id_, *from.state_, from.id_, attr)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(from.Describe(), "it has no attribute '", attr, "'"));
}
inline void NodeContent::CopyAttrs(NodeContent from) const {
  if (from.state_ != state_ || from.id_ != id_)
    Edit().CopyAttrs(id_, *from.state_, from.id_);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_NODE_CONTENT_H_
