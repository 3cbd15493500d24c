// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a backend must be publicly derived from tfplug::Backend
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

class Backend : tfplug::ReferenceBackend<minimal::Stream> {};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
