// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a backend must be publicly derived from tfplug::Backend
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

class Backend : tfplug::Backend<minimal::Stream> {
 public:
  absl::Status Map(minimal::Stream&, const tfplug::Expression&,
                   tfplug::Operands, tfplug::Operands) override {
    return absl::OkStatus();
  }
  absl::Status Reduce(minimal::Stream&, const tfplug::Reduction&,
                      tfplug::Operands, tfplug::Operands) override {
    return absl::OkStatus();
  }
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
