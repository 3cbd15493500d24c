// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SOFTMAX_H_
#define TFPLUG_OP_KERNELS_SOFTMAX_H_

#include <string>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Softmax and LogSoftmax.
class SoftmaxKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    kind_ = op == "Softmax" ? SoftmaxKind::kSoftmax : SoftmaxKind::kLogSoftmax;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank < 1) {
      return absl::InvalidArgumentError(
          "logits must have >= 1 dimension, got " + ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    if (y.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Softmax(kind_, x, y);
  }

 private:
  SoftmaxKind kind_ = SoftmaxKind::kSoftmax;
};

// SoftmaxCrossEntropyWithLogits, whose logits and labels are broadcast, and
// SparseSoftmaxCrossEntropyWithLogits. A class out of range gives NaN, as on
// TensorFlow's GPUs: a device cannot raise an error on the host.
class CrossEntropyKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_sparse_ = op != "SoftmaxCrossEntropyWithLogits";
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand logits, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(Operand labels, GetView(run, 1));
    Shape shape = ShapeOf(logits);
    if (is_sparse_) {
      TFPLUG_RETURN_IF_ERROR(CheckSparse(logits, labels));
    } else {
      if (!BroadcastShape(ShapeOf(labels), &shape).ok()) {
        return absl::InvalidArgumentError(
            "logits and labels must be broadcastable: logits_size=" +
            ShapeOf(logits).ToString() +
            " labels_size=" + ShapeOf(labels).ToString());
      }
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
    if (gradient.num_elements() == 0) return Fill(run, loss, 0);
    return run.launcher().CrossEntropy(logits, labels, loss, gradient);
  }

 private:
  static absl::Status CheckSparse(const Operand& logits,
                                  const Operand& labels) {
    const Shape shape = ShapeOf(logits);
    if (logits.rank != 2) {
      return absl::InvalidArgumentError("logits must be 2-D, but got shape " +
                                        shape.ToString());
    }
    if (labels.rank != 1) {
      return absl::InvalidArgumentError("labels must be 1-D, but got shape " +
                                        ShapeOf(labels).ToString());
    }
    if (labels.dim(0) != logits.dim(0)) {
      return absl::InvalidArgumentError(
          "logits and labels must have the same first dimension, got logits "
          "shape " +
          shape.ToString() + " and labels shape " + ShapeOf(labels).ToString());
    }
    if (shape.dim(1) <= 0) {
      return absl::InvalidArgumentError(
          "Must have at least one class, but got logits shape " +
          shape.ToString());
    }
    return absl::OkStatus();
  }

  bool is_sparse_ = false;
};

}  // namespace op_kernels_internal

inline void SoftmaxOps(const Registrar& registrar) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    registrar.Add<op_kernels_internal::SoftmaxKernel>(KernelDef(op), "T",
                                                      kFloatTypes);
  }
  registrar.Add<op_kernels_internal::CrossEntropyKernel>(
      KernelDef("SoftmaxCrossEntropyWithLogits"), "T", kFloatTypes);
  registrar.Add<op_kernels_internal::CrossEntropyKernel>(
      KernelDef("SparseSoftmaxCrossEntropyWithLogits")
          .TypeConstraint<int32_t, int64_t>("Tlabels"),
      "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SOFTMAX_H_
