// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_NARROW_H_
#define CPU_SIM_KERNELS_NARROW_H_

#include <tfplug/narrow_types.h>

#include <algorithm>
#include <cstdint>

namespace cpu_sim {

// On the device: elements as another type, half or bfloat16 as float or back.
template <typename To, typename From>
void Convert(To* y, const From* x, int64_t size) {
  std::transform(x, x + size, y, [](From value) { return To(value); });
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_NARROW_H_
