// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/math.h>

#include "cpu_sim.h"
#include "kernels/matrix_product.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class MatMul final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return operands_.Init(construction);
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, context.GetInput(ops::MatMul::a));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, context.GetInput(ops::MatMul::b));
    TFPLUG_ASSIGN_OR_RETURN(const MatrixProduct product,
                            operands_.Multiply(a.shape(), b.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor c,
        context.AllocateOutput(ops::MatMul::product, {product.m, product.n}));
    if (c.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch([product](const float* a, const float* b,
                                    float* c) { product.Run(a, b, c); },
                          a.flat<float>(), b.flat<float>(), c.flat<float>());
  }

 private:
  MatrixOperands operands_;
};

TFPLUG_REGISTER_KERNEL(MatMul, ops::MatMul().T<float>());

}  // namespace
}  // namespace cpu_sim
