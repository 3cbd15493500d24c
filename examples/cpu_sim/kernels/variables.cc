// SPDX-License-Identifier: Apache-2.0
#include <tfplug/kernel/variable_kernels.h>

#include <cstdint>

#include "kernels/elementwise.h"

namespace cpu_sim {
namespace {

// Callbacks of TensorFlow's variable functions, in the releases that export
// them.
struct Variables : tfplug::VariableCode<Stream> {
  template <typename T>
  static absl::Status Add(Stream& stream, const tfplug::Tensor& to,
                          const tfplug::Tensor& value, T sign) {
    return stream.Launch(
        [](T* to, const T* value, int64_t size, T sign) {
          RowMap<T>(to, size) += sign * ConstRowMap<T>(value, size);
        },
        to.flat<T>(), value.flat<T>(), value.num_elements(), sign);
  }

  static absl::Status Update(tfplug::KernelContext& context,
                             tfplug::VariableUpdate update, tfplug::Tensor& to,
                             const tfplug::Tensor& value) {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    const int sign = update == tfplug::VariableUpdate::kAdd ? 1 : -1;
    switch (to.dtype()) {
      case tfplug::DataType::kFloat:
        return Add<float>(*stream, to, value, static_cast<float>(sign));
      case tfplug::DataType::kDouble:
        return Add<double>(*stream, to, value, sign);
      default:
        return Add<int64_t>(*stream, to, value, sign);
    }
  }
};

[[maybe_unused]] const bool kernels =
    tfplug::RegisterVariableKernels<Variables, float, double, int64_t>();

}  // namespace
}  // namespace cpu_sim
