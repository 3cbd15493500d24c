// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CROSS_H_
#define TFPLUG_OP_KERNELS_CROSS_H_

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Cross: the products of vectors with three elements.
class CrossKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(
        product_, MakeExpression({type, type, type, type}, {type},
                                 [](Value a, Value b, Value c, Value d) {
                                   return a * b - c * d;
                                 }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, GetView(run, 1));
    if (ShapeOf(x) != ShapeOf(y) || x.rank < 1 || x.dim(x.rank - 1) != 3) {
      return absl::InvalidArgumentError(
          "Both inputs must be of same shape, whose last dimension is 3: " +
          ShapeOf(x).ToString() + " vs. " + ShapeOf(y).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand z, run.AllocateOutput(0, ShapeOf(x)));
    for (int64_t i = 0; i < 3; ++i) {
      const auto at = [&](const Operand& view, int64_t offset) {
        const int64_t k = (i + offset) % 3;
        return ir::Range(view, view.rank - 1, k, k + 1);
      };
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          product_, {at(x, 1), at(y, 2), at(x, 2), at(y, 1)}, {at(z, 0)}));
    }
    return absl::OkStatus();
  }

 private:
  Expression product_;
};

}  // namespace op_kernels_internal

inline void CrossOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::CrossKernel>(KernelDef("Cross"), "T",
                                                  kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CROSS_H_
