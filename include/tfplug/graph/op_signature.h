// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_OP_SIGNATURE_H_
#define TFPLUG_GRAPH_OP_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/wire.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A parsed tensorflow.OpDef: the signature of an op, or of a function that a
// graph calls like an op. (To define an op, see tfplug::OpDef.)
struct OpSignature {
  // An input or output: one tensor or a list of tensors.
  struct Arg {
    std::string name;
    // One of the following three is set: a fixed type (otherwise 0), the
    // attribute that holds the type, or, for a list, the attribute that holds
    // the type of each tensor.
    DataType type = DataType(0);
    std::string type_attr;
    std::string type_list_attr;
    // The attribute that holds the length of a list of tensors of one type.
    std::string number_attr;
    bool is_ref = false;
  };
  struct Attr {
    std::string name;
    std::string type;  // Such as "list(type)".
    bool has_default = false;
    std::string default_value;  // A serialized tensorflow.AttrValue.
  };

  std::string name;
  std::vector<Arg> inputs;
  std::vector<Arg> outputs;
  std::vector<Attr> attrs;
  bool is_stateful = false;
  bool is_commutative = false;
  bool is_aggregate = false;
  bool allows_uninitialized_input = false;

  // Returns null if the op has no such attribute.
  const Attr* FindAttr(absl::string_view attr_name) const {
    for (const Attr& attr : attrs) {
      if (attr.name == attr_name) return &attr;
    }
    return nullptr;
  }

  // Parses a serialized tensorflow.OpDef. Stops at the first malformed field.
  static OpSignature Parse(absl::string_view op_def) {
    using internal::kBytesType;
    OpSignature op;
    for (internal::WireReader field(op_def); field.Next();) {
      ReadText(field, 1, op.name);
      if (field.Is(2, kBytesType)) op.inputs.push_back(ParseArg(field.bytes()));
      if (field.Is(3, kBytesType)) {
        op.outputs.push_back(ParseArg(field.bytes()));
      }
      if (field.Is(4, kBytesType)) op.attrs.push_back(ParseAttr(field.bytes()));
      ReadBool(field, 16, op.is_aggregate);
      ReadBool(field, 17, op.is_stateful);
      ReadBool(field, 18, op.is_commutative);
      ReadBool(field, 19, op.allows_uninitialized_input);
    }
    return op;
  }

 private:
  // A field of another wire type is ignored, like an unknown field.
  static void ReadText(const internal::WireReader& field, uint32_t number,
                       std::string& text) {
    if (field.Is(number, internal::kBytesType)) {
      text.assign(field.bytes().data(), field.bytes().size());
    }
  }
  static void ReadBool(const internal::WireReader& field, uint32_t number,
                       bool& value) {
    if (field.Is(number, internal::kVarintType)) value = field.varint() != 0;
  }

  static Arg ParseArg(absl::string_view bytes) {
    Arg arg;
    for (internal::WireReader field(bytes); field.Next();) {
      ReadText(field, 1, arg.name);
      if (field.Is(3, internal::kVarintType)) {
        arg.type = static_cast<DataType>(field.varint());
      }
      ReadText(field, 4, arg.type_attr);
      ReadText(field, 5, arg.number_attr);
      ReadText(field, 6, arg.type_list_attr);
      ReadBool(field, 16, arg.is_ref);
    }
    return arg;
  }

  static Attr ParseAttr(absl::string_view bytes) {
    Attr attr;
    for (internal::WireReader field(bytes); field.Next();) {
      ReadText(field, 1, attr.name);
      ReadText(field, 2, attr.type);
    }
    auto value = internal::MessageField(bytes, 3);
    attr.has_default = value.has_value();
    if (attr.has_default) attr.default_value = *std::move(value);
    return attr;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_OP_SIGNATURE_H_
