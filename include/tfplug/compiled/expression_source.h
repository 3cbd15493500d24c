// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_EXPRESSION_SOURCE_H_
#define TFPLUG_COMPILED_EXPRESSION_SOURCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/compiled/prelude.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduction.h"

#pragma GCC visibility push(hidden)

// Expressions as statements of a C-like language.
namespace tfplug::compiled_internal {

// Returns the name of the type in memory (is_stored) or in registers.
inline const char* SourceType(DataType type, bool is_stored) {
  switch (type) {
    case DataType::kFloat:
      return "f32";
    case DataType::kDouble:
      return "f64";
    case DataType::kHalf:
    case DataType::kBfloat16:
      return is_stored ? "u16" : "f32";
    case DataType::kInt8:
      return is_stored ? "i8" : "i32";
    case DataType::kInt16:
      return is_stored ? "i16" : "i32";
    case DataType::kInt32:
      return "i32";
    case DataType::kInt64:
      return "i64";
    case DataType::kUint8:
      return is_stored ? "u8" : "u32";
    case DataType::kUint16:
      return is_stored ? "u16" : "u32";
    case DataType::kUint32:
      return "u32";
    case DataType::kUint64:
      return "u64";
    default:  // bool
      return is_stored ? "u8" : "i32";
  }
}

inline std::string Unsigned64Text(uint64_t value) {
  const uint64_t high = value >> 32;
  const auto low = static_cast<uint32_t>(value);
  return high == 0 ? absl::StrCat("u64(", low, "u)")
                   : absl::StrCat("(u64(", high, "u) << 32 | ", low, "u)");
}

inline std::string FloatText(double value, bool is_double,
                             const SourceParts& parts) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(is_double ? value : static_cast<double>(narrow))) {
    uint64_t wide_bits;
    uint32_t bits;
    std::memcpy(&wide_bits, &value, sizeof(wide_bits));
    std::memcpy(&bits, &narrow, sizeof(bits));
    return is_double
               ? absl::StrCat("f64_of_bits(", Unsigned64Text(wide_bits), ")")
               : absl::StrCat("f32_of_bits(", bits, "u)");
  }
  char text[40];
  std::snprintf(text, sizeof(text), is_double ? "%.17g" : "%.9g",
                is_double ? value : static_cast<double>(narrow));
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  result += is_double ? parts.language().f64_suffix : "f";
  return value < 0 || std::signbit(value) ? absl::StrCat("(", result, ")")
                                          : result;
}

// Returns a constant, whose bits are those of Instruction::bits.
inline std::string ConstantText(DataType type, uint64_t bits,
                                const SourceParts& parts) {
  switch (ComputeType(type)) {
    case DataType::kFloat:
    case DataType::kDouble: {
      double real;
      std::memcpy(&real, &bits, sizeof(real));
      return FloatText(real, type == DataType::kDouble, parts);
    }
    case DataType::kInt32:
      return absl::StrCat("i32(", static_cast<uint32_t>(bits), "u)");
    case DataType::kInt64:
      return absl::StrCat("i64(", Unsigned64Text(bits), ")");
    case DataType::kUint32:
      return absl::StrCat(static_cast<uint32_t>(bits), "u");
    case DataType::kUint64:
      return Unsigned64Text(bits);
    default:
      return bits != 0 ? "1" : "0";
  }
}

// Returns `x`, a stored value, as it is computed in.
inline std::string WidenText(DataType type, const std::string& x,
                             SourceParts& parts) {
  switch (type) {
    case DataType::kHalf:
      parts.Add(SourceParts::kHalf);
      return absl::StrCat("f32_of_f16(u32(", x, "))");
    case DataType::kBfloat16:
      parts.Add(SourceParts::kBfloat16);
      return absl::StrCat("f32_of_bf16(u32(", x, "))");
    case DataType::kBool:
      return absl::StrCat("i32(u32(", x, ") != 0u)");
    default:
      if (ComputeType(type) == type) return x;
      return absl::StrCat(SourceType(type, false), "(", x, ")");
  }
}

// Returns `x`, a computed value of type `from`, as it is stored.
inline std::string ConvertText(DataType from, DataType to, const std::string& x,
                               SourceParts& parts) {
  if (from == to)
    return to == DataType::kBool ? absl::StrCat("u8(", x, ")") : x;
  switch (to) {
    case DataType::kHalf:
      parts.Add(SourceParts::kHalf);
      return absl::StrCat("f16_of_f32(f32(", x, "))");
    case DataType::kBfloat16:
      parts.Add(SourceParts::kBfloat16);
      return absl::StrCat("bf16_of_f32(f32(", x, "))");
    case DataType::kBool:
      return absl::StrCat("u8(i32(", x, " != 0))");
    default:
      break;
  }
  const char* const stored = SourceType(to, true);
  if (!IsFloat(from) || IsFloat(to)) {
    return absl::StrCat(stored, "(", x, ")");
  }
  parts.Add(from == DataType::kDouble ? SourceParts::kFloatToInteger64
                                      : SourceParts::kFloatToInteger32);
  const char* const wide = to == DataType::kUint64   ? "u64"
                           : to == DataType::kInt64  ? "i64"
                           : to == DataType::kUint32 ? "i64"
                                                     : "i32";
  return absl::StrCat(stored, "(", wide, "_of_", SourceType(from, false), "(",
                      x, "))");
}

// Returns the definition of an opcode (opcodes.def) for values a and b of
// `type`, in which names of functions are those of the prelude.
inline std::string DefinitionText(Opcode opcode, DataType type,
                                  const std::string& a, const std::string& b,
                                  SourceParts& parts) {
  struct Row {
    Opcode opcode;
    const char *floats, *integers, *bools;
    bool result;
  };
  static constexpr Row kRows[] = {
#define TFPLUG_INTERNAL_OPCODE(name, text, function, arity, result, floats, \
                               integers, bools, ulps)                       \
  {Opcode::k##name, #floats, #integers, #bools, #result[0] == 'b'},
#include "tfplug/ir/opcodes.def"
  };
  const Row* row = kRows;
  while (row->opcode != opcode) ++row;
  const bool is_float = IsFloat(type), is_wide = DataTypeSize(type) == 8;
  const char* const name = SourceType(type, false);
  absl::string_view rest = is_float                  ? row->floats
                           : type == DataType::kBool ? row->bools
                                                     : row->integers;
  std::string text;
  while (!rest.empty()) {
    size_t n = 0;
    while (n < rest.size() && absl::ascii_isalnum(rest[n])) ++n;
    const absl::string_view word = rest.substr(0, n);
    if (word == "a") {
      text += a;
    } else if (word == "b") {
      text += b;
    } else if (word == "T") {
      text += name;
    } else if (word == "U") {
      text += is_wide ? "u64" : "u32";
    } else if (n == 0 || absl::ascii_isdigit(word[0])) {
      n = std::max<size_t>(n, 1);
      absl::StrAppend(&text, rest.substr(0, n));
    } else if (!is_float) {
      parts.Add(SourceParts::kIntegers);
      absl::StrAppend(&text, name, "_", word);
    } else {
      text += parts.Function(word, is_wide);
    }
    rest.remove_prefix(n);
  }
  return row->result ? absl::StrCat("i32", text) : text;
}

// Writes the statements of an expression.
class ExpressionSource {
 public:
  // Returns the stored value of input `k`, or of its axis at an index.
  using Load = std::function<std::string(int k)>;
  using LoadElement = std::function<std::string(int k, const std::string& i)>;

  // Values are named `prefix` and their index.
  ExpressionSource(const Expression& expression, std::string prefix,
                   SourceParts& parts)
      : expression_(expression), prefix_(std::move(prefix)), parts_(parts) {}

  std::string Statements(const Load& load, const LoadElement& load_element) {
    std::string text;
    const auto& all = expression_.instructions();
    for (size_t i = 0; i < all.size(); ++i) {
      const Instruction& in = all[i];
      if (in.opcode == Opcode::kConstant) continue;
      absl::StrAppend(&text, "EXACT const ", SourceType(in.type, false), " ",
                      prefix_, i, " = ");
      if (in.opcode == Opcode::kInput) {
        text += load(in.a);
      } else if (in.opcode == Opcode::kElement) {
        text += load_element(in.a, Name(in.b));
      } else {
        text += Compute(in);
      }
      text += ";\n";
    }
    return text;
  }

  // Returns output `k` as it is stored.
  std::string Output(size_t k) const {
    const Expression::Output& output = expression_.outputs()[k];
    return ConvertText(TypeOf(output.value), output.type, Name(output.value),
                       parts_);
  }
  // Returns output `k` as it is computed.
  std::string Value(size_t k) const {
    return Name(expression_.outputs()[k].value);
  }

 private:
  const Instruction& At(int32_t i) const {
    return expression_.instructions()[static_cast<size_t>(i)];
  }
  DataType TypeOf(int32_t i) const { return ComputeType(At(i).type); }
  std::string Name(int32_t i) const {
    const Instruction& in = At(i);
    if (in.opcode == Opcode::kConstant)
      return ConstantText(in.type, in.bits, parts_);
    return absl::StrCat(prefix_, i);
  }

  std::string Compute(const Instruction& in) const {
    const std::string a = Name(in.a);
    const DataType type = TypeOf(in.a);
    switch (in.opcode) {
      case Opcode::kCast:
        return WidenText(in.type, ConvertText(type, in.type, a, parts_),
                         parts_);
      case Opcode::kBitcast:
        return Bitcast(type, in.type, a);
      case Opcode::kSelect:
        return absl::StrCat(a, " != 0 ? ", Name(in.b), " : ", Name(in.c));
      default:
        return DefinitionText(in.opcode, type, a, in.b < 0 ? "" : Name(in.b),
                              parts_);
    }
  }

  static std::string Bitcast(DataType from, DataType to, const std::string& a) {
    const char* const name = SourceType(to, false);
    if (IsFloat(from) == IsFloat(to)) return absl::StrCat(name, "(", a, ")");
    return IsFloat(to) ? absl::StrCat(name, "_of_bits(",
                                      to == DataType::kDouble ? "u64(" : "u32(",
                                      a, "))")
                       : absl::StrCat(name, "(bits_of_",
                                      SourceType(from, false), "(", a, "))");
  }

  const Expression& expression_;
  const std::string prefix_;
  SourceParts& parts_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_EXPRESSION_SOURCE_H_
