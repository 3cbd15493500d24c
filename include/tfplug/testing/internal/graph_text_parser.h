// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_GRAPH_TEXT_PARSER_H_
#define TFPLUG_TESTING_INTERNAL_GRAPH_TEXT_PARSER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/primitives/reference_value.h"
#include "tfplug/testing/node.h"

#pragma GCC visibility push(hidden)

// The parser of testing/graph_text.h.
namespace tfplug::testing {

// The elements of a constant.
struct TextTensor {
  DataType dtype = DataType::kFloat;
  Shape shape;
  std::string elements;  // in row-major order
};

// The nodes that one line of a graph's text describes.
struct TextNode {
  int line = 0;
  std::string text;  // of the line
  std::vector<std::string> names;
  std::string op;
  std::vector<std::string> inputs;    // "x" or "x:1"
  std::vector<std::string> controls;  // without "^"
  std::optional<std::string> device;
  std::vector<std::pair<std::string, std::string>> attrs;  // serialized
  std::vector<std::string> absent_attrs;
  // The type and shape before "="; the value after it if it is a constant.
  std::optional<std::pair<DataType, PartialShape>> output;
  std::optional<TextTensor> constant;
};

// Expands the type of a device, such as "CPU", to the name of the first one.
inline std::string DeviceName(absl::string_view device) {
  if (device.empty() || absl::StrContains(device, "/")) {
    return std::string(device);
  }
  return absl::StrCat("/job:localhost/replica:0/task:0/device:", device, ":0");
}

// Parses one line. The first error stops it, and is in status().
class GraphTextParser {
 public:
  explicit GraphTextParser(absl::string_view line) : rest_(line) {}

  const absl::Status& status() const { return status_; }

  TextNode ParseNode() {
    TextNode node;
    do {
      node.names.push_back(Word("the name of a node"));
    } while (Take(','));
    if (Take(':')) node.output = ParseOutput();
    Expect('=', "after the name; a node is written \"name = Op(inputs)\"");
    if (AtLiteral()) {
      node.constant = ParseConstant(node.output);
      node.op = "Const";
      if (Take('(')) ParseInputs(node);
    } else {
      node.op = Word("an op, a number or a list");
      Expect('(', "after the op");
      ParseInputs(node);
    }
    if (Take('@')) node.device = DeviceName(Until(" {"));
    if (Take('{')) ParseAttrs(node);
    if (!Peek().empty()) Fail("the end of the line");
    return node;
  }

  // Parses "a=1, b=true" up to "}".
  void ParseAttrs(TextNode& node) {
    if (Take('}')) return;
    do {
      if (Take('!')) {
        node.absent_attrs.push_back(Word("the name of an attribute"));
        continue;
      }
      const std::string name = Word("the name of an attribute");
      Expect('=', "after the name of an attribute");
      const AttrValue value = ParseValue();
      std::string bytes;
      std::visit([&bytes](const auto& v) { AppendAttrValue(bytes, v); }, value);
      node.attrs.emplace_back(name, bytes);
    } while (Take(','));
    Expect('}', "after the attributes");
  }

 private:
  absl::string_view Peek() { return rest_ = absl::StripAsciiWhitespace(rest_); }
  bool Take(char c) {
    if (!status_.ok() || Peek().empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Takes the characters up to one of `ends`.
  std::string Until(absl::string_view ends) {
    const std::string word(Peek().substr(0, rest_.find_first_of(ends)));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string Word(absl::string_view what) {
    const std::string word = Until(" ,:=()[]{}@\"");
    if (word.empty()) Fail(what);
    return word;
  }
  void Expect(char c, absl::string_view where) {
    if (!Take(c)) Fail(absl::StrCat("'", std::string(1, c), "' ", where));
  }
  // Fails at the rest of the line, or at `found`.
  void Fail(absl::string_view expected, absl::string_view found = {}) {
    if (!status_.ok()) return;
    if (!found.empty()) rest_ = found;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "expected ", expected, ", not ",
        rest_.empty() ? "the end of the line" : absl::StrCat("'", rest_, "'")));
  }

  // Parses "x, w:1, ^before" up to ")".
  void ParseInputs(TextNode& node) {
    if (Take(')')) return;
    do {
      const bool is_control = Take('^');
      auto& to = is_control ? node.controls : node.inputs;
      to.push_back(Until(" ,)"));
      if (to.back().empty()) Fail("an input");
    } while (Take(','));
    Expect(')', "after the inputs");
  }

  DataType ParseType() {
    const absl::string_view before = Peek();
    const std::string name = Word("a type");
    for (int i = 1; i < internal::kDataTypeCount; ++i) {
      const auto type = static_cast<DataType>(i);
      if (name == DataTypeName(type)) return type;
    }
    Fail("a type such as float", before);
    return DataType::kFloat;
  }
  // Parses "float", "float[2,?]" or "float[*]".
  std::pair<DataType, PartialShape> ParseOutput() {
    const DataType type = ParseType();
    return {type, Peek().substr(0, 1) == "[" ? ParseShape() : PartialShape()};
  }
  PartialShape ParseShape() {
    const absl::string_view before = Peek();
    Expect('[', "before the dimensions");
    const std::string dims = Until("]");
    Expect(']', "after the dimensions");
    if (dims == "*") return PartialShape();
    Shape shape;
    for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
      int64_t size = -1;
      dim = absl::StripAsciiWhitespace(dim);
      if (dim != "?" && !absl::SimpleAtoi(dim, &size)) {
        Fail("dimensions such as [2,?], or [*] for an unknown rank", before);
      }
      shape.add_dim(size);
    }
    return PartialShape(shape);
  }

  bool AtLiteral() {
    const absl::string_view next = Peek().substr(0, 1);
    return next == "[" || next == "-" ||
           (!next.empty() &&
            absl::ascii_isdigit(static_cast<unsigned char>(next[0])));
  }
  // Parses the value of a constant: a number, which fills the shape, or a list.
  TextTensor ParseConstant(
      const std::optional<std::pair<DataType, PartialShape>>& output) {
    TextTensor tensor;
    if (output.has_value()) tensor.dtype = output->first;
    const bool is_list = Take('[');
    int64_t count = 0;
    if (!is_list || !Take(']')) {
      do {
        AppendElement(tensor);
        ++count;
      } while (is_list && Take(','));
      if (is_list) Expect(']', "after the elements");
    }
    if (is_list) tensor.shape = Shape({count});
    if (output.has_value() && output->second.has_rank()) {
      tensor.shape = output->second.shape();
    }
    const int64_t size = tensor.shape.num_elements();
    if (is_list && size != count) {
      Fail(absl::StrCat(size, " elements instead of the ", count, " before"));
    }
    const std::string first = tensor.elements;
    for (int64_t i = 1; !is_list && i < size; ++i) tensor.elements += first;
    return tensor;
  }
  void AppendElement(TextTensor& tensor) {
    const absl::string_view before = Peek();
    const std::string word = Until(" ,](@{");
    int64_t integer = 0;
    double real = 0;
    const bool is_valid = IsFloat(tensor.dtype)
                              ? absl::SimpleAtod(word, &real)
                              : absl::SimpleAtoi(word, &integer);
    if (!is_valid) {
      Fail(absl::StrCat("a number of type ", DataTypeName(tensor.dtype)),
           before);
    }
    std::string element(DataTypeSize(tensor.dtype), '\0');
    primitives::WriteElement(tensor.dtype, {real, integer}, &element[0]);
    tensor.elements += element;
  }

  AttrValue ParseValue() {
    if (!Take('[')) return ParseScalar();
    if (Take(']')) return std::vector<int64_t>();
    const AttrValue first = ParseScalar();
    return std::visit([this](const auto& v) { return ParseRest(v); }, first);
  }
  // Parses the elements of a list after the first one.
  template <class T>
  AttrValue ParseRest(const T& first) {
    if constexpr (std::is_constructible_v<AttrValue, std::vector<T>>) {
      std::vector<T> list = {first};
      while (Take(',')) {
        AttrValue element = ParseScalar();
        T* const next = std::get_if<T>(&element);
        if (next == nullptr) {
          Fail("elements of one type");
          break;
        }
        list.push_back(*next);
      }
      Expect(']', "after the list");
      return list;
    }
    Fail("a list of scalars");
    return false;
  }
  AttrValue ParseScalar() {
    if (Take('@')) return Function{Word("the name of a function"), ""};
    if (Peek().substr(0, 1) == "\"") return ParseString();
    if (rest_.substr(0, 6) == "shape[") {
      rest_.remove_prefix(5);
      return ParseShape();
    }
    const absl::string_view before = rest_;
    const std::string word = Until(" ,]}");
    if (word == "true" || word == "false") return word == "true";
    int64_t integer = 0;
    if (absl::SimpleAtoi(word, &integer)) return integer;
    float real = 0;
    if (absl::SimpleAtof(word, &real)) return real;
    GraphTextParser type(word);
    const DataType dtype = type.ParseType();
    if (!type.status().ok()) {
      Fail(
          "true, 3, 0.5, \"text\", a type such as float, shape[2,?], "
          "@function, or a [list] of one of these",
          before);
    }
    return dtype;
  }
  AttrValue ParseString() {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    std::string text;
    if (end >= rest_.size() ||
        !absl::CUnescape(rest_.substr(1, end - 1), &text)) {
      Fail("a text that ends with '\"'");
      return text;
    }
    rest_.remove_prefix(end + 1);
    return text;
  }

  absl::string_view rest_;
  absl::Status status_;
};

// The text of a graph, by line.
struct ParsedGraphText {
  std::vector<TextNode> nodes;
  bool has_others = false;  // A line is "...".
};

// Returns whether a bracket is open at the end of the text.
inline bool EndsInBrackets(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += absl::StrContains("([{", text.substr(i, 1)) ? 1 : 0;
      depth -= absl::StrContains(")]}", text.substr(i, 1)) ? 1 : 0;
    }
  }
  return depth > 0;
}

inline absl::StatusOr<ParsedGraphText> ParseGraphText(absl::string_view text) {
  ParsedGraphText parsed;
  int number = 0;
  std::string line;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (line.empty()) number = static_cast<int>(i) + 1;
    absl::StrAppend(&line, line.empty() ? "" : " ",
                    absl::StripAsciiWhitespace(lines[i]));
    if (line.empty() || (EndsInBrackets(line) && i + 1 < lines.size()))
      continue;
    if (line == "...") {
      parsed.has_others = true;
      line.clear();
      continue;
    }
    GraphTextParser parser(line);
    parsed.nodes.push_back(parser.ParseNode());
    parsed.nodes.back().line = number;
    parsed.nodes.back().text = line;
    if (!parser.status().ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ", \"", line, "\": ", parser.status().message()));
    }
    line.clear();
  }
  return parsed;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_GRAPH_TEXT_PARSER_H_
