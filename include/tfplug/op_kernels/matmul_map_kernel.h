// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MATMUL_MAP_KERNEL_H_
#define TFPLUG_OP_KERNELS_MATMUL_MAP_KERNEL_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/op_kernels/fused_map_kernel.h"
#include "tfplug/op_kernels/matmul.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The op of a matrix product and the element-wise ops after it: one MatMulMap,
// or, if the outputs turn out to have other shapes than the product, a MatMul
// and the Maps of FusedMapKernel.
class MatMulMapKernel final : public FusedMapKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    const auto get = [&](const char* name) {
      return construction.GetAttr<bool>(name);
    };
    TFPLUG_ASSIGN_OR_RETURN(const bool is_batch, get("is_batch"));
    operands_.broadcasts = is_batch;
    operands_.is_matrix = !is_batch;
    TFPLUG_ASSIGN_OR_RETURN(operands_.transpose_a, get("transpose_a"));
    TFPLUG_ASSIGN_OR_RETURN(operands_.transpose_b, get("transpose_b"));
    TFPLUG_ASSIGN_OR_RETURN(type_, GetType(construction));
    if (!IsFloat(type_)) return MalformedFusedOp("T is no real number");
    return SetUp(construction, kFusedMapAttrs, {type_});
  }

  absl::Status Run(OpRun& run) override {
    Operand a, b;
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, operands_.Read(run, a, b));
    Views inputs(shapes_.num_inputs());
    inputs[0] = Operand::Dense(nullptr, type_, shape.dims());
    FusedShapes::Run shapes(shapes_);
    shapes.SetInput(0, inputs[0]);
    for (size_t i = 1; i < inputs.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(inputs[i], GetView(run, static_cast<int>(i) + 1));
      shapes.SetInput(i, inputs[i]);
    }
    TFPLUG_RETURN_IF_ERROR(shapes.Infer());
    if (HaveShape(shapes, shape)) {
      return RunFused(run, a, b, shape, inputs);
    }
    TFPLUG_ASSIGN_OR_RETURN(inputs[0],
                            run.launcher().Allocate(type_, shape.dims()));
    if (shape.num_elements() != 0) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().MatMul(a, b, inputs[0]));
    }
    return RunMap(run, inputs, shapes);
  }

 private:
  absl::Status RunFused(OpRun& run, const Operand& a, const Operand& b,
                        const Shape& shape, Views& inputs) const {
    Views outputs(num_outputs());
    for (size_t k = 0; k < outputs.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(outputs[k],
                              run.AllocateOutput(static_cast<int>(k), shape));
    }
    if (shape.num_elements() == 0) return absl::OkStatus();
    for (Operand& input : inputs) input = BroadcastTo(input, shape);
    return run.launcher().MatMulMap(
        a, b, expression_, absl::MakeConstSpan(inputs).subspan(1), outputs);
  }

  MatMulOperands operands_;
  DataType type_{};
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_MATMUL_MAP_KERNEL_H_
