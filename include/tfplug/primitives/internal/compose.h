// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSE_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tfplug/base/separate.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives_internal {

// The copies of windows are made in slices of this size, which bounds the
// memory of a convolution.
constexpr int64_t kMaxPatchBytes = int64_t{64} << 20;

// Compute the optional primitives of a Backend by Map and Reduce. They are defined
// in composed.h and composed_*.h; with TFPLUG_SEPARATE, these are compiled once.
TFPLUG_SEPARABLE absl::Status ComposeMatMul(Launcher& launcher,
                                            const Operand& a, const Operand& b,
                                            const Operand& c);
TFPLUG_SEPARABLE absl::Status ComposeScatter(Launcher& launcher,
                                             ScatterKind kind,
                                             const Operand& indices,
                                             const Operand& updates,
                                             const Operand& output);
TFPLUG_SEPARABLE absl::Status ComposeScan(Launcher& launcher, ReduceKind kind,
                                          const Operand& input,
                                          const Operand& output);
TFPLUG_SEPARABLE absl::Status ComposeSort(Launcher& launcher,
                                          const Operand& input,
                                          const Operand& values,
                                          const Operand& indices);
TFPLUG_SEPARABLE absl::Status ComposeConv(Launcher& launcher,
                                          const Convolution& conv,
                                          const Operand& image,
                                          const Operand& filter,
                                          const Operand& output,
                                          int64_t max_bytes = kMaxPatchBytes);
TFPLUG_SEPARABLE absl::Status ComposeConvInputGradient(
    Launcher& launcher, const Convolution& conv, const Operand& filter,
    const Operand& output_gradient, const Operand& image_gradient,
    int64_t max_bytes = kMaxPatchBytes);
TFPLUG_SEPARABLE absl::Status ComposeConvFilterGradient(
    Launcher& launcher, const Convolution& conv, const Operand& image,
    const Operand& output_gradient, const Operand& filter_gradient,
    int64_t max_bytes = kMaxPatchBytes);
TFPLUG_SEPARABLE absl::Status ComposePool(Launcher& launcher,
                                          const Pooling& pooling,
                                          const Operand& image,
                                          const Operand& output);
TFPLUG_SEPARABLE absl::Status ComposePoolGradient(
    Launcher& launcher, const Pooling& pooling, const Operand& image,
    const Operand& output, const Operand& output_gradient,
    const Operand& image_gradient);
TFPLUG_SEPARABLE absl::Status ComposeBatchNormTraining(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormTrainingOperands& n);
TFPLUG_SEPARABLE absl::Status ComposeBatchNormInference(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormInferenceOperands& n);
TFPLUG_SEPARABLE absl::Status ComposeBatchNormGradient(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormGradientOperands& n);
TFPLUG_SEPARABLE absl::Status ComposeSoftmax(Launcher& launcher,
                                             SoftmaxKind kind,
                                             const Operand& logits,
                                             const Operand& output);
TFPLUG_SEPARABLE absl::Status ComposeCrossEntropy(Launcher& launcher,
                                                  const Operand& logits,
                                                  Operand labels,
                                                  const Operand& loss,
                                                  const Operand& gradient);
TFPLUG_SEPARABLE absl::Status ComposeFourier(Launcher& launcher,
                                             bool is_inverse, const Operand& x,
                                             const Operand& y);

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSE_H_
