// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_DEF_VALIDATOR_H_
#define TFPLUG_KERNEL_INTERNAL_OP_DEF_VALIDATOR_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

// TensorFlow aborts on an op definition that it cannot parse, so definitions
// are validated before they are passed to TensorFlow: names, kinds of
// attributes, types of arguments and the form of default values.
namespace tfplug::kernel_internal {

// Parses a spec from left to right. Each Consume function first skips spaces,
// and returns false (or "") if the text does not match.
class SpecParser {
 public:
  explicit SpecParser(absl::string_view spec) : rest_(spec) {}

  bool Consume(absl::string_view text) {
    SkipSpace();
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // Consumes letters, digits and underscores.
  std::string ConsumeWord() {
    SkipSpace();
    size_t n = 0;
    while (n < rest_.size() && IsWord(rest_[n])) ++n;
    const std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }
  bool ConsumeInteger() {
    Consume("-");
    const std::string digits = ConsumeWord();
    return !digits.empty() &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  }
  // Consumes a string in single or double quotes.
  bool ConsumeQuoted() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const char quote = rest_[0];
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }
  bool AtEnd() { return rest().empty(); }
  absl::string_view rest() {
    SkipSpace();
    return rest_;
  }

  static bool IsWord(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) {
      rest_.remove_prefix(1);
    }
  }

  absl::string_view rest_;
};

inline bool IsDataTypeName(absl::string_view name) {
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    if (name == internal::kDataTypes[i].name) return true;
  }
  return false;
}
inline bool IsTypeClass(absl::string_view name) {
  return name == "type" || name == "numbertype" || name == "numerictype" ||
         name == "realnumbertype" || name == "realnumerictype" ||
         name == "quantizedtype";
}

class OpDefValidator {
 public:
  static absl::Status Validate(const OpDef& def) {
    OpDefValidator validator;
    const std::string& name = def.name();
    bool ok = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
    for (char c : name) ok = ok && (SpecParser::IsWord(c) || c == '>');
    if (!ok) {
      return absl::InvalidArgumentError(
          "an op's name must begin with a capital letter and consist of "
          "letters, digits and underscores");
    }
    for (const std::string& spec : def.attrs()) {
      if (!validator.AddAttr(spec)) return InvalidSpec("attribute", spec);
    }
    for (auto* args : {&def.inputs(), &def.outputs()}) {
      std::set<std::string> names;
      for (const std::string& spec : *args) {
        if (!validator.AddArg(spec, names)) {
          return InvalidSpec(args == &def.inputs() ? "input" : "output", spec);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status InvalidSpec(const char* part, const std::string& spec) {
    return absl::InvalidArgumentError(
        std::string("TensorFlow cannot parse the ") + part + " '" + spec +
        "'; tfplug/kernel/op_def.h has an example of each form");
  }

  // "NAME: KIND [>= NUMBER] [= DEFAULT]"
  bool AddAttr(const std::string& spec) {
    SpecParser parser(spec);
    const std::string name = parser.ConsumeWord();
    if (name.empty() || name[0] == '_' || (name[0] >= '0' && name[0] <= '9')) {
      return false;
    }
    if (!parser.Consume(":")) return false;
    const bool is_list = parser.Consume("list(");
    std::string kind = ConsumeKind(parser);
    if (kind.empty() || (is_list && !parser.Consume(")"))) return false;
    if (parser.Consume(">=") &&
        ((!is_list && kind != "int") || !parser.ConsumeInteger())) {
      return false;
    }
    if (parser.Consume("=") &&
        !ConsumeDefault(is_list ? "list" : kind, parser)) {
      return false;
    }
    if (!parser.AtEnd()) return false;
    return attrs_.emplace(name, is_list ? "list(" + kind + ")" : kind).second;
  }

  // Returns the kind, or "" if there is none. A choice of types and a class of
  // types, such as "numbertype", have the kind "type".
  static std::string ConsumeKind(SpecParser& parser) {
    if (parser.Consume("{")) return ConsumeChoice(parser);
    const std::string word = parser.ConsumeWord();
    if (IsTypeClass(word)) return "type";
    for (const char* kind :
         {"string", "int", "float", "bool", "shape", "tensor", "func"}) {
      if (word == kind) return word;
    }
    return "";
  }
  // Consumes a list of types or of quoted strings and the "}" after it.
  static std::string ConsumeChoice(SpecParser& parser) {
    std::string kind;
    do {
      std::string element = "string";
      if (!parser.ConsumeQuoted()) {
        const std::string word = parser.ConsumeWord();
        if (!IsDataTypeName(word) && !IsTypeClass(word)) return "";
        element = "type";
      }
      if (!kind.empty() && kind != element) return "";
      kind = element;
    } while (parser.Consume(","));
    return parser.Consume("}") ? kind : "";
  }
  // Consumes the rest of the spec as the default value.
  static bool ConsumeDefault(const std::string& kind, SpecParser& parser) {
    if (kind == "bool") {
      return parser.Consume("true") || parser.Consume("false");
    }
    if (kind == "int") return parser.ConsumeInteger();
    if (kind == "string") return parser.ConsumeQuoted();
    if (kind == "type") return parser.ConsumeWord().substr(0, 3) == "DT_";
    absl::string_view text = parser.rest();
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.empty()) return false;
    const bool ok =
        kind == "list" ? text[0] == '[' && text.back() == ']'
        : kind == "float"
            ? text.find_first_not_of("0123456789.eE+-infa") == text.npos
            : text[0] == '{' && text.back() == '}';
    return ok && parser.Consume(parser.rest());
  }

  // "NAME: TYPE", "NAME: N * TYPE", "NAME: TYPES", "NAME: Ref(TYPE)"
  bool AddArg(const std::string& spec, std::set<std::string>& names) const {
    SpecParser parser(spec);
    const std::string name = parser.ConsumeWord();
    if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
    for (char c : name) {
      if (c >= 'A' && c <= 'Z') return false;
    }
    if (!parser.Consume(":") || !names.insert(name).second) return false;
    const bool is_ref = parser.Consume("Ref(");
    std::string type = parser.ConsumeWord();
    bool is_list = false;
    if (parser.Consume("*")) {
      if (KindOf(type) != "int") return false;
      is_list = true;
      type = parser.ConsumeWord();
    }
    if (is_ref && !parser.Consume(")")) return false;
    if (!parser.AtEnd()) return false;
    const std::string kind = KindOf(type);
    return kind == "type" || (kind == "list(type)" && !is_list && !is_ref) ||
           (kind.empty() && IsDataTypeName(type));
  }
  std::string KindOf(const std::string& attr) const {
    const auto found = attrs_.find(attr);
    return found == attrs_.end() ? "" : found->second;
  }

  std::map<std::string, std::string> attrs_;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_DEF_VALIDATOR_H_
