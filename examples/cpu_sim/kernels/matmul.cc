// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ops/m.h>
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/gemm.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class MatMul final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(transpose_a_,
                            construction.GetAttr(ops::MatMul::transpose_a));
    TFPLUG_ASSIGN_OR_RETURN(transpose_b_,
                            construction.GetAttr(ops::MatMul::transpose_b));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, context.input(ops::MatMul::a));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, context.input(ops::MatMul::b));
    if (a.rank() != 2 || b.rank() != 2) {
      return absl::InvalidArgumentError("want two matrices, not " +
                                        a.shape().ToString() + " and " +
                                        b.shape().ToString());
    }
    const int64_t m = a.dim(transpose_a_ ? 1 : 0);
    const int64_t k = a.dim(transpose_a_ ? 0 : 1);
    const int64_t n = b.dim(transpose_b_ ? 0 : 1);
    if (k != b.dim(transpose_b_ ? 1 : 0)) {
      return absl::InvalidArgumentError(
          "Matrix size-incompatible: In[0]: " + a.shape().ToString() +
          ", In[1]: " + b.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor product,
        context.allocate_output(ops::MatMul::product, {m, n}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(
        [=, a_stride = a.dim(1), b_stride = b.dim(1), ta = transpose_a_,
         tb = transpose_b_](const float* a, const float* b, float* c) {
          Gemm(m, n, k, {a, a_stride, ta}, {b, b_stride, tb}, c, n);
        },
        a.flat<float>(), b.flat<float>(), product.flat<float>());
  }

 private:
  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

TFPLUG_REGISTER_KERNEL(MatMul, ops::MatMul().T<float>());

}  // namespace
}  // namespace cpu_sim
