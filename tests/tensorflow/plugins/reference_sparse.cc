// SPDX-License-Identifier: Apache-2.0
#include "reference_backend.h"
#include "tfplug/backend/ops/check_numerics.h"
#include "tfplug/backend/ops/identity.h"
#include "tfplug/backend/ops/random_gamma.h"
#include "tfplug/backend/ops/selection.h"
#include "tfplug/backend/ops/sparse.h"
#include "tfplug/backend/ops/sparse_tensor.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(reference::Backend, tfplug::CheckNumericsOps,
                        tfplug::IdentityOps, tfplug::RandomGammaOps,
                        tfplug::SelectionOps, tfplug::SparseOps,
                        tfplug::SparseTensorOps);
