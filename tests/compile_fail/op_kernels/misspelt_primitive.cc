// SPDX-License-Identifier: Apache-2.0
// expect: override
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

class Backend : public tfplug::ReferenceBackend<minimal::Stream> {
 public:
  absl::Status Matmul(minimal::Stream&, tfplug::Launcher&,
                      const tfplug::Operand&, const tfplug::Operand&,
                      const tfplug::Operand&) override {
    return absl::OkStatus();
  }
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
