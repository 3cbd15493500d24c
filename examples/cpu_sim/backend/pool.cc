// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/parallel.h"
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

// Calls run(pool, offset in the image, offset in the output, slot) for pieces
// with some of the images each.
template <class Run>
void ForSomeImages(const Pool2D& pool, Run run) {
  const int64_t in = pool.rows.in * pool.cols.in * pool.depth;
  const int64_t out = pool.rows.out * pool.cols.out * pool.depth;
  const int64_t cost = in + out * pool.rows.size * pool.cols.size;
  ForEachPiece(pool.batch, PieceOf(cost),
               [&](int64_t begin, int64_t end, int64_t slot) {
                 Pool2D some = pool;
                 some.batch = end - begin;
                 run(some, begin * in, begin * out, slot);
               });
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
        ForSomeImages(
            pool, [&](const Pool2D& some, int64_t in, int64_t out, int64_t) {
              function(some, Floats(views[0]) + in, Floats(views[1]) + out);
            });
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
      ForSomeImages(pool,
                    [&](const Pool2D& some, int64_t in, int64_t out, int64_t) {
                      Simd().pool.average_gradient(some, Floats(views[0]) + out,
                                                   Floats(views[1]) + in);
                    });
    }));
    return outputs.Finish();
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, ToFloats(launcher, output));
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand workspace,
      launcher.Allocate(tfplug::DataType::kFloat, {NumThreads(), pool.depth}));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {x, y, dy, dx, workspace}));
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([pool, views] {
    ForSomeImages(
        pool, [&](const Pool2D& some, int64_t in, int64_t out, int64_t slot) {
          Simd().pool.max_gradient(
              some, Floats(views[0]) + in, Floats(views[1]) + out,
              Floats(views[2]) + out, Floats(views[3]) + in,
              Floats(views[4]) + slot * pool.depth);
        });
  }));
  return outputs.Finish();
}

}  // namespace cpu_sim
