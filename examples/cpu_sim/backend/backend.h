// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_BACKEND_H_
#define CPU_SIM_BACKEND_BACKEND_H_

#include <tfplug/primitives/backend.h>

#include "cpu_sim.h"

namespace cpu_sim {

// The primitives, from which tfplug makes the kernels of most ops. Each
// enqueues a task on the stream, with the private addresses of its operands.
class Backend final : public tfplug::Backend<cpu_sim::Stream> {
 public:
  using Stream = cpu_sim::Stream;

  absl::Status Map(Stream& stream, const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override;
  absl::Status Reduce(Stream& stream, const tfplug::Reduction& reduction,
                      tfplug::Operands inputs,
                      tfplug::Operands outputs) override;
  absl::Status MatMul(Stream& stream, tfplug::Launcher& launcher,
                      const tfplug::Operand& a, const tfplug::Operand& b,
                      const tfplug::Operand& c) override;
  absl::Status Scatter(Stream& stream, tfplug::Launcher& launcher,
                       tfplug::ScatterKind kind, const tfplug::Operand& indices,
                       const tfplug::Operand& updates,
                       const tfplug::Operand& output) override;
  absl::Status Scan(Stream& stream, tfplug::Launcher& launcher,
                    tfplug::ReduceKind kind, const tfplug::Operand& input,
                    const tfplug::Operand& output) override;
  absl::Status Sort(Stream& stream, tfplug::Launcher& launcher,
                    const tfplug::Operand& input, const tfplug::Operand& values,
                    const tfplug::Operand& indices) override;

  absl::Status MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                         const tfplug::Operand& a, const tfplug::Operand& b,
                         const tfplug::Expression& expression,
                         tfplug::Operands inputs,
                         tfplug::Operands outputs) override;
  absl::Status Conv(Stream& stream, tfplug::Launcher& launcher,
                    const tfplug::Convolution& conv,
                    const tfplug::Operand& image, const tfplug::Operand& filter,
                    const tfplug::Operand& output) override;
  absl::Status ConvMap(Stream& stream, tfplug::Launcher& launcher,
                       const tfplug::Convolution& conv,
                       const tfplug::Operand& image,
                       const tfplug::Operand& filter,
                       const tfplug::Expression& expression,
                       tfplug::Operands inputs,
                       tfplug::Operands outputs) override;
  absl::Status ConvInputGradient(
      Stream& stream, tfplug::Launcher& launcher,
      const tfplug::Convolution& conv, const tfplug::Operand& filter,
      const tfplug::Operand& output_gradient,
      const tfplug::Operand& image_gradient) override;
  absl::Status ConvFilterGradient(
      Stream& stream, tfplug::Launcher& launcher,
      const tfplug::Convolution& conv, const tfplug::Operand& image,
      const tfplug::Operand& output_gradient,
      const tfplug::Operand& filter_gradient) override;
  absl::Status Recur(Stream& stream, tfplug::Launcher& launcher,
                     const tfplug::Operand& a, const tfplug::Operand& b,
                     const tfplug::Operand& c,
                     const tfplug::Expression& expression,
                     tfplug::Operands inputs,
                     tfplug::Operands outputs) override;
  absl::Status Pool(Stream& stream, tfplug::Launcher& launcher,
                    const tfplug::Pooling& pooling,
                    const tfplug::Operand& image,
                    const tfplug::Operand& output) override;
  absl::Status PoolGradient(Stream& stream, tfplug::Launcher& launcher,
                            const tfplug::Pooling& pooling,
                            const tfplug::Operand& image,
                            const tfplug::Operand& output,
                            const tfplug::Operand& output_gradient,
                            const tfplug::Operand& image_gradient) override;
  absl::Status BatchNormTraining(
      Stream& stream, tfplug::Launcher& launcher,
      const tfplug::BatchNormalization& norm,
      const tfplug::BatchNormTrainingOperands& operands) override;
  absl::Status BatchNormInference(
      Stream& stream, tfplug::Launcher& launcher,
      const tfplug::BatchNormalization& norm,
      const tfplug::BatchNormInferenceOperands& operands) override;
  absl::Status BatchNormGradient(
      Stream& stream, tfplug::Launcher& launcher,
      const tfplug::BatchNormalization& norm,
      const tfplug::BatchNormGradientOperands& operands) override;
  absl::Status Fourier(Stream& stream, tfplug::Launcher& launcher,
                       bool is_inverse, const tfplug::Operand& x,
                       const tfplug::Operand& y) override;
  absl::Status Softmax(Stream& stream, tfplug::Launcher& launcher,
                       tfplug::SoftmaxKind kind, const tfplug::Operand& logits,
                       const tfplug::Operand& output) override;
  absl::Status CrossEntropy(Stream& stream, tfplug::Launcher& launcher,
                            const tfplug::Operand& logits,
                            const tfplug::Operand& labels,
                            const tfplug::Operand& loss,
                            const tfplug::Operand& gradient) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_BACKEND_H_
