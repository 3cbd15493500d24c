// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this backend is only declared here; define the class
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

class Backend;
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
