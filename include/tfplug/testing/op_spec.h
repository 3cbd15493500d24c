// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_OP_SPEC_H_
#define TFPLUG_TESTING_OP_SPEC_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/internal/graph_text_parser.h"
#include "tfplug/testing/op_registry.h"

#pragma GCC visibility push(hidden)

// Definitions of ops from TensorFlow's specifications: "x: N * T" of an input,
// "T: {float, half} = DT_FLOAT" of an attribute.
namespace tfplug::testing {

// Returns the name before the colon of a specification, and the rest.
inline std::pair<std::string, std::string> SplitSpec(absl::string_view spec) {
  const size_t colon = spec.find(':');
  const auto trim = [](absl::string_view text) {
    return std::string(absl::StripAsciiWhitespace(text));
  };
  if (colon == spec.npos) return {trim(spec), ""};
  return {trim(spec.substr(0, colon)), trim(spec.substr(colon + 1))};
}

// Returns a serialized OpDef.AttrDef, and its type. The values that an attribute
// may have are left out.
inline absl::StatusOr<std::string> AttrFromSpec(const std::string& spec,
                                                std::string& type) {
  const auto [name, rest] = SplitSpec(spec);
  const size_t equals =
      rest.find('=', rest.find('=') != rest.npos && rest.find(">=") != rest.npos
                         ? rest.find(">=") + 2
                         : 0);
  type = std::string(
      absl::StripAsciiWhitespace(rest.substr(0, rest.find_first_of(">="))));
  const bool is_list = type.compare(0, 5, "list(") == 0;
  if (type.find('{') != type.npos || type == "numbertype" ||
      type == "realnumbertype") {
    const bool is_string = type.find_first_of("'\"") != type.npos;
    type = is_string ? "string" : "type";
    if (is_list) type = absl::StrCat("list(", type, ")");
  }
  std::string attr;
  internal::AppendField(attr, 1, name);
  internal::AppendField(attr, 2, type);
  if (equals == rest.npos) return attr;
  std::string value =
      absl::StrReplaceAll(rest.substr(equals + 1), {{"'", "\""}});
  if (type == "type" || type == "list(type)") {
    value = absl::AsciiStrToLower(absl::StrReplaceAll(value, {{"DT_", ""}}));
  }
  const std::string text = absl::StrCat("v=", value, "}");
  GraphTextParser parser(text);
  TextNode node;
  parser.ParseAttrs(node);
  if (!parser.status().ok()) return parser.status();
  internal::AppendField(attr, 3, node.attrs[0].second);
  return attr;
}

// Returns a serialized OpDef.ArgDef. `attr_types` has the type of each attribute.
inline absl::StatusOr<std::string> ArgFromSpec(
    const std::string& spec,
    const std::map<std::string, std::string>& attr_types) {
  auto [name, type] = SplitSpec(spec);
  std::string arg;
  internal::AppendField(arg, 1, name);
  const bool is_ref = type.compare(0, 4, "Ref(") == 0;
  if (is_ref) type = type.substr(4, type.size() - 5);
  const size_t star = type.find('*');
  if (star != type.npos) {
    internal::AppendField(
        arg, 5, std::string(absl::StripAsciiWhitespace(type.substr(0, star))));
    type = std::string(absl::StripAsciiWhitespace(type.substr(star + 1)));
  }
  if (is_ref) internal::AppendField(arg, 16, uint64_t{1});
  const auto attr = attr_types.find(type);
  if (attr != attr_types.end()) {
    internal::AppendField(arg, attr->second == "list(type)" ? 6 : 4, type);
    return arg;
  }
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    if (type != DataTypeName(static_cast<DataType>(i))) continue;
    internal::AppendField(arg, 3, static_cast<uint64_t>(i));
    return arg;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the argument \"", spec, "\" has no type or attribute '", type, "'"));
}

// Returns a serialized OpDef. INVALID_ARGUMENT, with the specification, if one is
// malformed.
inline absl::StatusOr<std::string> OpDefFromSpecs(
    const std::string& name, const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs,
    const std::vector<std::string>& attrs) {
  std::string attr_defs, op_def;
  std::map<std::string, std::string> attr_types;
  for (const std::string& spec : attrs) {
    std::string type;
    auto attr = AttrFromSpec(spec, type);
    if (!attr.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the attribute \"", spec,
                                                     "\" of ", name, ": ",
                                                     attr.status().message()));
    }
    attr_types[SplitSpec(spec).first] = type;
    internal::AppendField(attr_defs, 4, *attr);
  }
  internal::AppendField(op_def, 1, name);
  for (const bool is_input : {true, false}) {
    for (const std::string& spec : is_input ? inputs : outputs) {
      auto arg = ArgFromSpec(spec, attr_types);
      if (!arg.ok()) return arg.status();
      internal::AppendField(op_def, is_input ? 2 : 3, *arg);
    }
  }
  return op_def + attr_defs;
}

// Returns the serialized OpDef of an op in KnownOpDefs(), or that a plug-in has
// registered. NOT_FOUND, if there is none.
inline absl::StatusOr<std::string> FindOpDef(const std::string& op) {
  const auto known = KnownOpDefs().find(op);
  if (known != KnownOpDefs().end()) return known->second;
  const auto* const defined = FindRegisteredOp(op);
  if (defined == nullptr) {
    return absl::NotFoundError(
        "its op is not known; add its definition to KnownOpDefs()");
  }
  return OpDefFromSpecs(op, defined->inputs, defined->outputs, defined->attrs);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_OP_SPEC_H_
