// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a backend needs a public constructor without arguments
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

class Backend : public tfplug::ReferenceBackend<minimal::Stream> {
 public:
  explicit Backend(int) {}
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
