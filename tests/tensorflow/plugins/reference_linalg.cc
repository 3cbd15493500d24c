// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/all_eigen.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::AllEigenOps);
