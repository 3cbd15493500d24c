// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_BATCH_GEMM_H_
#define CPU_SIM_KERNELS_BATCH_GEMM_H_

#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/loop.h"

namespace cpu_sim {

// A batch of matrix products, c = op(a) * op(b). Plain data.
struct BatchGemm {
  // The layout of the operands: the distance between rows, and whether to
  // transpose.
  struct Layout {
    int64_t stride = 0;
    bool transpose = false;
  };

  int64_t m = 0, n = 0, k = 0;
  Layout a, b;
  int64_t c_stride = 0;
  Loop<3> batch;  // offsets of the matrices c, a and b
};

// Runs on the device.
inline void MultiplyBatch(const BatchGemm& gemm, float* c, const float* a,
                          const float* b) {
  const Loop<3>& batch = gemm.batch;
  ForEachRow(batch, [&](const auto& at) {
    for (int64_t i = 0; i < batch.row_size(); ++i) {
      Gemm(gemm.m, gemm.n, gemm.k,
           {a + at[1] + i * batch.row_stride(1), gemm.a.stride,
            gemm.a.transpose},
           {b + at[2] + i * batch.row_stride(2), gemm.b.stride,
            gemm.b.transpose},
           c + at[0] + i * batch.row_stride(0), gemm.c_stride);
    }
  });
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_BATCH_GEMM_H_
