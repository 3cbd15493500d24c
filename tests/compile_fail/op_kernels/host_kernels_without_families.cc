// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: name the families of ops, such as tfplug::ArrayOps
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

TFPLUG_REGISTER_HOST_KERNELS();
