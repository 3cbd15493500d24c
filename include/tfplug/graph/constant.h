// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_CONSTANT_H_
#define TFPLUG_GRAPH_CONSTANT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/internal/attr_codec.h"
#include "tfplug/graph/internal/tensor_proto.h"
#include "tfplug/graph/node.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The value of a Const node, in host memory.
// Types without a fixed size (string, resource, variant) are not supported.
//
// If the last elements of a tensor are equal, as in a splat, TensorFlow can
// store their value once. A Constant keeps that form, and only GetElements()
// and GetBytes() expand it, so parsing takes no time or memory for the
// repetitions.
class Constant {
 public:
  // Constructs a constant from as many elements as the shape has, in row-major
  // order.
  template <class T>
  static Constant Of(const Shape& shape, const std::vector<T>& elements) {
    Constant constant;
    constant.dtype_ = DataTypeOf<T>();
    constant.shape_ = shape;
    if constexpr (std::is_same_v<T, bool>) {
      // std::vector<bool> stores bits.
      constant.stored_.assign(elements.begin(), elements.end());
    } else {
      constant.stored_.assign(reinterpret_cast<const char*>(elements.data()),
                              elements.size() * sizeof(T));
    }
    return constant;
  }

  // Reads the value of `node`. INVALID_ARGUMENT, naming the node, if it is not
  // a Const or its value is not supported. In a pass, use
  // PassContext::ReadConstant(): a run can feed a Const with another value.
  static absl::StatusOr<Constant> Read(const Node& node);
  // Sets the attributes `dtype` and `value` of a Const node.
  void Write(const Node& node) const;
  // Reads only the shape of `node`'s value; does not validate the elements.
  static absl::StatusOr<Shape> ReadShape(const Node& node);

  // Parses a serialized tensorflow.TensorProto, in any of its forms.
  static absl::StatusOr<Constant> Parse(absl::string_view tensor_proto);
  std::string Serialize() const;

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return shape_.num_elements(); }
  // Returns whether a single stored element stands for all elements. May be
  // false for equal elements that are stored one by one.
  bool is_splat() const { return stored_.size() == DataTypeSize(dtype_); }

  // Returns the elements' bytes in row-major order, in the host's byte order.
  std::string GetBytes() const {
    std::string bytes(ByteSize(), '\0');
    CopyTo(&bytes[0]);
    return bytes;
  }
  // Returns the elements in row-major order. INVALID_ARGUMENT if they are not
  // of type T.
  template <class T>
  absl::StatusOr<std::vector<T>> GetElements() const {
    if (dtype_ != DataTypeOf<T>()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the constant has elements of type ", DataTypeName(dtype_), ", not ",
          DataTypeName(DataTypeOf<T>())));
    }
    if constexpr (std::is_same_v<T, bool>) {
      const std::string bytes = GetBytes();
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> elements(ByteSize() / sizeof(T));
      CopyTo(reinterpret_cast<char*>(elements.data()));
      return elements;
    }
  }
  // Returns the same elements with another shape, which must have the same
  // number of elements.
  Constant Reshaped(Shape shape) const {
    Constant constant = *this;
    constant.shape_ = std::move(shape);
    return constant;
  }
  // Returns int32 or int64 elements, such as axes, permutations or paddings, as
  // int64. INVALID_ARGUMENT for other types.
  absl::StatusOr<std::vector<int64_t>> GetIntegers() const {
    if (dtype_ == DataType::kInt64) return GetElements<int64_t>();
    auto narrow = GetElements<int32_t>();
    if (!narrow.ok()) return narrow.status();
    return std::vector<int64_t>(narrow->begin(), narrow->end());
  }

 private:
  size_t ByteSize() const {
    return static_cast<size_t>(std::max<int64_t>(num_elements(), 0)) *
           DataTypeSize(dtype_);
  }
  // Copies all elements to ByteSize() bytes.
  void CopyTo(char* to) const;
  static absl::StatusOr<absl::string_view> FindTensor(
      const Node& node, const graph_internal::ParsedAttrValue& value);

  DataType dtype_ = DataType::kFloat;
  Shape shape_;
  // The first elements; the last one stands for all elements after it.
  std::string stored_;
};

// ---- Implementation ----

inline void Constant::CopyTo(char* to) const {
  const size_t size = ByteSize();
  if (size == 0) return;  // `to` may be null.
  const size_t stored = std::min(stored_.size(), size);
  const size_t element = DataTypeSize(dtype_);
  if (stored < element) {
    std::memset(to, 0, size);
    return;
  }
  std::memcpy(to, stored_.data(), stored);
  // Each copy doubles the part that begins with the last stored element.
  const size_t begin = stored - element;
  for (size_t end = stored; end < size;) {
    const size_t count = std::min(end - begin, size - end);
    std::memcpy(to + end, to + begin, count);
    end += count;
  }
}

inline absl::StatusOr<absl::string_view> Constant::FindTensor(
    const Node& node, const graph_internal::ParsedAttrValue& value) {
  if (node.op() != "Const") {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "' is a ", node.op(),
                     ", not a Const, and has no constant value"));
  }
  if (value.field() != graph_internal::kAttrTensor) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "' (Const): its attribute 'value' ",
                     "is not a tensor"));
  }
  return value.bytes();
}

inline absl::StatusOr<Constant> Constant::Read(const Node& node) {
  const graph_internal::ParsedAttrValue value(node.RawAttr("value"));
  const auto tensor = FindTensor(node, value);
  if (!tensor.ok()) return tensor.status();
  absl::StatusOr<Constant> constant = Parse(*tensor);
  if (!constant.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node.name(), "' (Const): ", constant.status().message()));
  }
  return constant;
}

inline absl::StatusOr<Shape> Constant::ReadShape(const Node& node) {
  const graph_internal::ParsedAttrValue value(node.RawAttr("value"));
  const auto tensor = FindTensor(node, value);
  if (!tensor.ok()) return tensor.status();
  const PartialShape shape = graph_internal::TensorShapeOf(*tensor);
  if (!shape.is_fully_known()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node.name(), "' (Const): the shape of its value is invalid"));
  }
  return shape.shape();
}

inline absl::StatusOr<Constant> Constant::Parse(
    absl::string_view tensor_proto) {
  Constant constant;
  absl::string_view content;
  internal::WireReader field(tensor_proto);
  int dtype = 0;
  while (field.Next()) {
    if (field.Is(1, internal::kVarintType)) {
      dtype = static_cast<int>(field.varint());
    }
    if (field.Is(4, internal::kBytesType)) content = field.bytes();
  }
  constant.dtype_ = static_cast<DataType>(dtype);
  const size_t size = DataTypeSize(constant.dtype_);
  const PartialShape shape = graph_internal::TensorShapeOf(tensor_proto);
  if (!field.ok() || !shape.is_fully_known()) {
    return absl::InvalidArgumentError("the tensor's bytes are malformed");
  }
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of type ", DataTypeName(constant.dtype_),
                     " has no elements of fixed size"));
  }
  constant.shape_ = shape.shape();
  // Larger than any tensor in a graph that TensorFlow can pass.
  constexpr int64_t kMaxBytes = int64_t{1} << 32;
  const int64_t count = constant.num_elements();
  if (count < 0 || count > kMaxBytes / static_cast<int64_t>(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor has more than ", kMaxBytes, " bytes"));
  }
  std::string& stored = constant.stored_;
  if (!content.empty()) {
    stored.assign(content.data(), content.size());
  } else if (!graph_internal::ReadElements(tensor_proto, constant.dtype_,
                                           stored)) {
    return absl::InvalidArgumentError("the tensor's bytes are malformed");
  } else if (stored.empty() && count > 0) {
    stored.assign(size, '\0');
  }
  const size_t wanted = constant.ByteSize();
  if (stored.size() > wanted || stored.size() % size != 0 ||
      (!content.empty() && stored.size() != wanted)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tensor of shape ", constant.shape_.ToString(), " needs ", wanted,
        " bytes of elements, but has ", stored.size()));
  }
  return constant;
}

inline void Constant::Write(const Node& node) const {
  std::string value;
  internal::AppendField(value, graph_internal::kAttrTensor, Serialize());
  node.SetAttr("dtype", dtype_);
  node.SetRawAttr("value", value);
}

inline std::string Constant::Serialize() const {
  std::string tensor;
  if (stored_.size() == ByteSize()) {
    graph_internal::AppendTensor(tensor, dtype_, shape_, stored_);
  } else {
    graph_internal::AppendRepeatingTensor(tensor, dtype_, shape_, stored_);
  }
  return tensor;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_CONSTANT_H_
