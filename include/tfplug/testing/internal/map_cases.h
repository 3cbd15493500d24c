// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_MAP_CASES_H_
#define TFPLUG_TESTING_INTERNAL_MAP_CASES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/ir/value.h"
#include "tfplug/testing/internal/primitive_case.h"

#pragma GCC visibility push(hidden)

// Cases of Map.
namespace tfplug::testing {

// Launches `expression` with the first arrays as inputs and the others as
// outputs; output `k` is instead input `in_place[k]` if there is one.
inline void LaunchMap(CaseMaker& maker, Expression expression,
                      std::vector<int> in_place = {}) {
  PrimitiveCase& made = maker.made();
  made.text = "Map to " + Formula(expression);
  made.launch = [expression = std::move(expression),
                 in_place = std::move(in_place)](
                    Launcher& launcher, const std::vector<Operand>& operands) {
    const auto n = static_cast<std::ptrdiff_t>(expression.inputs().size());
    absl::InlinedVector<Operand, 4> in(operands.begin(), operands.begin() + n);
    absl::InlinedVector<Operand, 4> out(operands.begin() + n, operands.end());
    for (const int input : in_place) {
      out.push_back(in[static_cast<size_t>(input)]);
    }
    return launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out));
  };
}

// Computes one opcode of `type` on any values.
inline PrimitiveCase MakeOpcodeCase(CaseMaker& maker, Opcode opcode,
                                    DataType type) {
  const Dims dims = maker.MakeDims();
  const ir::OpcodeInfo info = ir::InfoOf(opcode);
  ExpressionBuilder builder;
  const auto input = [&](DataType computed, bool keeps_bits = false) {
    const DataType stored = keeps_bits ? computed : maker.StoredType(computed);
    maker.AddInput(stored, dims, Values::kAny);
    return builder.Input(stored);
  };
  const DataType bool_type = DataType::kBool;
  DataType result = info.gives_bool ? bool_type : type;
  Instruction in{opcode, result, -1, -1, -1, 0};
  switch (opcode) {
    case Opcode::kInput:
      builder.Output(input(type), maker.StoredType(type));
      break;
    case Opcode::kElement: {
      const int64_t n = 1 + Below(maker.random(), 5);
      Dims table_dims = dims;
      table_dims.push_back(n);
      maker.AddIndices(DataType::kInt64, dims, n);
      const tfplug::Value index = builder.Input(DataType::kInt64);
      const DataType stored = maker.StoredType(type);
      TestArray& table =
          maker.made().arrays[maker.Add(stored, table_dims, Values::kAny)];
      --table.view.rank;
      table.view.axis_size = n;
      table.view.axis_stride = table.view.stride(table.view.rank);
      builder.Output(builder.Element(builder.AxisInput(stored), index), stored);
      break;
    }
    case Opcode::kConstant:
      builder.Output(builder.Constant(type, int64_t{1}), type);
      break;
    case Opcode::kSelect: {
      const tfplug::Value condition = input(bool_type);
      const tfplug::Value a = input(type);
      builder.Output(Select(condition, a, input(type)), type);
      break;
    }
    case Opcode::kCast: {
      const Types& types = maker.types();
      in.type = types[static_cast<size_t>(
          Below(maker.random(), static_cast<int64_t>(types.size())))];
      in.a = input(type).id();
      // A double may be rounded to float on the way to a shorter type.
      const bool is_rounded_twice =
          type == DataType::kDouble && IsFloat(in.type) && in.type != type;
      maker.made().ulps = is_rounded_twice ? 1 : 0;
      builder.Output(builder.Add(in), in.type);
      break;
    }
    default: {
      const bool is_bitcast = opcode == Opcode::kBitcast;
      int32_t* const uses[] = {&in.a, &in.b, &in.c};
      for (int k = 0; k < info.arity; ++k) {
        *uses[k] = input(type, is_bitcast).id();
      }
      if (is_bitcast) {
        in.type = type == DataType::kFloat    ? DataType::kInt32
                  : type == DataType::kDouble ? DataType::kInt64
                                              : type;
      }
      const DataType out =
          is_bitcast ? in.type : maker.StoredType(ComputeType(in.type));
      builder.Output(builder.Add(in), out);
      // Rounded once, a small error is one unit of a shorter type.
      const double ulps = IsFloat(type) ? info.ulps : 0;
      maker.made().ulps = ulps > 0 && out != type ? 1 : ulps;
      if (opcode == Opcode::kLgamma) maker.made().absolute = 2e-6;
    }
  }
  Expression expression = *std::move(builder).Build();
  maker.AddOutput(expression.outputs()[0].type, dims);
  LaunchMap(maker, std::move(expression));
  return maker.made();
}

// Computes several outputs, one of them perhaps in place.
inline PrimitiveCase MakeFusedCase(CaseMaker& maker, DataType type) {
  const Dims dims = maker.MakeDims();
  const DataType stored = maker.StoredType(type);
  const bool is_in_place = maker.OneIn(2);
  // An output in place must not repeat elements.
  maker.Add(stored, dims, Values::kSmall, /*is_output=*/is_in_place);
  maker.AddInput(stored, dims, Values::kSmall);
  maker.AddInput(DataType::kBool, dims, Values::kAny);
  maker.AddOutput(type, dims);
  Expression expression = *MakeExpression(
      {stored, stored, DataType::kBool}, {type, stored},
      [](tfplug::Value x, tfplug::Value y, tfplug::Value flag) {
        return std::array<tfplug::Value, 2>{x * y + 1, Select(flag, x, y) - y};
      });
  if (!is_in_place) maker.AddOutput(stored, dims);
  LaunchMap(maker, std::move(expression),
            is_in_place ? std::vector<int>{0} : std::vector<int>{});
  return maker.made();
}

// Computes several operations, which use each other's results. All of them are
// exact, also if a product and a sum are rounded at once.
inline PrimitiveCase MakeProgramCase(CaseMaker& maker, DataType type) {
  Random& random = maker.random();
  const Dims dims = maker.MakeDims();
  const bool is_in_place = maker.OneIn(2);
  const DataType first = maker.StoredType(type);
  ExpressionBuilder builder;
  maker.Add(first, dims, Values::kSmall, /*is_output=*/is_in_place);
  std::vector<tfplug::Value> values = {builder.Input(first)};
  for (int k = 0; k < 2; ++k) {
    const DataType stored = maker.StoredType(type);
    maker.AddInput(stored, dims, Values::kSmall);
    values.push_back(builder.Input(stored));
  }
  const auto any = [&] {
    const auto size = static_cast<int64_t>(values.size());
    // Often one of the latest.
    const int64_t last = std::min<int64_t>(size, maker.OneIn(2) ? 3 : size);
    return values[static_cast<size_t>(size - 1 - Below(random, last))];
  };
  const auto make = [&]() -> tfplug::Value {
    const tfplug::Value a = any(), b = any();
    switch (Below(random, 8)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return IsFloat(type) ? Min(Max(a * b, -9), 9) : a * b;
      case 3:
        return Max(a, b);
      case 4:
        return Select(a < b, any(), any());
      case 5:
        return Cast(maker.OneIn(2) ? a == b : a <= b, type) * any();
      case 6:
        return Below(random, 9) - a;
      default:
        return maker.OneIn(2) ? Abs(a) : -a;
    }
  };
  const int64_t most = maker.level() <= kTinyOdd ? 4 : 24;
  for (int64_t n = 1 + Below(random, most); n > 0; --n) {
    values.push_back(make());
  }
  std::vector<DataType> outputs;
  for (int64_t n = Below(random, 2) + (is_in_place ? 0 : 1); n > 0; --n) {
    outputs.push_back(maker.StoredType(type));
    maker.AddOutput(outputs.back(), dims);
  }
  if (is_in_place) outputs.push_back(first);
  for (const DataType stored : outputs) builder.Output(any(), stored);
  LaunchMap(maker, *std::move(builder).Build(),
            is_in_place ? std::vector<int>{0} : std::vector<int>{});
  return maker.made();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_MAP_CASES_H_
