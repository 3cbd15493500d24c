// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/check_numerics.h>
#include <tfplug/backend/ops/color.h>
#include <tfplug/backend/ops/complex.h>
#include <tfplug/backend/ops/counting.h>
#include <tfplug/backend/ops/fft.h>
#include <tfplug/backend/ops/identity.h>
#include <tfplug/backend/ops/variables.h>
#include <tfplug/backend/ops/warp.h>
#include <tfplug/backend/register.h>

#include "backend/backend.h"

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, tfplug::CheckNumericsOps,
                        tfplug::ColorOps, tfplug::ComplexOps,
                        tfplug::CountingOps, tfplug::FourierOps,
                        tfplug::IdentityOps, tfplug::VariableOps,
                        tfplug::WarpOps);
