// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/simd.h"

// Batch normalization, in float.
namespace cpu_sim {
namespace {

using tfplug::BatchNormalization;
using tfplug::Launcher;
using tfplug::Operand;

BatchNorm Describe(const BatchNormalization& norm, const Operand& x) {
  const int64_t depth = x.dim(x.rank - 1);
  return {x.num_elements() / depth, depth, static_cast<float>(norm.epsilon),
          static_cast<float>(norm.average_factor)};
}

// Enqueues function(norm, operands...).
template <class Function>
absl::Status Enqueue(Stream& stream, const BatchNorm& norm, Function function,
                     tfplug::Operands operands) {
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views, ForDevice(stream, operands));
  return stream.LaunchTask([=] {
    const auto at = [&](size_t i) {
      return static_cast<float*>(views[i].data);
    };
    function(norm, at);
  });
}

}  // namespace

absl::Status Backend::BatchNormTraining(
    Stream& stream, Launcher& launcher, const BatchNormalization& norm,
    const tfplug::BatchNormTrainingOperands& n) {
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, n.x));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(n.y));
  TFPLUG_RETURN_IF_ERROR(Enqueue(
      stream, Describe(norm, n.x),
      [](const BatchNorm& sizes, auto at) {
        Simd().batch_norm.training(sizes, at(0), at(1), at(2), at(3), at(4),
                                   at(5), at(6), at(7), at(8), at(9));
      },
      {x, n.scale, n.offset, n.old_mean, n.old_variance, y, n.new_mean,
       n.new_variance, n.mean, n.variance}));
  return outputs.Finish();
}

absl::Status Backend::BatchNormInference(
    Stream& stream, Launcher& launcher, const BatchNormalization& norm,
    const tfplug::BatchNormInferenceOperands& n) {
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, n.x));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(n.y));
  TFPLUG_RETURN_IF_ERROR(
      Enqueue(stream, Describe(norm, n.x),
              [](const BatchNorm& sizes, auto at) {
                Simd().batch_norm.inference(sizes, at(0), at(1), at(2), at(3),
                                            at(4), at(5));
              },
              {x, n.scale, n.offset, n.mean, n.variance, y}));
  return outputs.Finish();
}

absl::Status Backend::BatchNormGradient(
    Stream& stream, Launcher& launcher, const BatchNormalization& norm,
    const tfplug::BatchNormGradientOperands& n) {
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy, ToFloats(launcher, n.y_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, n.x));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dx, outputs.Add(n.x_gradient));
  const BatchNormCode& code = Simd().batch_norm;
  const auto function =
      norm.is_training ? code.training_gradient : code.inference_gradient;
  TFPLUG_RETURN_IF_ERROR(Enqueue(stream, Describe(norm, n.x),
                                 [function](const BatchNorm& sizes, auto at) {
                                   function(sizes, at(0), at(1), at(2), at(3),
                                            at(4), at(5), at(6), at(7));
                                 },
                                 {dy, x, n.scale, n.mean, n.variance, dx,
                                  n.scale_gradient, n.offset_gradient}));
  return outputs.Finish();
}

}  // namespace cpu_sim
