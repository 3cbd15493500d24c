// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_INTERNAL_COMPOSED_H_
#define TFPLUG_BACKEND_INTERNAL_COMPOSED_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/backend/launcher.h"
#include "tfplug/backend/value.h"
#include "tfplug/base/status_macros.h"

#pragma GCC visibility push(hidden)

// Primitives composed of Map and Reduce.
namespace tfplug::internal {

// Returns the dimensions of a view.
inline absl::Span<const int64_t> DimsOf(const Operand& view) {
  return absl::MakeConstSpan(view.dims.data(), static_cast<size_t>(view.rank));
}

// Returns `view` with dimension `d` moved to the end.
inline Operand WithDimLast(Operand view, int d) {
  const int64_t size = view.dim(d), stride = view.stride(d);
  for (; d + 1 < view.rank; ++d) {
    view.dim(d) = view.dim(d + 1);
    view.stride(d) = view.stride(d + 1);
  }
  view.dim(d) = size;
  view.stride(d) = stride;
  return view;
}
// Returns `view` with a new dimension before `d`, in which it is repeated.
inline Operand WithDim(Operand view, int d, int64_t size, int64_t stride = 0) {
  ++view.rank;
  for (int k = view.rank - 1; k > d; --k) {
    view.dim(k) = view.dim(k - 1);
    view.stride(k) = view.stride(k - 1);
  }
  view.dim(d) = size;
  view.stride(d) = stride;
  return view;
}
// Returns elements [begin, end) of dimension `d`.
inline Operand Range(Operand view, int d, int64_t begin, int64_t end) {
  view.Advance(begin * view.stride(d));
  view.dim(d) = end - begin;
  return view;
}
// Returns `view` without dimension `d`, whose elements Opcode::kElement
// selects.
inline Operand WithAxis(Operand view, int d) {
  view = WithDimLast(view, d);
  --view.rank;
  view.axis_size = view.dim(view.rank);
  view.axis_stride = view.stride(view.rank);
  return view;
}

inline Value Combine(ReduceKind kind, Value a, Value b) {
  const bool is_bool = a.type() == DataType::kBool;
  switch (kind) {
    case ReduceKind::kSum:
      return is_bool ? a | b : a + b;
    case ReduceKind::kProduct:
      return is_bool ? a & b : a * b;
    case ReduceKind::kMax:
      return is_bool ? a | b : Max(a, b);
    default:
      return is_bool ? a & b : Min(a, b);
  }
}

// Returns the reduction of values of `type` with `finish` as a cast to `out`.
template <size_t kInputs, class Map>
absl::StatusOr<Reduction> MakeReduction(ReduceKind kind,
                                        const DataType (&inputs)[kInputs],
                                        DataType type, Map map, DataType out) {
  Reduction reduction;
  reduction.kind = kind;
  TFPLUG_ASSIGN_OR_RETURN(reduction.map, MakeExpression(inputs, {type}, map));
  TFPLUG_ASSIGN_OR_RETURN(reduction.finish, CastExpression(type, out));
  return reduction;
}

inline absl::Status ComposeMatMul(Launcher& launcher, const Operand& a,
                                  const Operand& b, const Operand& c) {
  const int m = c.rank - 2;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction sum_of_products,
      MakeReduction(
          ReduceKind::kSum, {a.type, b.type}, ComputeType(c.type),
          [](Value x, Value y) { return x * y; }, c.type));
  // [batch..., m, n, k]
  const Operand rows = WithDim(a, m + 1, c.dim(m + 1));
  const Operand columns = WithDim(WithDimLast(b, m), m, c.dim(m));
  return launcher.Reduce(sum_of_products, {rows, columns}, {c});
}

// Stores the last update of each row.
inline absl::Status ComposeScatterSet(Launcher& launcher,
                                      const Operand& indices,
                                      const Operand& updates,
                                      const Operand& output) {
  const int64_t rows = output.dim(0), n = indices.dim(0);
  constexpr DataType kInt64 = DataType::kInt64;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction find_last,
      MakeReduction(
          ReduceKind::kMax, {indices.type, kInt64, kInt64}, kInt64,
          [](Value index, Value row, Value i) {
            return Select(Cast(index, kInt64) == row, i, -1);
          },
          kInt64));
  ExpressionBuilder builder;
  const Value last = builder.Input(kInt64);
  const Value old = builder.Input(output.type);
  const Value update = builder.Element(builder.AxisInput(updates.type), last);
  builder.Output(Select(last >= 0, update, old), output.type);
  TFPLUG_ASSIGN_OR_RETURN(const Expression select, std::move(builder).Build());

  TFPLUG_ASSIGN_OR_RETURN(Operand winner, launcher.Allocate(kInt64, {rows}));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      find_last,
      {WithDim(indices, 0, rows), Operand::Index().AddDim(rows, 1).AddDim(n, 0),
       Operand::Index().AddDim(rows, 0).AddDim(n, 1)},
      {winner}));
  for (int d = 1; d < output.rank; ++d) winner.AddDim(output.dim(d), 0);
  return launcher.Map(select,
                      {winner, output, WithDim(WithAxis(updates, 0), 0, rows)},
                      {output});
}

inline absl::Status ComposeScatter(Launcher& launcher, ScatterKind kind,
                                   const Operand& indices,
                                   const Operand& updates,
                                   const Operand& output) {
  if (indices.dim(0) == 0) return absl::OkStatus();
  if (kind == ScatterKind::kSet) {
    return ComposeScatterSet(launcher, indices, updates, output);
  }
  constexpr DataType kInt64 = DataType::kInt64;
  const ReduceKind combine = kind == ScatterKind::kAdd ? ReduceKind::kSum
                             : kind == ScatterKind::kMultiply
                                 ? ReduceKind::kProduct
                             : kind == ScatterKind::kMax ? ReduceKind::kMax
                                                         : ReduceKind::kMin;
  const DataType type = ComputeType(output.type);
  const uint64_t identity = ReduceIdentity(combine, type);
  Reduction reduction;
  reduction.kind = combine;
  TFPLUG_ASSIGN_OR_RETURN(
      reduction.map,
      MakeExpression({indices.type, kInt64, updates.type}, {type},
                     [&](Value index, Value row, Value update) {
                       const Value none = index.builder()->Add(
                           {Opcode::kConstant, type, -1, -1, -1, identity});
                       return Select(Cast(index, kInt64) == row, update, none);
                     }));
  TFPLUG_ASSIGN_OR_RETURN(reduction.finish,
                          MakeExpression({type, output.type}, {output.type},
                                         [&](Value all, Value old) {
                                           return Combine(combine, old, all);
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
  const Operand update = WithDim(WithDimLast(updates, 0), 0, output.dim(0));
  Operand old = output;
  return launcher.Reduce(reduction, {index, row, update, old.AddDim(n, 0)},
                         {output});
}

// Doubles the number of combined elements in each pass.
inline absl::Status ComposeScan(Launcher& launcher, ReduceKind kind,
                                const Operand& input, const Operand& output) {
  const int axis = output.rank - 1;
  const int64_t size = output.dim(axis);
  const DataType type = ComputeType(output.type);
  TFPLUG_ASSIGN_OR_RETURN(const Expression first,
                          CastExpression(input.type, type));
  TFPLUG_ASSIGN_OR_RETURN(const Expression copy, CastExpression(type, type));
  TFPLUG_ASSIGN_OR_RETURN(const Expression last,
                          CastExpression(type, output.type));
  TFPLUG_ASSIGN_OR_RETURN(
      const Expression combine,
      MakeExpression({type, type}, {type}, [&](Value before, Value at) {
        return Combine(kind, before, at);
      }));
  TFPLUG_ASSIGN_OR_RETURN(Operand from,
                          launcher.Allocate(type, DimsOf(output)));
  TFPLUG_ASSIGN_OR_RETURN(Operand to, launcher.Allocate(type, DimsOf(output)));
  TFPLUG_RETURN_IF_ERROR(launcher.Map(first, {input}, {from}));
  for (int64_t step = 1; step < size; step *= 2) {
    TFPLUG_RETURN_IF_ERROR(launcher.Map(copy, {Range(from, axis, 0, step)},
                                        {Range(to, axis, 0, step)}));
    TFPLUG_RETURN_IF_ERROR(launcher.Map(
        combine,
        {Range(from, axis, 0, size - step), Range(from, axis, step, size)},
        {Range(to, axis, step, size)}));
    std::swap(from, to);
  }
  return launcher.Map(last, {from}, {output});
}

// Counts, for each element, the elements that precede it.
inline absl::Status ComposeSort(Launcher& launcher, const Operand& input,
                                const Operand& values, const Operand& indices) {
  constexpr DataType kInt32 = DataType::kInt32, kInt64 = DataType::kInt64;
  const int axis = input.rank - 1;
  const int64_t size = input.dim(axis), k = values.dim(axis);
  const DataType type = input.type;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction count,
      MakeReduction(
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
      const Reduction find,
      MakeReduction(
          ReduceKind::kMax, {kInt64, kInt64, kInt64}, kInt64,
          [](Value rank, Value wanted, Value i) {
            return Select(rank == wanted, i, -1);
          },
          kInt64));
  ExpressionBuilder builder;
  const Value at = builder.Input(kInt64);
  builder.Output(builder.Element(builder.AxisInput(type), at), type);
  builder.Output(at, kInt32);
  TFPLUG_ASSIGN_OR_RETURN(const Expression select, std::move(builder).Build());

  // Returns a view of the index in dimension `d` of [outer..., a, b].
  const auto index = [&](int64_t a, int64_t b, int d) {
    Operand view = Operand::Index();
    for (int i = 0; i < axis; ++i) view.AddDim(input.dim(i), 0);
    return view.AddDim(a, d == 0 ? 1 : 0).AddDim(b, d == 1 ? 1 : 0);
  };
  TFPLUG_ASSIGN_OR_RETURN(Operand rank,
                          launcher.Allocate(kInt64, DimsOf(input)));
  TFPLUG_ASSIGN_OR_RETURN(Operand found,
                          launcher.Allocate(kInt64, DimsOf(values)));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      count,
      {WithDim(input, axis + 1, size), WithDim(input, axis, size),
       index(size, size, 0), index(size, size, 1)},
      {rank}));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      find, {WithDim(rank, axis, k), index(k, size, 0), index(k, size, 1)},
      {found}));
  const Operand elements = WithDim(WithAxis(input, axis), axis, k);
  return launcher.Map(select, {found, elements}, {values, indices});
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_INTERNAL_COMPOSED_H_
