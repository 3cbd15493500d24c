#include "backend.h"
#include "tfplug/backend/ops/all_math.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::AllMathOps);
