// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/separate.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/internal/compose.h"

#pragma GCC visibility push(hidden)

// Primitives composed of Map and Reduce.
namespace tfplug::primitives_internal {

TFPLUG_SEPARABLE absl::Status ComposeMatMul(Launcher& launcher,
                                            const Operand& a, const Operand& b,
                                            const Operand& c) {
  const int m = c.rank - 2;
  TFPLUG_ASSIGN_OR_RETURN(const Reduction* const sum_of_products,
                          primitives::SumOfProducts(a.type, b.type, c.type));
  // [batch..., m, n, k]
  const Operand rows = ir::WithDim(a, m + 1, c.dim(m + 1));
  const Operand columns = ir::WithDim(ir::WithDimLast(b, m), m, c.dim(m));
  return launcher.Reduce(*sum_of_products, {rows, columns}, {c});
}

// Stores the last update of each row.
inline absl::Status ComposeScatterSet(Launcher& launcher,
                                      const Operand& indices,
                                      const Operand& updates,
                                      const Operand& output) {
  const int64_t rows = output.dim(0), n = indices.dim(0);
  constexpr DataType kInt64 = DataType::kInt64;
  static primitives::Memo<Reduction> find_memo;
  static primitives::Memo<Expression> select_memo;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const find_last,
      find_memo.Get(primitives::KeyOf(indices.type), [&] {
        return primitives::MakeReduction(
            ReduceKind::kMax, {indices.type, kInt64, kInt64}, kInt64,
            [&](Value index, Value row, Value i) {
              return Select(Cast(index, kInt64) == row, i, -1);
            },
            kInt64);
      }));
  TFPLUG_ASSIGN_OR_RETURN(
      const Expression* const select,
      select_memo.Get(primitives::KeyOf(output.type, updates.type), [&] {
        ExpressionBuilder builder;
        const Value last = builder.Input(kInt64);
        const Value old = builder.Input(output.type);
        const Value update =
            builder.Element(builder.AxisInput(updates.type), last);
        builder.Output(Select(last >= 0, update, old), output.type);
        return std::move(builder).Build();
      }));
  TFPLUG_ASSIGN_OR_RETURN(Operand winner, launcher.Allocate(kInt64, {rows}));
  TFPLUG_RETURN_IF_ERROR(
      launcher.Reduce(*find_last,
                      {ir::WithDim(indices, 0, rows),
                       Operand::Index().AddDim(rows, 1).AddDim(n, 0),
                       Operand::Index().AddDim(rows, 0).AddDim(n, 1)},
                      {winner}));
  for (int d = 1; d < output.rank; ++d) winner.AddDim(output.dim(d), 0);
  return launcher.Map(
      *select, {winner, output, ir::WithDim(ir::WithAxis(updates, 0), 0, rows)},
      {output});
}

// Returns the combination of all updates of a row with the row. Inputs: index,
// row, update, and the row's element.
inline absl::StatusOr<Reduction> MakeScatter(ScatterKind kind, DataType index,
                                             DataType update, DataType output) {
  constexpr DataType kInt64 = DataType::kInt64;
  const DataType type = ComputeType(output);
  Reduction reduction;
  reduction.kind = kind == ScatterKind::kAdd        ? ReduceKind::kSum
                   : kind == ScatterKind::kMultiply ? ReduceKind::kProduct
                   : kind == ScatterKind::kMax      ? ReduceKind::kMax
                                                    : ReduceKind::kMin;
  const uint64_t identity = ReduceIdentity(reduction.kind, type);
  TFPLUG_ASSIGN_OR_RETURN(
      reduction.map,
      MakeExpression({index, kInt64, update}, {type},
                     [&](Value at, Value row, Value value) {
                       const Value none = at.builder()->Add(
                           {Opcode::kConstant, type, -1, -1, -1, identity});
                       return Select(Cast(at, kInt64) == row, value, none);
                     }));
  TFPLUG_ASSIGN_OR_RETURN(
      reduction.finish,
      MakeExpression({type, output}, {output}, [&](Value all, Value old) {
        return primitives::Combine(reduction.kind, old, all);
      }));
  return reduction;
}

TFPLUG_SEPARABLE absl::Status ComposeScatter(Launcher& launcher,
                                             ScatterKind kind,
                                             const Operand& indices,
                                             const Operand& updates,
                                             const Operand& output) {
  if (indices.dim(0) == 0) return absl::OkStatus();
  if (kind == ScatterKind::kSet) {
    return ComposeScatterSet(launcher, indices, updates, output);
  }
  static primitives::Memo<Reduction> memo;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const reduction,
      memo.Get(primitives::KeyOf(indices.type, updates.type, output.type) |
                   static_cast<uint32_t>(kind) << 24,
               [&] {
                 return MakeScatter(kind, indices.type, updates.type,
                                    output.type);
               }));
  // [row, inner..., update]
  const int64_t n = indices.dim(0);
  Operand index = Operand::Index(), row = Operand::Index();
  index = indices;
  index.rank = 0;
  for (int d = 0; d < output.rank; ++d) {
    index.AddDim(output.dim(d), 0);
    row.AddDim(output.dim(d), d == 0 ? 1 : 0);
  }
  index.AddDim(n, indices.stride(0));
  row.AddDim(n, 0);
  const Operand update =
      ir::WithDim(ir::WithDimLast(updates, 0), 0, output.dim(0));
  Operand old = output;
  return launcher.Reduce(*reduction, {index, row, update, old.AddDim(n, 0)},
                         {output});
}

// Doubles the number of combined elements in each pass.
TFPLUG_SEPARABLE absl::Status ComposeScan(Launcher& launcher, ReduceKind kind,
                                          const Operand& input,
                                          const Operand& output) {
  const int axis = output.rank - 1;
  const int64_t size = output.dim(axis);
  const DataType type = ComputeType(output.type);
  static primitives::Memo<Expression> memo;
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const first,
                          primitives::ConversionOf(input.type, type));
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const copy,
                          primitives::ConversionOf(type, type));
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const last,
                          primitives::ConversionOf(type, output.type));
  const uint32_t key = primitives::KeyOf(type) | static_cast<uint32_t>(kind)
                                                     << 8;
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const combine, memo.Get(key, [&] {
    return MakeExpression({type, type}, {type}, [&](Value before, Value at) {
      return primitives::Combine(kind, before, at);
    });
  }));
  TFPLUG_ASSIGN_OR_RETURN(Operand from,
                          launcher.Allocate(type, ir::DimsOf(output)));
  TFPLUG_ASSIGN_OR_RETURN(Operand to,
                          launcher.Allocate(type, ir::DimsOf(output)));
  TFPLUG_RETURN_IF_ERROR(launcher.Map(*first, {input}, {from}));
  for (int64_t step = 1; step < size; step *= 2) {
    TFPLUG_RETURN_IF_ERROR(launcher.Map(*copy, {ir::Range(from, axis, 0, step)},
                                        {ir::Range(to, axis, 0, step)}));
    TFPLUG_RETURN_IF_ERROR(launcher.Map(*combine,
                                        {ir::Range(from, axis, 0, size - step),
                                         ir::Range(from, axis, step, size)},
                                        {ir::Range(to, axis, step, size)}));
    std::swap(from, to);
  }
  return launcher.Map(*last, {from}, {output});
}

struct SortCode {
  // The number of elements that precede an element. Inputs: element, other
  // element, index, other index.
  Reduction count;
  // The index of the element with a number. Inputs: number, wanted number,
  // index.
  Reduction find;
  // The element at an index, and the index.
  Expression select;

  static absl::StatusOr<SortCode> Make(DataType type) {
    constexpr DataType kInt32 = DataType::kInt32, kInt64 = DataType::kInt64;
    SortCode code;
    TFPLUG_ASSIGN_OR_RETURN(
        code.count,
        primitives::MakeReduction(
            ReduceKind::kSum, {type, type, kInt64, kInt64}, kInt64,
            [](Value x, Value other, Value i, Value other_i) {
              const Value is_first = other_i < i;
              Value precedes = (other > x) | ((other == x) & is_first);
              if (IsFloat(x.type())) {
                const Value is_number = !IsNan(x);
                precedes = precedes | (IsNan(other) & (is_number | is_first));
              }
              return Cast(precedes, kInt64);
            },
            kInt64));
    TFPLUG_ASSIGN_OR_RETURN(
        code.find, primitives::MakeReduction(
                       ReduceKind::kMax, {kInt64, kInt64, kInt64}, kInt64,
                       [](Value rank, Value wanted, Value i) {
                         return Select(rank == wanted, i, -1);
                       },
                       kInt64));
    ExpressionBuilder builder;
    const Value at = builder.Input(kInt64);
    builder.Output(builder.Element(builder.AxisInput(type), at), type);
    builder.Output(at, kInt32);
    TFPLUG_ASSIGN_OR_RETURN(code.select, std::move(builder).Build());
    return code;
  }
};

// Counts, for each element, the elements that precede it.
TFPLUG_SEPARABLE absl::Status ComposeSort(Launcher& launcher,
                                          const Operand& input,
                                          const Operand& values,
                                          const Operand& indices) {
  constexpr DataType kInt64 = DataType::kInt64;
  const int axis = input.rank - 1;
  const int64_t size = input.dim(axis), k = values.dim(axis);
  const DataType type = input.type;
  static primitives::Memo<SortCode> memo;
  TFPLUG_ASSIGN_OR_RETURN(
      const SortCode* const code,
      memo.Get(primitives::KeyOf(type), [&] { return SortCode::Make(type); }));

  // Returns a view of the index in dimension `d` of [outer..., a, b].
  const auto index = [&](int64_t a, int64_t b, int d) {
    Operand view = Operand::Index();
    for (int i = 0; i < axis; ++i) view.AddDim(input.dim(i), 0);
    return view.AddDim(a, d == 0 ? 1 : 0).AddDim(b, d == 1 ? 1 : 0);
  };
  TFPLUG_ASSIGN_OR_RETURN(Operand rank,
                          launcher.Allocate(kInt64, ir::DimsOf(input)));
  TFPLUG_ASSIGN_OR_RETURN(Operand found,
                          launcher.Allocate(kInt64, ir::DimsOf(values)));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      code->count,
      {ir::WithDim(input, axis + 1, size), ir::WithDim(input, axis, size),
       index(size, size, 0), index(size, size, 1)},
      {rank}));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      code->find,
      {ir::WithDim(rank, axis, k), index(k, size, 0), index(k, size, 1)},
      {found}));
  const Operand elements = ir::WithDim(ir::WithAxis(input, axis), axis, k);
  return launcher.Map(code->select, {found, elements}, {values, indices});
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_H_
