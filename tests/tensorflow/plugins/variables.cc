// SPDX-License-Identifier: Apache-2.0
// Registers assign, assign_add and assign_sub for tf.Variable on the device:
// the kernels of variable_kernels.h with this device's code for += and -=.
#include "small_device.h"
#include "tfplug/kernel/variable_kernels.h"

namespace small {
namespace {

struct Variables : tfplug::VariableCode<Stream> {
  static absl::Status Update(tfplug::KernelContext&,
                             tfplug::VariableUpdate update,
                             tfplug::Tensor& variable,
                             const tfplug::Tensor& value) {
    float* to = OnDevice(variable.flat<float>().data());
    const float* from = OnDevice(value.flat<float>().data());
    const float sign = update == tfplug::VariableUpdate::kAdd ? 1 : -1;
    for (int64_t i = 0; i < variable.num_elements(); ++i) {
      to[i] += sign * from[i];
    }
    return absl::OkStatus();
  }
};
[[maybe_unused]] const bool registered =
    tfplug::RegisterVariableKernels<Variables, float>();

}  // namespace
}  // namespace small
