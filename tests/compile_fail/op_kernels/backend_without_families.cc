// SPDX-License-Identifier: Apache-2.0
// expect: tfplug: name the families of ops after the backend
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

class Backend : public tfplug::Backend<minimal::Stream> {
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
TFPLUG_REGISTER_BACKEND(Backend);
