// SPDX-License-Identifier: Apache-2.0
#include "tfplug/ir/expression.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tfplug/host/host_backend.h"
#include "tfplug/ir/compose.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/ir/value.h"
#include "tfplug/primitives/reference.h"
#include "tfplug/testing/internal/random_values.h"

namespace expression_test {
namespace {

using tfplug::DataType;
using tfplug::Expression;
using tfplug::Instruction;
using tfplug::MakeExpression;
using tfplug::Opcode;
using tfplug::Operand;
using tfplug::Value;

constexpr DataType kFloat = DataType::kFloat;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns the result of a function of Values for some inputs on the host, which
// the oracle confirms.
template <class Out, class F, class... In>
Out Evaluate(F f, In... in) {
  const auto expression = MakeExpression({tfplug::DataTypeOf<In>()...},
                                         {tfplug::DataTypeOf<Out>()}, f);
  REQUIRE_MESSAGE(expression.ok(), expression.status().ToString());
  Out out, expected;
  const std::vector<Operand> inputs = {
      Operand::Dense(&in, tfplug::DataTypeOf<In>(), {})...};
  tfplug::HostMap(*expression, inputs,
                  {Operand::Dense(&out, tfplug::DataTypeOf<Out>(), {})});
  tfplug::ReferenceMap(
      *expression, inputs,
      {Operand::Dense(&expected, tfplug::DataTypeOf<Out>(), {})});
  uint64_t bits = 0, expected_bits = 0;
  std::memcpy(&bits, &out, sizeof(out));
  std::memcpy(&expected_bits, &expected, sizeof(expected));
  // Functions of floats may differ in the last place.
  CHECK(tfplug::testing::UlpDistance(tfplug::DataTypeOf<Out>(), bits,
                                     expected_bits) <= 1);
  return out;
}

bool Same(double a, double b) { return a == b || (a != a && b != b); }

TEST_CASE("text and back") {
  const auto sum = MakeExpression({kFloat, kFloat}, {kFloat},
                                  [](Value x, Value y) { return x + y; });
  REQUIRE(sum.ok());
  const std::string text =
      "float float;input:float 0;input:float 1;add:float 0 1;2:float";
  CHECK(tfplug::Serialize(*sum) == text);
  const auto parsed = tfplug::ParseExpression(text);
  REQUIRE(parsed.ok());
  CHECK(parsed->id() == sum->id());

  const auto product = MakeExpression({kFloat, kFloat}, {kFloat},
                                      [](Value x, Value y) { return x * y; });
  CHECK(product->id() != sum->id());
}

TEST_CASE("every opcode has a text") {
  for (int i = 0; i < tfplug::kOpcodeCount; ++i) {
    Instruction in;
    const std::string text =
        std::string(tfplug::ir::kOpcodes[i].name) + ":int64 0";
    REQUIRE(tfplug::ir_internal::ParseInstruction(text, &in));
    CHECK(static_cast<int>(in.opcode) == i);
    CHECK(in.type == DataType::kInt64);
  }
}

TEST_CASE("the oracle defines every opcode") {
  using tfplug::primitives::ComputeInteger;
  using tfplug::primitives::ComputeReal;
  for (int i = 0; i < tfplug::kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const tfplug::ir::OpcodeInfo& info = tfplug::ir::kOpcodes[i];
    // Up to Select, opcodes are special; comparisons are tested below.
    if (info.arity == 0 || info.gives_bool || opcode <= Opcode::kSelect) {
      continue;
    }
    CAPTURE(std::string(info.name));
    if (tfplug::ir::Allows(info.types, kFloat)) {
      CHECK(!(std::isnan(ComputeReal(opcode, 0.5, 0.25)) &&
              std::isnan(ComputeReal(opcode, 1.5, 0.25))));
    }
    if (tfplug::ir::Allows(info.types, DataType::kInt64)) {
      CHECK(ComputeInteger(opcode, DataType::kInt64, 7, 2) != 0);
    }
  }
}

TEST_CASE("malformed texts are errors") {
  for (const char* text :
       {"",
        "float",
        "float;",
        "what;0:float",
        "float;input:float 0;9:float",
        "float;input:float 1;0:float",
        "float;input:int32 0;0:float",
        "float;input:float 0;add:float 0 1;0:float",
        "float;input:float 0;add:int32 0 0;1:float",
        "float;input:float 0;add:float 0 0 0 0;1:float",
        "float;input:float 0;not:float 0;1:float",
        "float;input:float 0;nothing:float 0;1:float",
        "float;input:float 0;0:string",
        "float;input:float 0;x",
        "float;input:float x;0:float",
        "float;input:float:x 0;0:float",
        "float;input:float 0;constant:float;0:float",
        "half;input:half 0;neg:half 0;1:half",
        "float;input:float 0;bitcast:int64 0;1:int64",
        "float;input:float 0;element:float 0 0;1:float",
        "float;input:float 0;select:float 0 0 0;1:float",
        "float;input:float 0 7;0:float",
        "float;input:float 0 -1 7;0:float",
        "float;input:float 0;neg:float 0 99;1:float",
        "float;input:float 0;add:float 0 0 99;1:float",
        "float;input:float 0;cast:int64 0;element:float 0 1 99;2:float"}) {
    CAPTURE(text);
    const auto parsed = tfplug::ParseExpression(text);
    CHECK(parsed.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("texts of instructions that no builder makes are errors") {
  for (const char* text :
       {"float;input:float 0 3;0:float",
        "float;input:float 0;neg:float 0 7;1:float", ";constant:half 0;0:half",
        ";constant:bool 2;0:bool", ";constant:int32 4294967296;0:int32",
        ";constant:uint32 18446744071562067967;0:uint32"}) {
    CAPTURE(text);
    const auto parsed = tfplug::ParseExpression(text);
    CHECK(parsed.status().code() == absl::StatusCode::kInvalidArgument);
  }
  // The limits of int32, and of uint32 with either extension.
  for (const char* text : {";constant:int32 18446744071562067968;0:int32",
                           ";constant:int32 2147483647;0:int32",
                           ";constant:uint32 4294967295;0:uint32",
                           ";constant:uint32 18446744073709551615;0:uint32"}) {
    CAPTURE(text);
    CHECK(tfplug::ParseExpression(text).ok());
  }
}

TEST_CASE("equal instructions are one") {
  const auto square = MakeExpression({kFloat}, {kFloat},
                                     [](Value x) { return (x + 1) * (x + 1); });
  CHECK(square->instructions().size() == 4);
}

Expression Parse(const std::string& text) {
  const auto parsed = tfplug::ParseExpression(text);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  return *parsed;
}

TEST_CASE("expressions have the same id only if they are equal") {
  // NOLINTBEGIN(bugprone-suspicious-missing-comma)
  const std::string texts[] = {
      "float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 0 1;add:float 3 2;4:float",
      // Another constant, opcode, operand, input, output and type.
      "float float;input:float 0;input:float 1;constant:float 1;"
      "sub:float 0 1;add:float 3 2;4:float",
      "float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 0 1;mul:float 3 2;4:float",
      "float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 1 0;add:float 3 2;4:float",
      "float float;input:float 1;input:float 0;constant:float 0;"
      "sub:float 0 1;add:float 3 2;4:float",
      "float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 0 1;add:float 3 2;3:float",
      "float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 0 1;add:float 3 2;4:half",
      "float float float;input:float 0;input:float 1;constant:float 0;"
      "sub:float 0 1;add:float 3 2;4:float",
      // These two had the same hash of 64 bits: x - y + 1, y - x + 3.8e-86.
      "float float;input:float 0;input:float 1;constant:float "
      "4607182418800017408;sub:float 0 1;add:float 3 2;4:float",
      "float float;input:float 1;input:float 0;constant:float "
      "3328921420026302063;sub:float 0 1;add:float 3 2;4:float"};
  // NOLINTEND(bugprone-suspicious-missing-comma)
  std::set<uint32_t> ids;
  for (const std::string& text : texts) {
    CHECK(ids.insert(Parse(text).id()).second);
  }
  for (const std::string& text : texts) {
    CHECK(ids.count(Parse(text).id()) == 1);
    CHECK(tfplug::Serialize(Parse(text)) == text);
  }
  CHECK(Expression().id() == Parse("float;input:float 0;0:float").id());
}

TEST_CASE("an output alone has only the inputs that it needs") {
  const Expression two = Parse(
      "float float;input:float 0;input:float 1;sub:float 0 1;neg:float 1;"
      "2:float;3:float");
  CHECK(tfplug::ir::OutputValues(two) == std::vector<int32_t>{2, 3});
  const auto difference = tfplug::ir::ExpressionOf(two.outputs()[0], two);
  REQUIRE(difference.ok());
  CHECK(tfplug::Serialize(difference->expression) ==
        "float float;input:float 0;input:float 1;sub:float 0 1;2:float");
  CHECK(difference->inputs == std::vector<int>{0, 1});
  const auto negation = tfplug::ir::ExpressionOf(two.outputs()[1], two);
  REQUIRE(negation.ok());
  CHECK(tfplug::Serialize(negation->expression) ==
        "float;input:float 0;neg:float 0;1:float");
  CHECK(negation->inputs == std::vector<int>{1});
}

TEST_CASE("an input moves before the others") {
  const auto moved = tfplug::ir::WithInputFirst(
      Parse("float bool int32;input:float 0;input:bool 1;input:int32 2;"
            "neg:float 0;3:float"),
      1);
  REQUIRE(moved.ok());
  CHECK(tfplug::Serialize(*moved) ==
        "bool float int32;input:float 1;input:bool 0;input:int32 2;"
        "neg:float 0;3:float");
}

TEST_CASE("the least and the largest of no bool") {
  using tfplug::ReduceKind;
  CHECK(tfplug::ReduceIdentity(ReduceKind::kMin, DataType::kBool) == 1);
  CHECK(tfplug::ReduceIdentity(ReduceKind::kMax, DataType::kBool) == 0);
}

TEST_CASE("operators that do not support a type are errors") {
  const auto sqrt = MakeExpression({DataType::kInt32}, {DataType::kInt32},
                                   [](Value x) { return tfplug::Sqrt(x); });
  CHECK(sqrt.status().code() == absl::StatusCode::kInvalidArgument);
  const auto mixed = MakeExpression({DataType::kInt32, kFloat}, {kFloat},
                                    [](Value x, Value y) { return x + y; });
  CHECK(mixed.status().message() ==
        "instruction 2 (add) of an expression mixes types");
}

TEST_CASE("functions of floats are those of the C library") {
  using Function = std::pair<Value (*)(Value), float (*)(float)>;
  const std::vector<Function> functions = {
      {tfplug::Abs, std::fabs},    {tfplug::Floor, std::floor},
      {tfplug::Ceil, std::ceil},   {tfplug::Rint, std::rint},
      {tfplug::Sqrt, std::sqrt},   {tfplug::Exp, std::exp},
      {tfplug::Expm1, std::expm1}, {tfplug::Log, std::log},
      {tfplug::Log1p, std::log1p}, {tfplug::Sin, std::sin},
      {tfplug::Cos, std::cos},     {tfplug::Tan, std::tan},
      {tfplug::Asin, std::asin},   {tfplug::Acos, std::acos},
      {tfplug::Atan, std::atan},   {tfplug::Sinh, std::sinh},
      {tfplug::Cosh, std::cosh},   {tfplug::Tanh, std::tanh},
      {tfplug::Asinh, std::asinh}, {tfplug::Acosh, std::acosh},
      {tfplug::Atanh, std::atanh}, {tfplug::Erf, std::erf},
      {tfplug::Erfc, std::erfc},   {tfplug::Lgamma, std::lgamma},
  };
  for (const Function& f : functions) {
    for (float x : {-2.5f, -0.5f, -0.0f, 0.0f, 0.25f, 1.5f, 3e38f, 1e-42f,
                    kInfinity, -kInfinity, kNan}) {
      CAPTURE(x);
      CHECK(Same(Evaluate<float>(f.first, x), f.second(x)));
    }
  }
}

TEST_CASE("integers wrap, and division by 0 gives 0") {
  const auto add = [](Value x, Value y) { return x + y; };
  const auto div = [](Value x, Value y) { return x / y; };
  const auto rem = [](Value x, Value y) { return x % y; };
  const auto shl = [](Value x, Value y) { return x << y; };
  const auto shr = [](Value x, Value y) { return x >> y; };
  CHECK(Evaluate<int32_t>(add, INT32_MAX, 1) == INT32_MIN);
  CHECK(Evaluate<int8_t>(add, int8_t{127}, int8_t{1}) == -128);
  CHECK(Evaluate<uint16_t>(add, uint16_t{65535}, uint16_t{2}) == 1);
  CHECK(Evaluate<int32_t>(div, -7, 2) == -3);
  CHECK(Evaluate<int32_t>(rem, -7, 2) == -1);
  CHECK(Evaluate<int32_t>(div, 7, 0) == 0);
  CHECK(Evaluate<int32_t>(rem, 7, 0) == 0);
  CHECK(Evaluate<int64_t>(div, INT64_MIN, int64_t{-1}) == INT64_MIN);
  CHECK(Evaluate<int64_t>(rem, INT64_MIN, int64_t{-1}) == 0);
  CHECK(Evaluate<uint32_t>(div, 4000000000u, 3u) == 1333333333u);
  CHECK(Evaluate<int32_t>(shl, 1, 40) == 0);
  CHECK(Evaluate<int32_t>(shl, 5, 0) == 5);
  CHECK(Evaluate<int32_t>(shr, -8, 1) == -4);
  CHECK(Evaluate<int32_t>(shr, -8, 99) == -1);
  CHECK(Evaluate<int32_t>(shr, 64, 33) == 0);
  CHECK(Evaluate<uint32_t>(shr, 0x80000000u, 31u) == 1);
  const auto pow = [](Value x, Value y) { return tfplug::Pow(x, y); };
  CHECK(Evaluate<int64_t>(pow, int64_t{-3}, int64_t{5}) == -243);
  CHECK(Evaluate<int32_t>(pow, 1, -2) == 1);
  CHECK(Evaluate<int32_t>(pow, 2, -2) == 0);
  // The constant is no integer.
  CHECK(Evaluate<int64_t>([](Value x) { return x + 1e30; }, int64_t{5}) == 5);
}

TEST_CASE("conversions") {
  const auto to = [](DataType type) {
    return [type](Value x) { return tfplug::Cast(x, type); };
  };
  CHECK(Evaluate<int32_t>(to(DataType::kInt32), -1.9f) == -1);
  CHECK(Evaluate<int32_t>(to(DataType::kInt32), 3e9f) == INT32_MIN);
  CHECK(Evaluate<int32_t>(to(DataType::kInt32), kNan) == INT32_MIN);
  CHECK(Evaluate<int64_t>(to(DataType::kInt64), 1e30) == INT64_MIN);
  CHECK(Evaluate<uint64_t>(to(DataType::kUint64), 1e19) ==
        10000000000000000000u);
  CHECK(Evaluate<uint8_t>(to(DataType::kUint8), 258.0f) == 2);
  CHECK(Evaluate<bool>(to(DataType::kBool), 0.5f) == true);
  CHECK(Evaluate<bool>(to(DataType::kBool), 1) == true);
  CHECK(Evaluate<bool>(to(DataType::kBool), 0) == false);
  CHECK(Evaluate<float>(to(kFloat), true) == 1.0f);
  CHECK(Evaluate<double>(to(DataType::kDouble), INT64_MAX) == 0x1p63);
  // A cast rounds although the result is computed in float.
  CHECK(Evaluate<float>(to(DataType::kBfloat16), 1.00390625f) == 1.0f);
  CHECK(Evaluate<int32_t>(to(DataType::kInt8), 130) == -126);
  CHECK(static_cast<float>(Evaluate<tfplug::Half>([](Value x) { return x * 3; },
                                                  tfplug::Half(0.1f))) ==
        static_cast<float>(tfplug::Half(0.0999755859375f * 3)));
}

TEST_CASE("comparisons, NaN and selection") {
  CHECK(Evaluate<bool>([](Value x, Value y) { return x < y; }, 1.0f, 2.0f));
  CHECK(!Evaluate<bool>([](Value x, Value y) { return x >= y; }, kNan, 2.0f));
  CHECK(Evaluate<bool>([](Value x) { return tfplug::IsNan(x); }, kNan));
  CHECK(Evaluate<float>([](Value x) { return tfplug::Sign(x); }, 0.5f) == 1);
  const auto max = [](Value x, Value y) { return tfplug::Max(x, y); };
  CHECK(Same(Evaluate<float>(max, kNan, 2.0f), kNan));
  CHECK(Same(Evaluate<float>(max, 2.0f, kNan), kNan));
  const auto relu = [](Value x) { return tfplug::Select(x > 0, x, 0); };
  CHECK(Evaluate<float>(relu, -3.0f) == 0);
  CHECK(Evaluate<float>(relu, 3.0f) == 3);
  CHECK(Evaluate<bool>([](Value x) { return !x; }, false));
  CHECK(Evaluate<int32_t>([](Value x) { return ~x; }, 5) == -6);
  CHECK(Evaluate<float>([](Value x) { return tfplug::Bitcast(x, kFloat); },
                        0x3f800000u) == 1.0f);
  // A signaling NaN stays one.
  CHECK(Evaluate<int32_t>(
            [](Value x) { return tfplug::Bitcast(x, DataType::kInt32); },
            std::numeric_limits<float>::signaling_NaN()) == 0x7fa00000);
}

}  // namespace
}  // namespace expression_test
