// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: name the families of ops after the backend
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

TFPLUG_REGISTER_BACKEND(tfplug::ReferenceBackend<minimal::Stream>);
