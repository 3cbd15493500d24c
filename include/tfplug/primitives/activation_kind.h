// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_ACTIVATION_KIND_H_
#define TFPLUG_PRIMITIVES_ACTIVATION_KIND_H_

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug {

// The activations of fused products (see Epilogue).
enum class ActivationKind : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kTanh,
  kSigmoid
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_ACTIVATION_KIND_H_
