#include "backend.h"
#include "tfplug/op_kernels/all.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::AllOps);
