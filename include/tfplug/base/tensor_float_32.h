// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_TENSOR_FLOAT_32_H_
#define TFPLUG_BASE_TENSOR_FLOAT_32_H_

#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Returns whether the user lets products and convolutions of floats round their
// factors to TF32, or to the device's own format of that kind:
// tf.config.experimental.enable_tensor_float_32_execution, which is on by
// default. TensorFlow's GPUs do so. Returns false without TensorFlow, and in
// releases that do not export the setting. Ask for each product: the user may
// change it at any time. Thread-safe.
inline bool IsTensorFloat32Allowed() {
  // tsl::tensor_float_32_execution_enabled(), which is no function of the C API.
  static const auto is_enabled = reinterpret_cast<bool (*)()>(
      internal::FindInProcess("_ZN3tsl33tensor_float_32_execution_enabledEv"));
  return is_enabled != nullptr && is_enabled();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_TENSOR_FLOAT_32_H_
