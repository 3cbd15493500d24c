#include "backend.h"
#include "tfplug/backend/ops/activation.h"
#include "tfplug/backend/ops/math.h"
#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/ops/random.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::ActivationOps,
                        tfplug::MathOps, tfplug::MatMulOps, tfplug::RandomOps,
                        tfplug::ReductionOps);
