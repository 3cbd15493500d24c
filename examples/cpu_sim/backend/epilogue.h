// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_EPILOGUE_H_
#define CPU_SIM_BACKEND_EPILOGUE_H_

#include <tfplug/primitives/epilogue.h>
#include <tfplug/primitives/launcher.h>

#include <optional>

#include "absl/status/statusor.h"
#include "cpu_sim.h"
#include "kernels/simd.h"

namespace cpu_sim {

// Returns the epilogue with private addresses of its vectors, as floats.
// Returns the fast epilogue that computes the expression with the inputs, or
// none.
std::optional<tfplug::Epilogue> FindFastEpilogue(
    const tfplug::Expression& expression, tfplug::Operands inputs);
absl::StatusOr<Epilogue> EpilogueForDevice(Stream& stream,
                                           tfplug::Launcher& launcher,
                                           const tfplug::Epilogue& epilogue);

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_EPILOGUE_H_
