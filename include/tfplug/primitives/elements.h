// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_ELEMENTS_H_
#define TFPLUG_PRIMITIVES_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/value.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/primitives/memo.h"

#pragma GCC visibility push(hidden)

// Computations on elements that composed primitives and kernels share.
namespace tfplug::primitives {

inline Value Combine(ReduceKind kind, Value a, Value b) {
  return a.Binary(ir::CombineOpcode(kind, a.type()), b);
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

// Returns the sum of values, rounded to `type` once.
inline absl::StatusOr<Reduction> MakeSum(DataType type) {
  return MakeReduction(
      ReduceKind::kSum, {type}, ComputeType(type), [](Value x) { return x; },
      type);
}

// Returns the expression that converts `from` to `to`, or copies.
inline absl::StatusOr<const Expression*> ConversionOf(DataType from,
                                                      DataType to) {
  static primitives::Memo<Expression> memo;
  return memo.Get(primitives::KeyOf(from, to),
                  [&] { return CastExpression(from, to); });
}
// Copies the elements of one view to another of the same type.
inline absl::Status Copy(Launcher& launcher, const Operand& from,
                         const Operand& to) {
  const Operand words = ir::AsWords(to);
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const copy,
                          ConversionOf(words.type, words.type));
  return launcher.Map(*copy, {ir::AsWords(from)}, {words});
}
// Sets all elements of `to`. Zero is the same for all types of a size.
inline absl::Status Fill(Launcher& launcher, const Operand& to, double value) {
  const Operand view = value == 0 ? ir::AsWords(to) : to;
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const copy,
                          ConversionOf(view.type, view.type));
  return launcher.Map(*copy, {ir::ScalarOf(view.type, value, view)}, {view});
}

// Returns the sum of the products of two inputs.
inline absl::StatusOr<const Reduction*> SumOfProducts(DataType a, DataType b,
                                                      DataType sum) {
  static primitives::Memo<Reduction> memo;
  return memo.Get(primitives::KeyOf(a, b, sum), [&] {
    return MakeReduction(
        ReduceKind::kSum, {a, b}, ComputeType(sum),
        [](Value x, Value y) { return x * y; }, sum);
  });
}

}  // namespace tfplug::primitives

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_ELEMENTS_H_
