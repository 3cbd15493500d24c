// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_LOOPS_H_
#define CPU_SIM_BACKEND_LOOPS_H_

#include <tfplug/host/host.h>

#include "kernels/simd.h"

namespace cpu_sim {

// Returns the loops of Map and Reduce for this machine.
inline const tfplug::HostLoops& Loops() {
  return *static_cast<const tfplug::HostLoops*>(Simd().loops);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_LOOPS_H_
