// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COMPLEX_PRODUCT_H_
#define TFPLUG_OP_KERNELS_COMPLEX_PRODUCT_H_

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "tfplug/ir/views.h"
#include "tfplug/op_kernels/complex_functions.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/reduction.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Prod of complex numbers, whose parts depend on each other: log2(n) passes,
// each of which multiplies the second half of the numbers into the first.
class ComplexProductKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const DataType part = PartType(type);
    ExpressionBuilder builder;
    const ComplexValue a = {builder.Input(part), builder.Input(part)};
    const ComplexValue b = {builder.Input(part), builder.Input(part)};
    const ComplexValue product = a * b;
    builder.Output(product.re, part);
    builder.Output(product.im, part);
    TFPLUG_ASSIGN_OR_RETURN(multiply_, std::move(builder).Build());
    return reducer_.Init(construction, "Prod");
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(1));
    TFPLUG_ASSIGN_OR_RETURN(Reducer::Run reduce,
                            reducer_.Arrange(axes, absl::MakeConstSpan(&x, 1)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, reduce.shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (reduce.count == 0) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, PartOf(y, 0), 1));
      return Fill(run, PartOf(y, 1), 0);
    }
    const Operand& arranged = reduce.inputs[0];
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand copied,
        run.launcher().Allocate(x.type, ir::DimsOf(arranged)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, arranged, copied));
    const Operand rows = Operand::Dense(copied.data, copied.type,
                                        {y.num_elements(), reduce.count});
    int64_t n = reduce.count;
    for (int64_t half = (n + 1) / 2; half < n; half = (n + 1) / 2) {
      const Operand first = ir::Range(rows, 1, 0, n - half);
      const Operand second = ir::Range(rows, 1, half, n);
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(multiply_,
                             {PartOf(first, 0), PartOf(first, 1),
                              PartOf(second, 0), PartOf(second, 1)},
                             {PartOf(first, 0), PartOf(first, 1)}));
      n = half;
    }
    return Copy(run, ir::Range(rows, 1, 0, 1),
                Operand::Dense(y.data, y.type, {y.num_elements(), 1}));
  }

 private:
  Reducer reducer_;
  Expression multiply_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COMPLEX_PRODUCT_H_
