// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_GEMM_H_
#define CPU_SIM_KERNELS_GEMM_H_

#include <cstdint>

namespace cpu_sim {

// A row-major matrix of floats, optionally transposed. Rows begin `stride`
// elements apart.
struct GemmOperand {
  const float* data;
  int64_t stride;
  bool transpose = false;
};

enum class GemmMode { kAssign, kAdd };

// Computes c = op(a) * op(b), or c += op(a) * op(b), on the device. op(a) is m
// x k, op(b) is k x n; c is m x n, its rows begin `c_stride` elements apart.
// Any size may be 0; with no k, the product is 0. c must not overlap a or b.
void Gemm(int64_t m, int64_t n, int64_t k, GemmOperand a, GemmOperand b,
          float* c, int64_t c_stride, GemmMode mode = GemmMode::kAssign);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_GEMM_H_
