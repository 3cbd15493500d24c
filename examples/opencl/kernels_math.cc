// SPDX-License-Identifier: Apache-2.0
#include <tfplug/backend/ops/activation.h>
#include <tfplug/backend/ops/check_numerics.h>
#include <tfplug/backend/ops/complex.h>
#include <tfplug/backend/ops/convert.h>
#include <tfplug/backend/ops/counting.h>
#include <tfplug/backend/ops/fft.h>
#include <tfplug/backend/ops/identity.h>
#include <tfplug/backend/ops/math.h>
#include <tfplug/backend/ops/sparse.h>
#include <tfplug/backend/register.h>

#include "backend.h"

TFPLUG_REGISTER_BACKEND(opencl::Backend, tfplug::ActivationOps,
                        tfplug::CheckNumericsOps, tfplug::ComplexOps,
                        tfplug::ConvertOps, tfplug::CountingOps,
                        tfplug::FourierOps, tfplug::IdentityOps,
                        tfplug::MathOps, tfplug::SparseOps);
