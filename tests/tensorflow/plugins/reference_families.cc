// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/bits.h"
#include "tfplug/backend/ops/color.h"
#include "tfplug/backend/ops/complex.h"
#include "tfplug/backend/ops/counting.h"
#include "tfplug/backend/ops/cross.h"
#include "tfplug/backend/ops/data_format.h"
#include "tfplug/backend/ops/fft.h"
#include "tfplug/backend/ops/warp.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::BitsOps, tfplug::ColorOps,
                        tfplug::ComplexOps, tfplug::CountingOps,
                        tfplug::CrossOps, tfplug::DataFormatOps,
                        tfplug::FourierOps, tfplug::WarpOps);
