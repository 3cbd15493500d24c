// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_SOFTMAX_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_SOFTMAX_H_

#include <limits>

#include "tfplug/base/separate.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// Softmax and cross entropy composed of Map and Reduce.
namespace tfplug::primitives_internal {

// The largest logit of each row, and the sum of exp(logit - largest), repeated
// along the row.
struct RowStatistics {
  Operand largest, sum;
};

// Returns the statistics of views whose last dimension is the rows'.
inline absl::StatusOr<RowStatistics> StatisticsOf(Launcher& launcher,
                                                  const Operand& logits) {
  static primitives::Memo<Reduction> largest_memo, sum_memo;
  const DataType type = logits.type, computed = ComputeType(type);
  TFPLUG_ASSIGN_OR_RETURN(const Reduction* const find_largest,
                          largest_memo.Get(primitives::KeyOf(type), [&] {
                            return primitives::MakeReduction(
                                ReduceKind::kMax, {type}, computed,
                                [](Value x) { return x; }, computed);
                          }));
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const add, sum_memo.Get(primitives::KeyOf(type), [&] {
        return primitives::MakeReduction(
            ReduceKind::kSum, {type, computed}, computed,
            [](Value x, Value largest) { return Exp(x - largest); }, computed);
      }));
  Operand rows = logits;
  --rows.rank;
  const int64_t size = logits.dim(rows.rank);
  RowStatistics result;
  TFPLUG_ASSIGN_OR_RETURN(result.largest,
                          launcher.Allocate(computed, ir::DimsOf(rows)));
  TFPLUG_ASSIGN_OR_RETURN(result.sum,
                          launcher.Allocate(computed, ir::DimsOf(rows)));
  TFPLUG_RETURN_IF_ERROR(
      launcher.Reduce(*find_largest, {logits}, {result.largest}));
  const Operand total = result.sum;
  result.largest.AddDim(size, 0);
  result.sum.AddDim(size, 0);
  TFPLUG_RETURN_IF_ERROR(
      launcher.Reduce(*add, {logits, result.largest}, {total}));
  return result;
}

TFPLUG_SEPARABLE absl::Status ComposeSoftmax(Launcher& launcher,
                                             SoftmaxKind kind,
                                             const Operand& logits,
                                             const Operand& output) {
  static primitives::Memo<Expression> memo;
  const bool is_log = kind == SoftmaxKind::kLogSoftmax;
  const DataType type = logits.type, computed = ComputeType(type);
  const uint32_t key =
      primitives::KeyOf(type) | (static_cast<uint32_t>(kind) << 8);
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const finish, memo.Get(key, [&] {
    return MakeExpression({type, computed, computed}, {type},
                          [&](Value x, Value largest, Value sum) {
                            const Value y = x - largest;
                            return is_log ? y - Log(sum) : Exp(y) / sum;
                          });
  }));
  TFPLUG_ASSIGN_OR_RETURN(const RowStatistics rows,
                          StatisticsOf(launcher, logits));
  return launcher.Map(*finish, {logits, rows.largest, rows.sum}, {output});
}

// Inputs: logit, label, its class, number of classes, largest, sum.
struct CrossEntropyCode {
  Reduction loss;
  Expression gradient;

  static absl::StatusOr<CrossEntropyCode> Make(DataType type, DataType labels) {
    constexpr DataType kInt64 = DataType::kInt64;
    const DataType computed = ComputeType(type);
    const DataType inputs[] = {type,   labels,   kInt64,
                               kInt64, computed, computed};
    // A class that is out of range gives NaN: a device cannot raise an error on
    // the host.
    const auto probability = [&](Value label, Value index, Value classes) {
      if (IsFloat(labels)) return label;
      const Value wanted = Cast(label, kInt64);
      const Value one = Cast(wanted == index, computed);
      return Select((wanted >= 0) & (wanted < classes), one,
                    std::numeric_limits<double>::quiet_NaN());
    };
    CrossEntropyCode code;
    TFPLUG_ASSIGN_OR_RETURN(
        code.loss, primitives::MakeReduction(
                       ReduceKind::kSum, inputs, computed,
                       [&](Value x, Value label, Value index, Value classes,
                           Value largest, Value sum) {
                         const Value p = probability(label, index, classes);
                         const Value loss = p * (Log(sum) - (x - largest));
                         return Select(p == 0, 0, loss);
                       },
                       type));
    TFPLUG_ASSIGN_OR_RETURN(
        code.gradient,
        MakeExpression(inputs, {type},
                       [&](Value x, Value label, Value index, Value classes,
                           Value largest, Value sum) {
                         return Exp(x - largest) / sum -
                                probability(label, index, classes);
                       }));
    return code;
  }
};

TFPLUG_SEPARABLE absl::Status ComposeCrossEntropy(Launcher& launcher,
                                                  const Operand& logits,
                                                  Operand labels,
                                                  const Operand& loss,
                                                  const Operand& gradient) {
  static primitives::Memo<CrossEntropyCode> memo;
  TFPLUG_ASSIGN_OR_RETURN(
      const CrossEntropyCode* const code,
      memo.Get(primitives::KeyOf(logits.type, labels.type), [&] {
        return CrossEntropyCode::Make(logits.type, labels.type);
      }));
  const int last = logits.rank - 1;
  if (labels.rank == last) labels.AddDim(logits.dim(last), 0);
  TFPLUG_ASSIGN_OR_RETURN(const RowStatistics rows,
                          StatisticsOf(launcher, logits));
  const Operand index = ir::IndexOf(logits, last);
  const Operand classes = ir::ScalarOf(
      DataType::kInt64, static_cast<double>(logits.dim(last)), logits);
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      code->loss, {logits, labels, index, classes, rows.largest, rows.sum},
      {loss}));
  return launcher.Map(code->gradient,
                      {logits, labels, index, classes, rows.largest, rows.sum},
                      {gradient});
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_SOFTMAX_H_
