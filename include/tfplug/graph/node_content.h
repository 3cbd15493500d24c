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
#include "tfplug/base/shape.h"
#include "tfplug/base/tensor_view.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/internal/editor.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/kernel/internal/op_attr_types.h"

namespace tfplug {

// What a node of a Graph says about itself: all but its edges, which Node has.
class NodeContent {
 public:
  // A number below Graph::max_id(), for tables of one's own.
  uint32_t id() const { return id_; }
  bool removed() const { return !graph_->live(id_); }

  absl::string_view name() const { return graph_->name(id_); }
  // "" of a removed one.
  absl::string_view op() const {
    return removed() ? "" : graph_->op_table().op(graph_->op(id_));
  }
  // The op as Graph::OpNumber() has it: to compare many.
  uint32_t op_number() const { return graph_->op(id_); }
  absl::string_view device() const { return graph_->device(id_); }
  void SetOp(absl::string_view op) const {
    if (op != this->op() && !removed()) Edit().SetOp(id_, op);
  }
  void SetDevice(absl::string_view device) const {
    if (device != this->device()) {
      Edit().SetDevice(id_, graph_->Keep(device));
    }
  }

  // ---- Attributes ----

  bool HasAttr(absl::string_view attr) const {
    return RawAttr(attr).data() != nullptr;
  }
  // The attribute as T: bool, int32_t, int64_t, float, DataType, std::string,
  // Shape, PartialShape, Function, or a std::vector of one of these. NOT_FOUND
  // if it is not there, INVALID_ARGUMENT if it is of another kind or does not
  // fit; the words name node, op and attribute.
  template <class T>
  absl::StatusOr<T> GetAttr(absl::string_view attr) const;
  // Of a typed op, such as ops::Conv2D::strides, as what it is.
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<internal::AttrType<E>> GetAttr(E attr) const {
    return GetAttr<internal::AttrType<E>>(internal::NameOf(attr));
  }
  template <class E, class = internal::IfOpEnum<E>>
  bool HasAttr(E attr) const {
    return HasAttr(internal::NameOf(attr));
  }
  // The serialised AttrValue; null data if there is none.
  absl::string_view RawAttr(absl::string_view attr) const {
    return graph_->FindAttr(id_, attr);
  }
  // All names with their serialised AttrValues, in no particular order.
  std::vector<std::pair<absl::string_view, absl::string_view>> attrs() const;

  // The types of GetAttr; string literals, and any integer as int64_t.
  template <class T>
  void SetAttr(absl::string_view attr, const T& value) const {
    using Stored = internal::StoredAttr<T>;
    std::string& bytes = graph_->scratch();
    bytes.clear();
    if constexpr (std::is_same_v<T, Stored>) {
      internal::AttrCodec<Stored>::Append(bytes, value);
    } else {
      internal::AttrCodec<Stored>::Append(bytes, Stored(value));
    }
    SetRawAttr(attr, bytes);
  }
  template <class E, class = internal::IfOpEnum<E>>
  void SetAttr(E attr, const internal::AttrType<E>& value) const {
    SetAttr(absl::string_view(internal::NameOf(attr)), value);
  }
  // A tensor, such as the `value` of a Const; its elements in row-major order,
  // as memory has them, are copied. INVALID_ARGUMENT if they are not as many
  // bytes as type and shape say, or the type has no fixed size.
  absl::Status SetTensor(absl::string_view attr, DataType dtype,
                         const Shape& shape, absl::string_view elements) const;
  template <class T, int kRank>
  void SetTensor(absl::string_view attr,
                 const TensorView<T, kRank>& tensor) const;
  // `value` is copied.
  void SetRawAttr(absl::string_view attr, absl::string_view value) const {
    Edit().SetAttr(id_, attr, value);
  }
  // Nothing happens if there is none.
  void RemoveAttr(absl::string_view attr) const {
    if (HasAttr(attr)) Edit().RemoveAttr(id_, attr);
  }
  // From a node of the same or another graph; large values of the same graph
  // are not copied. NOT_FOUND if it has no such attribute.
  absl::Status CopyAttr(NodeContent from, absl::string_view attr) const;
  // All that `from` has.
  void CopyAttrs(NodeContent from) const;

  internal::GraphState* graph() const { return graph_; }

 protected:
  NodeContent() = default;
  NodeContent(internal::GraphState* graph, uint32_t id)
      : graph_(graph), id_(id) {}

  internal::GraphEditor Edit() const { return internal::GraphEditor(*graph_); }
  std::string Describe() const {
    return absl::StrCat("node '", name(), "' (", op(), "): ");
  }

  internal::GraphState* graph_ = nullptr;
  uint32_t id_ = 0;
};

// ---- Implementation ----

template <class T>
absl::StatusOr<T> NodeContent::GetAttr(absl::string_view attr) const {
  using Codec = internal::AttrCodec<T>;
  const absl::string_view bytes = RawAttr(attr);
  if (bytes.data() != nullptr) {
    std::optional<T> value = Codec::Decode(bytes);
    if (value.has_value()) return *std::move(value);
  }
  const std::string message = absl::StrCat(Describe(), "attribute '", attr,
                                           "', as ", Codec::Kind(), ": ");
  if (bytes.data() == nullptr) {
    return absl::NotFoundError(message + "the node has no such attribute");
  }
  return absl::InvalidArgumentError(message +
                                    "it is of another kind, or does not fit");
}

inline absl::Status NodeContent::SetTensor(absl::string_view attr,
                                           DataType dtype, const Shape& shape,
                                           absl::string_view elements) const {
  const size_t element_size = DataTypeSize(dtype);
  size_t size = element_size;
  bool fits = element_size > 0;
  for (int64_t dim : shape.dims()) {
    fits = fits && dim >= 0 && !__builtin_mul_overflow(size, dim, &size);
  }
  if (!fits || size != elements.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(), "attribute '", attr, "', as a tensor of ",
        DataTypeName(dtype), ": ",
        element_size == 0
            ? "it has no fixed size; SetRawAttr() takes any AttrValue"
            : absl::StrCat("the shape does not make ", elements.size(),
                           " bytes")));
  }
  std::string& bytes = graph_->scratch();
  bytes.clear();
  internal::AppendNested(bytes, internal::kAttrTensor, [&] {
    internal::AppendTensor(bytes, dtype, shape, elements);
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
  // It cannot fail: a view has as many elements as its dimensions say.
  SetTensor(attr, kType, Shape(dims),
            absl::string_view(reinterpret_cast<const char*>(tensor.data()),
                              static_cast<size_t>(tensor.size()) * sizeof(T)))
      .IgnoreError();
}

inline std::vector<std::pair<absl::string_view, absl::string_view>>
NodeContent::attrs() const {
  std::vector<std::pair<absl::string_view, absl::string_view>> result;
  graph_->ForEachAttr(id_,
                      [&](absl::string_view name, absl::string_view value) {
                        result.emplace_back(name, value);
                      });
  return result;
}
inline absl::Status NodeContent::CopyAttr(NodeContent from,
                                          absl::string_view attr) const {
  if (Edit().CopyAttr(id_, *from.graph_, from.id_, attr)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(from.Describe(), "it has no attribute '", attr, "'"));
}
inline void NodeContent::CopyAttrs(NodeContent from) const {
  if (from.graph_ != graph_ || from.id_ != id_)
    Edit().CopyAttrs(id_, *from.graph_, from.id_);
}

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_NODE_CONTENT_H_
