// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this backend does not override every required function
// expect: Reduce
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

class Backend : public tfplug::Backend<minimal::Stream> {
 public:
  absl::Status Map(minimal::Stream&, const tfplug::Expression&,
                   tfplug::Operands, tfplug::Operands) override {
    return absl::OkStatus();
  }
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
