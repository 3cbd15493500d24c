// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/code.h"

#define CPU_SIM_TEXT(name) CPU_SIM_TEXT_(name)
#define CPU_SIM_TEXT_(name) #name

namespace cpu_sim::CPU_SIM_LEVEL {

extern const SimdCode kCode;
const SimdCode kCode = {CPU_SIM_TEXT(CPU_SIM_LEVEL),
                        &Multiply,
                        &Apply,
                        kConv2D,
                        kDirect,
                        kDepthwise,
                        kPool,
                        kBatchNorm,
                        kHostLoops};

}  // namespace cpu_sim::CPU_SIM_LEVEL
