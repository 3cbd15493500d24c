// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/simd.h"

// Pooling of two dimensions, in float; tfplug composes the others.
namespace cpu_sim {
namespace {

using tfplug::Launcher;
using tfplug::Operand;
using tfplug::Pooling;
using tfplug::PoolKind;
using Base = tfplug::Backend<Stream>;

bool IsFast(const Pooling& pooling, const Operand& operand) {
  return pooling.windows.size() == 2 && IsComputedInFloat(operand.type);
}

Pool2D Describe(const Pooling& pooling, const Operand& image) {
  const auto window = [&](size_t i) -> Window {
    const tfplug::Window& w = pooling.windows[i];
    return {w.input, w.output, w.size, w.stride, w.dilation, w.before};
  };
  return {image.dim(0), window(0), window(1), image.dim(3)};
}

}  // namespace

absl::Status Backend::Pool(Stream& stream, Launcher& launcher,
                           const Pooling& pooling, const Operand& image,
                           const Operand& output) {
  if (!IsFast(pooling, image)) {
    return Base::Pool(stream, launcher, pooling, image, output);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(output));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views, ForDevice(stream, {x, y}));
  const auto function =
      pooling.kind == PoolKind::kMax ? Simd().pool.max : Simd().pool.average;
  TFPLUG_RETURN_IF_ERROR(
      stream.LaunchTask([function, pool = Describe(pooling, image), views] {
        function(pool, Floats(views[0]), Floats(views[1]));
      }));
  return outputs.Finish();
}

absl::Status Backend::PoolGradient(Stream& stream, Launcher& launcher,
                                   const Pooling& pooling, const Operand& image,
                                   const Operand& output,
                                   const Operand& output_gradient,
                                   const Operand& image_gradient) {
  if (!IsFast(pooling, image_gradient)) {
    return Base::PoolGradient(stream, launcher, pooling, image, output,
                              output_gradient, image_gradient);
  }
  const Pool2D pool = Describe(pooling, image_gradient);
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                          ToFloats(launcher, output_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dx, outputs.Add(image_gradient));
  if (pooling.kind == PoolKind::kAverage) {
    TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                            ForDevice(stream, {dy, dx}));
    TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([pool, views] {
      Simd().pool.average_gradient(pool, Floats(views[0]), Floats(views[1]));
    }));
    return outputs.Finish();
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, ToFloats(launcher, output));
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand workspace,
      launcher.Allocate(tfplug::DataType::kFloat, {pool.depth}));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {x, y, dy, dx, workspace}));
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([pool, views] {
    Simd().pool.max_gradient(pool, Floats(views[0]), Floats(views[1]),
                             Floats(views[2]), Floats(views[3]),
                             Floats(views[4]));
  }));
  return outputs.Finish();
}

}  // namespace cpu_sim
