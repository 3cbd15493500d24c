#include "device.h"

#include "passes.h"

TFPLUG_REGISTER_DEVICE(my_device::Platform);
TFPLUG_REGISTER_GRAPH_PASSES(my_device::Platform::kType, my_device::FuseRsqrt);
