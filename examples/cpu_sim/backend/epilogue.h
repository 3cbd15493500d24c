// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_EPILOGUE_H_
#define CPU_SIM_BACKEND_EPILOGUE_H_

#include <tfplug/primitives/launcher.h>

#include "absl/status/statusor.h"
#include "cpu_sim.h"
#include "kernels/simd.h"

namespace cpu_sim {

// Returns the epilogue with private addresses of its vectors, as floats.
absl::StatusOr<Epilogue> EpilogueForDevice(Stream& stream,
                                           tfplug::Launcher& launcher,
                                           const tfplug::Epilogue& epilogue);

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_EPILOGUE_H_
