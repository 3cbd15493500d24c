// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: Backend's argument must be the class of streams, such as
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

using minimal::Device;
class Backend : public tfplug::Backend<Device> {
 public:
  absl::Status Map(Device&, const tfplug::Expression&, tfplug::Operands,
                   tfplug::Operands) override {
    return absl::OkStatus();
  }
  absl::Status Reduce(Device&, const tfplug::Reduction&, tfplug::Operands,
                      tfplug::Operands) override {
    return absl::OkStatus();
  }
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
