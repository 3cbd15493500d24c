// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_DEF_PARSER_H_
#define TFPLUG_KERNEL_INTERNAL_OP_DEF_PARSER_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/kernel/op_def.h"

// TensorFlow ends the process over an op definition that it does not
// understand, and over a second one of the same name. So they are looked at
// before it sees them: names, kinds of attributes, types of arguments; of
// default values, how they begin.
namespace tfplug::internal {

// Reads a spec from left to right.
class SpecScanner {
 public:
  explicit SpecScanner(absl::string_view spec) : rest_(spec) {}

  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) {
      rest_.remove_prefix(1);
    }
  }
  bool Take(absl::string_view text) {
    SkipSpace();
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // Letters, digits and underscores; may be empty.
  std::string TakeWord() {
    SkipSpace();
    size_t n = 0;
    while (n < rest_.size() && IsWord(rest_[n])) ++n;
    const std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }
  bool TakeNumber() {
    Take("-");
    const std::string digits = TakeWord();
    return !digits.empty() &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  }
  // Up to the quote that closes the one at the beginning.
  bool TakeQuoted() {
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
  absl::string_view rest() {
    SkipSpace();
    return rest_;
  }

  static bool IsWord(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  }

 private:
  absl::string_view rest_;
};

inline bool IsDataTypeName(absl::string_view name) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    if (name == kDataTypes[i].name) return true;
  }
  return false;
}
inline bool IsTypeClass(absl::string_view name) {
  return name == "type" || name == "numbertype" || name == "numerictype" ||
         name == "realnumbertype" || name == "realnumerictype" ||
         name == "quantizedtype";
}

class OpDefChecker {
 public:
  static absl::Status Check(const OpDef& def) {
    OpDefChecker checker;
    const std::string& name = def.name();
    bool ok = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
    for (char c : name) ok = ok && (SpecScanner::IsWord(c) || c == '>');
    if (!ok) {
      return absl::InvalidArgumentError(
          "the name must begin with a capital letter and hold letters, digits "
          "and underscores");
    }
    for (const std::string& spec : def.attrs()) {
      if (!checker.TakeAttr(spec)) return Bad("attribute", spec);
    }
    for (auto* args : {&def.inputs(), &def.outputs()}) {
      std::set<std::string> names;
      for (const std::string& spec : *args) {
        if (!checker.TakeArg(spec, names)) {
          return Bad(args == &def.inputs() ? "input" : "output", spec);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Bad(const char* what, const std::string& spec) {
    return absl::InvalidArgumentError(std::string("cannot read the ") + what +
                                      " '" + spec + "'");
  }

  // "NAME: KIND [>= NUMBER] [= DEFAULT]"
  bool TakeAttr(const std::string& spec) {
    SpecScanner scanner(spec);
    const std::string name = scanner.TakeWord();
    if (name.empty() || name[0] == '_' || (name[0] >= '0' && name[0] <= '9')) {
      return false;
    }
    if (!scanner.Take(":")) return false;
    const bool is_list = scanner.Take("list(");
    std::string kind = TakeKind(scanner);
    if (kind.empty() || (is_list && !scanner.Take(")"))) return false;
    if (scanner.Take(">=") &&
        ((!is_list && kind != "int") || !scanner.TakeNumber())) {
      return false;
    }
    if (scanner.Take("=") && !LooksLike(is_list ? "list" : kind, scanner)) {
      return false;
    }
    if (!scanner.rest().empty()) return false;
    return attrs_.emplace(name, is_list ? "list(" + kind + ")" : kind).second;
  }

  // "" if it is none; the many ways to say "type" are "type".
  static std::string TakeKind(SpecScanner& scanner) {
    if (scanner.Take("{")) return TakeChoice(scanner);
    const std::string word = scanner.TakeWord();
    if (IsTypeClass(word)) return "type";
    for (const char* kind :
         {"string", "int", "float", "bool", "shape", "tensor", "func"}) {
      if (word == kind) return word;
    }
    return "";
  }
  // What is between braces: types, or strings in quotes.
  static std::string TakeChoice(SpecScanner& scanner) {
    std::string kind;
    do {
      std::string element = "string";
      if (!scanner.TakeQuoted()) {
        const std::string word = scanner.TakeWord();
        if (!IsDataTypeName(word) && !IsTypeClass(word)) return "";
        element = "type";
      }
      if (!kind.empty() && kind != element) return "";
      kind = element;
    } while (scanner.Take(","));
    return scanner.Take("}") ? kind : "";
  }
  // Takes the whole default.
  static bool LooksLike(const std::string& kind, SpecScanner& scanner) {
    if (kind == "bool") return scanner.Take("true") || scanner.Take("false");
    if (kind == "int") return scanner.TakeNumber();
    if (kind == "string") return scanner.TakeQuoted();
    if (kind == "type") return scanner.TakeWord().substr(0, 3) == "DT_";
    absl::string_view text = scanner.rest();
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.empty()) return false;
    const bool ok =
        kind == "list" ? text[0] == '[' && text.back() == ']'
        : kind == "float"
            ? text.find_first_not_of("0123456789.eE+-infa") == text.npos
            : text[0] == '{' && text.back() == '}';
    return ok && scanner.Take(scanner.rest());
  }

  // "NAME: TYPE", "NAME: N * TYPE", "NAME: TYPES", "NAME: Ref(TYPE)"
  bool TakeArg(const std::string& spec, std::set<std::string>& names) const {
    SpecScanner scanner(spec);
    const std::string name = scanner.TakeWord();
    if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
    for (char c : name) {
      if (c >= 'A' && c <= 'Z') return false;
    }
    if (!scanner.Take(":") || !names.insert(name).second) return false;
    const bool is_ref = scanner.Take("Ref(");
    std::string type = scanner.TakeWord();
    bool is_list = false;
    if (scanner.Take("*")) {
      if (KindOf(type) != "int") return false;
      is_list = true;
      type = scanner.TakeWord();
    }
    if (is_ref && !scanner.Take(")")) return false;
    if (!scanner.rest().empty()) return false;
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

// The names of all ops that core has by now, those of other plug-ins too. None
// where it does not tell.
inline std::set<std::string> KnownOps() {
  std::set<std::string> names;
  if (tensorflow.TF_GetAllOpList == nullptr ||
      tensorflow.TF_GetBuffer == nullptr) {
    return names;
  }
  const Buffer op_list(tensorflow.TF_GetAllOpList());
  for (WireReader list(op_list.bytes()); list.Next();) {
    WireReader op(list.bytes());
    if (list.number() == 1 && op.Next() && op.number() == 1) {
      names.emplace(op.bytes());
    }
  }
  return names;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_OP_DEF_PARSER_H_
