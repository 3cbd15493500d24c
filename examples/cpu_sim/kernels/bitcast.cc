// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

// Keeps the bytes.
class Bitcast final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    if (y.byte_size() != x.byte_size()) {
      return absl::UnimplementedError(
          "Bitcast between types of different sizes is not implemented on this "
          "device");
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->CopyDeviceToDevice(y.memory(), x.memory(), x.byte_size());
  }
};
TFPLUG_REGISTER_KERNEL(Bitcast, tfplug::KernelDef("Bitcast"));

}  // namespace
}  // namespace cpu_sim
