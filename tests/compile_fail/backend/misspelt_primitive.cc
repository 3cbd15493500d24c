// SPDX-License-Identifier: Apache-2.0
// expect: override
#include "minimal_device.h"
#include "tfplug/backend/reference_backend.h"
#include "tfplug/backend/register.h"

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
