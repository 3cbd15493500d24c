// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_EXPRESSION_SOURCE_H_
#define TFPLUG_COMPILED_EXPRESSION_SOURCE_H_

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

inline std::string FloatText(double value, bool is_double) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(is_double ? value : static_cast<double>(narrow))) {
    uint64_t wide_bits;
    uint32_t bits;
    std::memcpy(&wide_bits, &value, sizeof(wide_bits));
    std::memcpy(&bits, &narrow, sizeof(bits));
    return is_double ? absl::StrCat("f64_of_bits(", wide_bits, "ul)")
                     : absl::StrCat("f32_of_bits(", bits, "u)");
  }
  char text[40];
  std::snprintf(text, sizeof(text), is_double ? "%.17g" : "%.9g",
                is_double ? value : static_cast<double>(narrow));
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  if (!is_double) result += "f";
  return value < 0 || std::signbit(value) ? absl::StrCat("(", result, ")")
                                          : result;
}

// Returns a constant, whose bits are those of Instruction::bits.
inline std::string ConstantText(DataType type, uint64_t bits) {
  const auto value = static_cast<int64_t>(bits);
  switch (ComputeType(type)) {
    case DataType::kFloat:
    case DataType::kDouble: {
      double real;
      std::memcpy(&real, &bits, sizeof(real));
      return FloatText(real, type == DataType::kDouble);
    }
    case DataType::kInt32:
      return absl::StrCat("((i32)", static_cast<uint32_t>(bits), "u)");
    case DataType::kInt64:
      if (value == std::numeric_limits<int64_t>::min()) {
        return "(-9223372036854775807l - 1)";
      }
      return absl::StrCat("((i64)", value, "l)");
    case DataType::kUint32:
      return absl::StrCat(static_cast<uint32_t>(bits), "u");
    case DataType::kUint64:
      return absl::StrCat(bits, "ul");
    default:
      return bits != 0 ? "1" : "0";
  }
}

// Returns `x`, a stored value, as it is computed in.
inline std::string WidenText(DataType type, const std::string& x,
                             uint32_t* needs) {
  switch (type) {
    case DataType::kHalf:
      *needs |= kNeedsHalf;
      return absl::StrCat("f32_of_f16(", x, ")");
    case DataType::kBfloat16:
      *needs |= kNeedsBfloat16;
      return absl::StrCat("f32_of_bf16(", x, ")");
    case DataType::kBool:
      return absl::StrCat("(", x, " != 0)");
    default:
      if (ComputeType(type) == type) return x;
      return absl::StrCat("(", SourceType(type, false), ")", x);
  }
}

// Returns `x`, a computed value of type `from`, as it is stored.
inline std::string ConvertText(DataType from, DataType to, const std::string& x,
                               uint32_t* needs) {
  if (from == to) return to == DataType::kBool ? absl::StrCat("(u8)", x) : x;
  switch (to) {
    case DataType::kHalf:
      *needs |= kNeedsHalf;
      return absl::StrCat("f16_of_f32((f32)", x, ")");
    case DataType::kBfloat16:
      *needs |= kNeedsBfloat16;
      return absl::StrCat("bf16_of_f32((f32)", x, ")");
    case DataType::kBool:
      return absl::StrCat("(u8)(", x, " != 0)");
    default:
      break;
  }
  const char* const stored = SourceType(to, true);
  if (!IsFloat(from) || IsFloat(to)) {
    return absl::StrCat("(", stored, ")", x);
  }
  *needs |= kNeedsFloatToInteger;
  const char* const wide = to == DataType::kUint64   ? "u64"
                           : to == DataType::kInt64  ? "i64"
                           : to == DataType::kUint32 ? "i64"
                                                     : "i32";
  return absl::StrCat("(", stored, ")", wide, "_of_", SourceType(from, false),
                      "(", x, ")");
}

// Returns the combination of two values of a Reduce.
inline std::string CombineText(ReduceKind kind, DataType type,
                               const std::string& a, const std::string& b) {
  const bool is_bool = type == DataType::kBool;
  const char* const name = SourceType(type, false);
  const bool is_sum = kind == ReduceKind::kSum;
  if (is_bool) {
    const bool is_any = is_sum || kind == ReduceKind::kMax;
    return absl::StrCat("(", a, is_any ? " | " : " & ", b, ")");
  }
  if (is_sum || kind == ReduceKind::kProduct) {
    const char* const sign = is_sum ? " + " : " * ";
    if (IsFloat(type)) return absl::StrCat("(", a, sign, b, ")");
    const char* const u = DataTypeSize(type) == 8 ? "u64" : "u32";
    return absl::StrCat("(", name, ")((", u, ")", a, sign, "(", u, ")", b, ")");
  }
  const char* const order = kind == ReduceKind::kMax ? " > " : " < ";
  const std::string keeps_nan =
      IsFloat(type) ? absl::StrCat(" || ", a, " != ", a) : "";
  return absl::StrCat("(", a, order, b, keeps_nan, " ? ", a, " : ", b, ")");
}

// Writes the statements of an expression.
class ExpressionSource {
 public:
  // Returns the stored value of input `k`, or of its axis at an index.
  using Load = std::function<std::string(int k)>;
  using LoadElement = std::function<std::string(int k, const std::string& i)>;

  // Values are named `prefix` and their index.
  ExpressionSource(const Expression& expression, std::string prefix,
                   uint32_t* needs)
      : expression_(expression), prefix_(std::move(prefix)), needs_(needs) {}

  std::string Statements(const Load& load, const LoadElement& load_element) {
    std::string text;
    const auto& all = expression_.instructions();
    for (size_t i = 0; i < all.size(); ++i) {
      const Instruction& in = all[i];
      if (in.opcode == Opcode::kConstant) continue;
      absl::StrAppend(&text, "const ", SourceType(in.type, false), " ", prefix_,
                      i, " = ");
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
                       needs_);
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
    if (in.opcode == Opcode::kConstant) return ConstantText(in.type, in.bits);
    return absl::StrCat(prefix_, i);
  }

  std::string Compute(const Instruction& in) const {
    const std::string a = Name(in.a);
    const DataType type = TypeOf(in.a);
    switch (in.opcode) {
      case Opcode::kCast:
        return WidenText(in.type, ConvertText(type, in.type, a, needs_),
                         needs_);
      case Opcode::kBitcast:
        return Bitcast(type, in.type, a);
      case Opcode::kSelect:
        return absl::StrCat(a, " ? ", Name(in.b), " : ", Name(in.c));
      default:
        break;
    }
    if (ir::InfoOf(in.opcode).arity == 2) {
      return Binary(in.opcode, type, a, Name(in.b));
    }
    return IsFloat(type) ? FloatUnary(in.opcode, type, a)
                         : IntegerUnary(in.opcode, type, a);
  }

  static std::string Bitcast(DataType from, DataType to, const std::string& a) {
    const char* const name = SourceType(to, false);
    if (IsFloat(from) == IsFloat(to)) return absl::StrCat("(", name, ")", a);
    return IsFloat(to) ? absl::StrCat(name, "_of_bits(", a, ")")
                       : absl::StrCat("(", name, ")bits_of_",
                                      SourceType(from, false), "(", a, ")");
  }

  // Returns a call of a function of the dialect's math library.
  static std::string Math(absl::string_view name, DataType type,
                          const std::string& arguments) {
    return absl::StrCat(type == DataType::kDouble ? "MATH64(" : "MATH32(", name,
                        ")(", arguments, ")");
  }

  static std::string FloatUnary(Opcode opcode, DataType type,
                                const std::string& a) {
    switch (opcode) {
      case Opcode::kNeg:
        return absl::StrCat("-", a);
      case Opcode::kIsNan:
        return absl::StrCat("(", a, " != ", a, ")");
      case Opcode::kSign:
        return absl::StrCat(a, " != ", a, " ? ", a, " : (",
                            SourceType(type, false), ")((", a, " > 0) - (", a,
                            " < 0))");
      case Opcode::kRsqrt:
        return absl::StrCat(type == DataType::kDouble ? "RSQRT64(" : "RSQRT32(",
                            a, ")");
      case Opcode::kAbs:
        return Math("fabs", type, a);
      default:  // is named after the C function
        return Math(ir::InfoOf(opcode).name, type, a);
    }
  }

  static std::string IntegerUnary(Opcode opcode, DataType type,
                                  const std::string& a) {
    const char* const name = SourceType(type, false);
    const char* const u = DataTypeSize(type) == 8 ? "u64" : "u32";
    switch (opcode) {
      case Opcode::kNeg:
        return absl::StrCat("(", name, ")(0 - (", u, ")", a, ")");
      case Opcode::kAbs:
        return absl::StrCat("(", a, " < 0 ? (", name, ")(0 - (", u, ")", a,
                            ") : ", a, ")");
      case Opcode::kSign:
        return absl::StrCat("(", name, ")((", a, " > 0) - (", a, " < 0))");
      default:  // kNot
        return absl::StrCat(type == DataType::kBool ? "!" : "~", a);
    }
  }

  std::string Binary(Opcode opcode, DataType type, const std::string& a,
                     const std::string& b) const {
    const char* const name = SourceType(type, false);
    const bool is_float = IsFloat(type);
    const auto infix = [&](const char* sign) {
      return absl::StrCat("(", a, " ", sign, " ", b, ")");
    };
    const auto arithmetic = [&](const char* sign) {
      if (is_float) return infix(sign);
      const char* const u = DataTypeSize(type) == 8 ? "u64" : "u32";
      return absl::StrCat("(", name, ")((", u, ")", a, " ", sign, " (", u, ")",
                          b, ")");
    };
    const auto function = [&](const char* suffix) {
      *needs_ |= kNeedsIntegerFunctions;
      return absl::StrCat(name, suffix, "(", a, ", ", b, ")");
    };
    const auto math = [&](const char* function_name) {
      return Math(function_name, type, absl::StrCat(a, ", ", b));
    };
    switch (opcode) {
      case Opcode::kAdd:
        return arithmetic("+");
      case Opcode::kSub:
        return arithmetic("-");
      case Opcode::kMul:
        return arithmetic("*");
      case Opcode::kDiv:
        return is_float ? infix("/") : function("_div");
      case Opcode::kRem:
        return is_float ? math("fmod") : function("_rem");
      case Opcode::kPow:
        return is_float ? math("pow") : function("_pow");
      case Opcode::kAtan2:
        return math("atan2");
      case Opcode::kMax:
        return CombineText(ReduceKind::kMax, type, a, b);
      case Opcode::kMin:
        return CombineText(ReduceKind::kMin, type, a, b);
      case Opcode::kAnd:
        return infix("&");
      case Opcode::kOr:
        return infix("|");
      case Opcode::kXor:
        return infix("^");
      case Opcode::kShl:
        return function("_shl");
      case Opcode::kShr:
        return function("_shr");
      case Opcode::kEq:
        return infix("==");
      case Opcode::kNe:
        return infix("!=");
      case Opcode::kLt:
        return infix("<");
      default:
        return infix("<=");
    }
  }

  const Expression& expression_;
  const std::string prefix_;
  uint32_t* const needs_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_EXPRESSION_SOURCE_H_
