// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_MATRIX_PRODUCT_H_
#define CPU_SIM_KERNELS_MATRIX_PRODUCT_H_

#include <tfplug/base/shape.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel_construction.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/gemm.h"

namespace cpu_sim {

// A product c = op(a) * op(b) of dense matrices: op(a) is m x k, op(b) is k x
// n. Plain data, used on the device.
struct MatrixProduct {
  int64_t m, n, k;
  bool transpose_a, transpose_b;

  void Run(const float* a, const float* b, float* c) const {
    Gemm(m, n, k, {a, transpose_a ? m : k, transpose_a},
         {b, transpose_b ? k : n, transpose_b}, c, n);
  }
};

// The attributes of MatMul, which determine the product of two shapes.
class MatrixOperands {
 public:
  absl::Status Init(const tfplug::KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(transpose_a_,
                            construction.GetAttr<bool>("transpose_a"));
    TFPLUG_ASSIGN_OR_RETURN(transpose_b_,
                            construction.GetAttr<bool>("transpose_b"));
    return absl::OkStatus();
  }

  absl::StatusOr<MatrixProduct> Multiply(const tfplug::Shape& a,
                                         const tfplug::Shape& b) const {
    if (a.rank() != 2 || b.rank() != 2) {
      return absl::InvalidArgumentError("operands must be matrices, not " +
                                        a.ToString() + " and " + b.ToString());
    }
    const int64_t k = a.dim(transpose_a_ ? 0 : 1);
    if (k != b.dim(transpose_b_ ? 1 : 0)) {
      return absl::InvalidArgumentError(
          "Matrix size-incompatible: In[0]: " + a.ToString() +
          ", In[1]: " + b.ToString());
    }
    return MatrixProduct{a.dim(transpose_a_ ? 1 : 0),
                         b.dim(transpose_b_ ? 0 : 1), k, transpose_a_,
                         transpose_b_};
  }

 private:
  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_MATRIX_PRODUCT_H_
