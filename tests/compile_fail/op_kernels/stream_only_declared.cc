// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the stream's class is only declared here; define it
// expect-errors: 1
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"

class Stream;
class Backend : public tfplug::Backend<Stream> {
 public:
  absl::Status Map(Stream&, const tfplug::Expression&, tfplug::Operands,
                   tfplug::Operands) override {
    return absl::OkStatus();
  }
  absl::Status Reduce(Stream&, const tfplug::Reduction&, tfplug::Operands,
                      tfplug::Operands) override {
    return absl::OkStatus();
  }
};
void MyOps(const tfplug::Registrar&) {}
TFPLUG_REGISTER_BACKEND(Backend, MyOps);
