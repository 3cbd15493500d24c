// The kernels are registered in three files, which compile in parallel.
#include "backend.h"
#include "tfplug/op_kernels/all_array.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::AllArrayOps);
