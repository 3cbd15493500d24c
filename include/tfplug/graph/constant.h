// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_CONSTANT_H_
#define TFPLUG_GRAPH_CONSTANT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/internal/attr_codec.h"
#include "tfplug/graph/node.h"

namespace tfplug {

// The value of a Const node, outside of any kernel: numbers in host memory.
// Types without a fixed size (string, resource, variant) are refused.
class Constant {
 public:
  // As many elements as the shape has.
  template <class T>
  static Constant Of(Shape shape, const std::vector<T>& elements) {
    Constant constant;
    constant.dtype_ = DataTypeOf<T>();
    constant.shape_ = std::move(shape);
    constant.bytes_.assign(reinterpret_cast<const char*>(elements.data()),
                           elements.size() * sizeof(T));
    return constant;
  }

  // The value of `node`. INVALID_ARGUMENT, naming it, if it is not a Const, or
  // its value cannot be read.
  static absl::StatusOr<Constant> Read(const Node& node);

  // A serialised tensorflow.TensorProto, in any of its forms.
  static absl::StatusOr<Constant> Parse(absl::string_view tensor_proto);
  std::string Serialize() const;

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  // The elements in row-major order, as memory has them.
  absl::string_view bytes() const { return bytes_; }
  int64_t num_elements() const {
    int64_t count = 1;
    for (int64_t dim : shape_.dims()) count *= dim;
    return count;
  }
  // The elements, in row-major order. INVALID_ARGUMENT if they are not Ts.
  template <class T>
  absl::StatusOr<std::vector<T>> GetElements() const {
    if (dtype_ != DataTypeOf<T>()) {
      return absl::InvalidArgumentError("the constant holds " +
                                        DataTypeName(dtype_) + ", not " +
                                        DataTypeName(DataTypeOf<T>()));
    }
    std::vector<T> elements(bytes_.size() / sizeof(T));
    if (!elements.empty()) {
      std::memcpy(elements.data(), bytes_.data(), bytes_.size());
    }
    return elements;
  }
  // The same elements in another shape, which must have as many.
  Constant Reshaped(Shape shape) const {
    Constant constant = *this;
    constant.shape_ = std::move(shape);
    return constant;
  }
  // int32 or int64 elements: axes, permutations, paddings.
  absl::StatusOr<std::vector<int64_t>> GetIntegers() const {
    if (dtype_ == DataType::kInt64) return GetElements<int64_t>();
    auto narrow = GetElements<int32_t>();
    if (!narrow.ok()) return narrow.status();
    return std::vector<int64_t>(narrow->begin(), narrow->end());
  }

 private:
  // The number of TensorProto's field that holds elements of a type: numbers,
  // of which integers are varints; of float8 it is their bytes.
  static constexpr int kFloat8Field = 18;
  static int ElementsField(DataType dtype);
  // What the field holds of it. False if it is not well-formed.
  bool AppendElements(const internal::WireReader& field,
                      std::string& elements) const;

  DataType dtype_ = DataType::kFloat;
  Shape shape_;
  std::string bytes_;
};

inline absl::StatusOr<Constant> Constant::Read(const Node& node) {
  const std::string name = "node '" + std::string(node.name()) + "'";
  if (node.op() != "Const") {
    return absl::InvalidArgumentError(name + " is no Const, but a " +
                                      std::string(node.op()));
  }
  const internal::AttrContent value(node.RawAttr("value"));
  if (value.field() != internal::kAttrTensor) {
    return absl::InvalidArgumentError(name + " has no tensor as its 'value'");
  }
  absl::StatusOr<Constant> constant = Parse(value.bytes());
  if (!constant.ok()) {
    return absl::InvalidArgumentError(name + ": " +
                                      std::string(constant.status().message()));
  }
  return constant;
}

inline int Constant::ElementsField(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return 5;
    case DataType::kDouble:
      return 6;
    case DataType::kComplex64:
      return 9;
    case DataType::kInt64:
      return 10;
    case DataType::kBool:
      return 11;
    case DataType::kComplex128:
      return 12;
    case DataType::kHalf:
    case DataType::kBfloat16:
      return 13;
    case DataType::kUint32:
      return 16;
    case DataType::kUint64:
      return 17;
    case DataType::kFloat8E5m2:
    case DataType::kFloat8E4m3fn:
    case DataType::kFloat8E4m3fnuz:
    case DataType::kFloat8E4m3b11fnuz:
    case DataType::kFloat8E5m2fnuz:
      return kFloat8Field;
    default:
      return 7;
  }
}

inline bool Constant::AppendElements(const internal::WireReader& field,
                                     std::string& elements) const {
  const int number = field.number();
  const absl::string_view bytes = field.bytes();
  const bool is_packed = field.type() == internal::kBytesType;
  if (number == kFloat8Field) {
    if (is_packed) elements.assign(bytes.data(), bytes.size());
    return true;
  }
  const bool is_fixed =
      number == 5 || number == 6 || number == 9 || number == 12;
  if (is_fixed) {
    const auto type = number == 5 || number == 9 ? internal::kFixed32Type
                                                 : internal::kFixed64Type;
    if (is_packed || field.type() == type) {
      elements.append(bytes.data(), bytes.size());
    }
    return true;
  }
  const size_t size = DataTypeSize(dtype_);
  const auto append = [&](uint64_t value) {
    if (dtype_ == DataType::kBool) value = value != 0 ? 1 : 0;
    // Little-endian, as all of TensorFlow is.
    elements.append(reinterpret_cast<const char*>(&value), size);
  };
  if (field.type() == internal::kVarintType) append(field.varint());
  if (!is_packed) return true;
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  while (p != end) {
    uint64_t value;
    p = internal::ReadVarint(p, end, &value);
    if (p == nullptr) return false;
    append(value);
  }
  return true;
}

inline absl::StatusOr<Constant> Constant::Parse(
    absl::string_view tensor_proto) {
  Constant constant;
  std::string elements;
  absl::string_view content;
  int dtype = 0;
  internal::WireReader first(tensor_proto);
  while (first.Next()) {
    if (first.Is(1, internal::kVarintType)) {
      dtype = static_cast<int>(first.varint());
    }
    if (first.Is(4, internal::kBytesType)) content = first.bytes();
  }
  constant.dtype_ = static_cast<DataType>(dtype);
  const size_t size = DataTypeSize(constant.dtype_);
  const PartialShape partial = internal::ParseShape(
      internal::MessageField(tensor_proto, 2).value_or(""));
  if (!first.ok() || !partial.is_fully_known()) {
    return absl::InvalidArgumentError("the tensor's bytes are no tensor");
  }
  if (size == 0) {
    return absl::InvalidArgumentError("a tensor of " +
                                      DataTypeName(constant.dtype_) +
                                      " has no plain numbers to read");
  }
  constant.shape_ = partial.shape();
  // More than this is no constant that core itself could have made.
  constexpr size_t kMaxBytes = size_t{1} << 32;
  size_t wanted = size;
  for (int64_t dim : constant.shape_.dims()) {
    if (dim != 0 && wanted > kMaxBytes / static_cast<size_t>(dim)) {
      return absl::InvalidArgumentError("the tensor is larger than " +
                                        std::to_string(kMaxBytes) + " bytes");
    }
    wanted *= static_cast<size_t>(dim);
  }
  if (!content.empty()) {
    elements.assign(content.data(), content.size());
  } else {
    const int number = ElementsField(constant.dtype_);
    for (internal::WireReader field(tensor_proto); field.Next();) {
      if (field.number() != number) continue;
      if (!constant.AppendElements(field, elements)) {
        return absl::InvalidArgumentError("the tensor's bytes are no tensor");
      }
    }
    // Left out at the end: repetitions of the last one, or zeros.
    if (elements.empty()) elements.assign(wanted, '\0');
    const std::string last =
        elements.size() >= size ? elements.substr(elements.size() - size) : "";
    while (!last.empty() && elements.size() < wanted) elements += last;
  }
  if (elements.size() != wanted) {
    return absl::InvalidArgumentError(
        "the tensor of shape " + constant.shape_.ToString() + " has " +
        std::to_string(elements.size()) + " bytes");
  }
  constant.bytes_ = std::move(elements);
  return constant;
}

inline std::string Constant::Serialize() const {
  std::string tensor;
  internal::AppendTensor(tensor, dtype_, shape_, bytes_);
  return tensor;
}

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_CONSTANT_H_
