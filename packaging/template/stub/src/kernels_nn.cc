#include "backend.h"
#include "tfplug/backend/ops/all_nn.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::AllNnOps);
