// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_OP_SIGNATURE_H_
#define TFPLUG_GRAPH_OP_SIGNATURE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/data_type.h"
#include "tfplug/internal/wire.h"

namespace tfplug {

// What TensorFlow knows of an op, or of a function that a graph calls like one:
// tensorflow.OpDef, read. (tfplug::OpDef is for ops of an author's own.)
struct OpSignature {
  // An input or output: one tensor, or several.
  struct Arg {
    std::string name;
    DataType type = DataType(0);  // fixed, or 0 and
    std::string type_attr;        // the attribute that holds the type, or
    std::string type_list_attr;   // the one that holds all types of the list
    std::string number_attr;      // how many of one type; "": not so
    bool is_ref = false;
  };
  struct Attr {
    std::string name;
    std::string type;  // such as "list(type)"
    bool has_default = false;
    std::string default_value;  // a serialised tensorflow.AttrValue
  };

  std::string name;
  std::vector<Arg> inputs;
  std::vector<Arg> outputs;
  std::vector<Attr> attrs;
  bool is_stateful = false;
  bool is_commutative = false;
  bool is_aggregate = false;
  bool allows_uninitialized_input = false;

  // Null if there is none.
  const Attr* FindAttr(absl::string_view attr_name) const {
    for (const Attr& attr : attrs) {
      if (attr.name == attr_name) return &attr;
    }
    return nullptr;
  }

  // From a serialised tensorflow.OpDef; what is no message ends it early.
  static OpSignature Parse(absl::string_view op_def) {
    OpSignature op;
    for (internal::WireReader reader(op_def); reader.Next();) {
      switch (reader.number()) {
        case 1:
          op.name = std::string(reader.bytes());
          break;
        case 2:
          op.inputs.push_back(ParseArg(reader.bytes()));
          break;
        case 3:
          op.outputs.push_back(ParseArg(reader.bytes()));
          break;
        case 4:
          op.attrs.push_back(ParseAttr(reader.bytes()));
          break;
        case 16:
          op.is_aggregate = reader.varint() != 0;
          break;
        case 17:
          op.is_stateful = reader.varint() != 0;
          break;
        case 18:
          op.is_commutative = reader.varint() != 0;
          break;
        case 19:
          op.allows_uninitialized_input = reader.varint() != 0;
          break;
        default:
          break;
      }
    }
    return op;
  }

 private:
  static Arg ParseArg(absl::string_view bytes) {
    Arg arg;
    for (internal::WireReader reader(bytes); reader.Next();) {
      switch (reader.number()) {
        case 1:
          arg.name = std::string(reader.bytes());
          break;
        case 3:
          arg.type = static_cast<DataType>(reader.varint());
          break;
        case 4:
          arg.type_attr = std::string(reader.bytes());
          break;
        case 5:
          arg.number_attr = std::string(reader.bytes());
          break;
        case 6:
          arg.type_list_attr = std::string(reader.bytes());
          break;
        case 16:
          arg.is_ref = reader.varint() != 0;
          break;
        default:
          break;
      }
    }
    return arg;
  }

  static Attr ParseAttr(absl::string_view bytes) {
    Attr attr;
    for (internal::WireReader reader(bytes); reader.Next();) {
      if (reader.number() == 1) attr.name = std::string(reader.bytes());
      if (reader.number() == 2) attr.type = std::string(reader.bytes());
      if (reader.number() == 3) {
        attr.has_default = true;
        attr.default_value = std::string(reader.bytes());
      }
    }
    return attr;
  }
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_OP_SIGNATURE_H_
