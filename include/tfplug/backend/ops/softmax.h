// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_SOFTMAX_H_
#define TFPLUG_BACKEND_OPS_SOFTMAX_H_

#include <limits>
#include <string>

#include "tfplug/backend/ops/elementwise.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace internal {

// The largest logit of each row, and the sum of exp(logit - largest).
class RowStatistics {
 public:
  absl::Status Init(DataType type) {
    computed_ = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(largest_,
                            MakeReduction(
                                ReduceKind::kMax, {type}, computed_,
                                [](Value x) { return x; }, computed_));
    TFPLUG_ASSIGN_OR_RETURN(
        sum_, MakeReduction(
                  ReduceKind::kSum, {type, computed_}, computed_,
                  [](Value x, Value largest) { return Exp(x - largest); },
                  computed_));
    return absl::OkStatus();
  }

  // Computes both for a view whose last dimension is the rows'; they are
  // repeated along it.
  absl::Status Run(OpRun& run, const Operand& logits) {
    Operand rows = logits;
    --rows.rank;
    const int64_t size = logits.dim(rows.rank);
    TFPLUG_ASSIGN_OR_RETURN(largest,
                            run.launcher().Allocate(computed_, DimsOf(rows)));
    TFPLUG_ASSIGN_OR_RETURN(sum,
                            run.launcher().Allocate(computed_, DimsOf(rows)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Reduce(largest_, {logits}, {largest}));
    const Operand total = sum;
    largest.AddDim(size, 0);
    sum.AddDim(size, 0);
    return run.launcher().Reduce(sum_, {logits, largest}, {total});
  }

  Operand largest, sum;
  DataType computed() const { return computed_; }

 private:
  DataType computed_{};
  Reduction largest_, sum_;
};

class SoftmaxKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
    const DataType computed = ComputeType(type_);
    const bool is_log = op == "LogSoftmax";
    TFPLUG_ASSIGN_OR_RETURN(
        finish_, MakeExpression({type_, computed, computed}, {type_},
                                [&](Value x, Value largest, Value sum) {
                                  const Value y = x - largest;
                                  return is_log ? y - Log(sum) : Exp(y) / sum;
                                }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank < 1) {
      return absl::InvalidArgumentError(
          "logits must have >= 1 dimension, got " + ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    RowStatistics rows;
    TFPLUG_RETURN_IF_ERROR(rows.Init(type_));
    TFPLUG_RETURN_IF_ERROR(rows.Run(run, x));
    return run.launcher().Map(finish_, {x, rows.largest, rows.sum}, {y});
  }

 private:
  DataType type_{};
  Expression finish_;
};

// SoftmaxCrossEntropyWithLogits, whose logits and labels are broadcast, and
// SparseSoftmaxCrossEntropyWithLogits.
class CrossEntropyKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
    is_sparse_ = op != "SoftmaxCrossEntropyWithLogits";
    labels_ = type_;
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(labels_,
                              construction.GetAttr<DataType>("Tlabels"));
    }
    TFPLUG_RETURN_IF_ERROR(statistics_.Init(type_));
    const DataType computed = ComputeType(type_);
    constexpr DataType kInt64 = DataType::kInt64;
    // Inputs: logit, label, its class, number of classes, largest, sum.
    const DataType inputs[] = {type_,  labels_,  kInt64,
                               kInt64, computed, computed};
    // A label that is out of range gives NaN, as on TensorFlow's GPUs: a device
    // cannot raise an error on the host.
    const auto probability = [&](Value label, Value index, Value classes) {
      if (!is_sparse_) return label;
      const Value wanted = Cast(label, kInt64);
      const Value one = Cast(wanted == index, computed);
      return Select((wanted >= 0) & (wanted < classes), one,
                    std::numeric_limits<double>::quiet_NaN());
    };
    TFPLUG_ASSIGN_OR_RETURN(
        loss_, MakeReduction(
                   ReduceKind::kSum, inputs, computed,
                   [&](Value x, Value label, Value index, Value classes,
                       Value largest, Value sum) {
                     const Value p = probability(label, index, classes);
                     const Value loss = p * (Log(sum) - (x - largest));
                     return Select(p == 0, 0, loss);
                   },
                   type_));
    TFPLUG_ASSIGN_OR_RETURN(
        gradient_, MakeExpression(inputs, {type_},
                                  [&](Value x, Value label, Value index,
                                      Value classes, Value largest, Value sum) {
                                    return Exp(x - largest) / sum -
                                           probability(label, index, classes);
                                  }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand logits, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(Operand labels, GetView(run, 1));
    Shape shape = ShapeOf(logits);
    if (is_sparse_) {
      if (logits.rank != 2) {
        return absl::InvalidArgumentError("logits must be 2-D, but got shape " +
                                          shape.ToString());
      }
      if (labels.rank != 1 || labels.dim(0) != logits.dim(0)) {
        return absl::InvalidArgumentError(
            "labels must be a vector with one element for each row of logits; "
            "logits have shape " +
            shape.ToString() + ", labels have shape " +
            ShapeOf(labels).ToString());
      }
      if (shape.dim(1) <= 0) {
        return absl::InvalidArgumentError(
            "Must have at least one class, but got logits shape " +
            shape.ToString());
      }
      labels.AddDim(logits.dim(1), 0);
    } else {
      TFPLUG_RETURN_IF_ERROR(BroadcastShape(ShapeOf(labels), &shape));
      if (shape.rank() != 2) {
        return absl::InvalidArgumentError(
            "logits and labels must be either 2-dimensional, or broadcasted "
            "to be 2-dimensional");
      }
      logits = BroadcastTo(logits, shape);
      labels = BroadcastTo(labels, shape);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand loss,
                            run.AllocateOutput(0, {shape.dim(0)}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient,
                            run.AllocateOutput(1, shape));
    RowStatistics rows = statistics_;
    TFPLUG_RETURN_IF_ERROR(rows.Run(run, logits));
    const Operand index = IndexOf(logits, 1);
    const Operand classes =
        ScalarOf(DataType::kInt64, static_cast<double>(shape.dim(1)), logits);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        loss_, {logits, labels, index, classes, rows.largest, rows.sum},
        {loss}));
    return run.launcher().Map(
        gradient_, {logits, labels, index, classes, rows.largest, rows.sum},
        {gradient});
  }

 private:
  bool is_sparse_ = false;
  DataType type_{}, labels_{};
  RowStatistics statistics_;
  Reduction loss_;
  Expression gradient_;
};

}  // namespace internal

inline void SoftmaxOps(const Registrar& registrar) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    registrar.Add<internal::SoftmaxKernel>(KernelDef(op), "T", kFloatTypes);
  }
  registrar.Add<internal::CrossEntropyKernel>(
      KernelDef("SoftmaxCrossEntropyWithLogits"), "T", kFloatTypes);
  registrar.Add<internal::CrossEntropyKernel>(
      KernelDef("SparseSoftmaxCrossEntropyWithLogits")
          .TypeConstraint<int32_t, int64_t>("Tlabels"),
      "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_SOFTMAX_H_
