// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/epilogue.h"
#include "backend/floats.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

// Convolutions of two dimensions, in float; tfplug composes the others.
namespace cpu_sim {
namespace {

using tfplug::Convolution;
using tfplug::Launcher;
using tfplug::Operand;
using Base = tfplug::Backend<Stream>;

constexpr int64_t kTileFloats = 1 << 17;
constexpr int64_t kMinTile = 256;

bool IsFast(const Convolution& conv, const Operand& operand) {
  return conv.windows.size() == 2 && IsComputedInFloat(operand.type);
}
bool IsDepthwise(const Convolution& conv, const Operand& filter) {
  return conv.groups > 1 && filter.dim(2) == 1;
}

Window WindowOf(const tfplug::Window& window) {
  return {window.input,  window.output,   window.size,
          window.stride, window.dilation, window.before};
}

// Returns whether each output element has one input element of each channel.
bool IsPointwise(const Window& window) {
  return window.size == 1 && window.stride == 1 && window.out == window.in;
}

// Returns the number of input elements per output pixel of one group.
int64_t PatchSize(const Conv2D& conv) {
  return conv.rows.size * conv.cols.size * (conv.in_depth / conv.groups);
}
int64_t FilterSize(const Conv2D& conv) {
  return PatchSize(conv) * conv.out_depth;
}

Conv2D Describe(const Convolution& conv, const Operand& image,
                const Operand& output) {
  Conv2D result{image.dim(0),
                WindowOf(conv.windows[0]),
                WindowOf(conv.windows[1]),
                image.dim(3),
                output.dim(3),
                conv.groups,
                0};
  if (IsPointwise(result.rows) && IsPointwise(result.cols)) {
    result.batch *= result.rows.out * result.cols.out;  // pixels are images
    result.rows = result.cols = {1, 1, 1, 1, 1, 0};
  }
  return result;
}

// The functions of SimdCode that compute a convolution.
enum class Way { kPatches, kDirect, kDepthwise };

// Returns the way for an operand whose result has `depth` channels: without
// patches while the filter fits into a cache. The patches of single pixels are
// the image itself.
Way WayOf(const Conv2D& conv, int64_t depth, bool is_depthwise) {
  constexpr int64_t kMaxFilter = 1 << 16, kMinDepth = 4;
  if (is_depthwise) return Way::kDepthwise;
  const bool is_pointwise = IsPointwise(conv.rows) && IsPointwise(conv.cols);
  const bool is_direct = conv.groups == 1 && !is_pointwise &&
                         conv.rows.dilation == 1 && conv.cols.dilation == 1 &&
                         FilterSize(conv) <= kMaxFilter && depth >= kMinDepth;
  return is_direct ? Way::kDirect : Way::kPatches;
}

const Conv2DCode& CodeOf(Way way) {
  return way == Way::kDirect ? Simd().direct : Simd().conv2d;
}

// Returns the floats of the workspace of SimdCode::direct, for either direction.
int64_t DirectWorkspace(const Conv2D& conv) {
  const auto extent = [](const Window& window) {
    return std::max((window.out - 1) * window.stride + window.size,
                    window.in + window.size - 1);
  };
  return FilterSize(conv) + extent(conv.rows) * extent(conv.cols) *
                                std::max(conv.in_depth, conv.out_depth);
}

// A convolution, divided into pieces with some of the images each.
class Pieces {
 public:
  Pieces(const Conv2D& conv, Way way) : conv_(conv), way_(way) {
    const int64_t pixels = conv.rows.out * conv.cols.out;
    cost_ = std::max<int64_t>(
        1, pixels * FilterSize(conv) / kLanes + pixels * PatchSize(conv));
    images_ = PieceOf(cost_);
  }
  // Limits the number of pieces to what the sums of their filters are worth.
  void SumFilters() {
    constexpr int64_t kMost = 8, kShare = 4;
    images_ = std::max({images_, (conv_.batch + kMost - 1) / kMost,
                        kShare * FilterSize(conv_) / cost_});
  }

  int64_t count() const { return (conv_.batch + images_ - 1) / images_; }
  // Returns the floats of the workspaces of all threads.
  int64_t workspace() const {
    return std::min(NumThreads(), std::max<int64_t>(count(), 1)) * of_thread();
  }

  // Calls run(conv, offset in the image, offset in the output, piece,
  // workspace).
  template <class Run>
  void ForEach(float* workspace, Run run) const {
    ForEachPiece(
        conv_.batch, images_, [&](int64_t begin, int64_t end, int64_t slot) {
          Conv2D some = conv_;
          some.batch = end - begin;
          some.tile = tile();
          run(some, begin * conv_.rows.in * conv_.cols.in * conv_.in_depth,
              begin * conv_.rows.out * conv_.cols.out * conv_.out_depth,
              begin / images_, workspace + slot * of_thread());
        });
  }

 private:
  // Returns the output pixels of a tile: as many patches as fit into a cache,
  // and enough to amortize loading the filter.
  int64_t tile() const {
    const int64_t pixels =
        std::min(images_, conv_.batch) * conv_.rows.out * conv_.cols.out;
    return std::min(pixels, std::max(kMinTile, kTileFloats / PatchSize(conv_)));
  }
  int64_t of_thread() const {
    switch (way_) {
      case Way::kPatches:
        return tile() * PatchSize(conv_);
      case Way::kDirect:
        return DirectWorkspace(conv_);
      case Way::kDepthwise:
        break;
    }
    return 0;
  }

  Conv2D conv_;
  Way way_;
  int64_t cost_, images_;  // of an image; in a piece
};

// Enqueues run(x, y, z, workspace), in which the workspace has `floats`.
template <class Run>
absl::Status Enqueue(Stream& stream, Launcher& launcher, int64_t floats,
                     const Operand& x, const Operand& y, const Operand& z,
                     Run run) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand workspace,
      launcher.Allocate(tfplug::DataType::kFloat, {floats}));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {x, y, z, workspace}));
  return stream.LaunchTask([=] {
    run(Floats(views[0]), Floats(views[1]), Floats(views[2]), Floats(views[3]));
  });
}

absl::Status Forward(Stream& stream, Launcher& launcher,
                     const Convolution& conv, const Operand& image,
                     const Operand& filter, const tfplug::Epilogue& epilogue,
                     const Operand& output) {
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand f, ToFloats(launcher, filter));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(output));
  TFPLUG_ASSIGN_OR_RETURN(const Epilogue on_device,
                          EpilogueForDevice(stream, launcher, epilogue));
  const Conv2D described = Describe(conv, image, output);
  const Way way =
      WayOf(described, described.out_depth, IsDepthwise(conv, filter));
  const Pieces pieces(described, way);
  TFPLUG_RETURN_IF_ERROR(Enqueue(
      stream, launcher, pieces.workspace(), x, f, y,
      [=](const float* from, const float* weights, float* to,
          float* workspace) {
        pieces.ForEach(workspace, [&](const Conv2D& some, int64_t in,
                                      int64_t out, int64_t, float* tile) {
          if (way == Way::kDepthwise) {
            Simd().depthwise.forward(some, on_device, from + in, weights,
                                     to + out);
          } else {
            CodeOf(way).forward(some, on_device, from + in, weights, to + out,
                                tile);
          }
        });
      }));
  return outputs.Finish();
}

}  // namespace

absl::Status Backend::Conv(Stream& stream, Launcher& launcher,
                           const Convolution& conv, const Operand& image,
                           const Operand& filter, const Operand& output) {
  if (!IsFast(conv, image)) {
    return Base::Conv(stream, launcher, conv, image, filter, output);
  }
  return Forward(stream, launcher, conv, image, filter, {}, output);
}

absl::Status Backend::ConvMap(Stream& stream, Launcher& launcher,
                              const Convolution& conv, const Operand& image,
                              const Operand& filter,
                              const tfplug::Expression& expression,
                              tfplug::Operands inputs,
                              tfplug::Operands outputs) {
  const auto epilogue = FindFastEpilogue(expression, inputs);
  if (!IsFast(conv, image) || !epilogue.has_value()) {
    return Base::ConvMap(stream, launcher, conv, image, filter, expression,
                         inputs, outputs);
  }
  return Forward(stream, launcher, conv, image, filter, *epilogue, outputs[0]);
}

absl::Status Backend::ConvInputGradient(Stream& stream, Launcher& launcher,
                                        const Convolution& conv,
                                        const Operand& filter,
                                        const Operand& output_gradient,
                                        const Operand& image_gradient) {
  if (!IsFast(conv, filter)) {
    return Base::ConvInputGradient(stream, launcher, conv, filter,
                                   output_gradient, image_gradient);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand f, ToFloats(launcher, filter));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                          ToFloats(launcher, output_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dx, outputs.Add(image_gradient));
  const Conv2D described = Describe(conv, image_gradient, output_gradient);
  Way way = WayOf(described, described.in_depth, IsDepthwise(conv, filter));
  if (way == Way::kDirect &&
      (described.rows.stride != 1 || described.cols.stride != 1)) {
    way = Way::kPatches;
  }
  const Pieces pieces(described, way);
  TFPLUG_RETURN_IF_ERROR(Enqueue(
      stream, launcher, pieces.workspace(), f, dy, dx,
      [=](const float* weights, const float* from, float* to,
          float* workspace) {
        pieces.ForEach(workspace, [&](const Conv2D& some, int64_t in,
                                      int64_t out, int64_t, float* tile) {
          if (way == Way::kDepthwise) {
            Simd().depthwise.input_gradient(some, weights, from + out, to + in);
          } else {
            CodeOf(way).input_gradient(some, weights, from + out, to + in,
                                       tile);
          }
        });
      }));
  return outputs.Finish();
}

absl::Status Backend::ConvFilterGradient(Stream& stream, Launcher& launcher,
                                         const Convolution& conv,
                                         const Operand& image,
                                         const Operand& output_gradient,
                                         const Operand& filter_gradient) {
  if (!IsFast(conv, image)) {
    return Base::ConvFilterGradient(stream, launcher, conv, image,
                                    output_gradient, filter_gradient);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                          ToFloats(launcher, output_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand df, outputs.Add(filter_gradient));
  const Conv2D described = Describe(conv, image, output_gradient);
  const Way way =
      WayOf(described, described.out_depth, IsDepthwise(conv, filter_gradient));
  Pieces pieces(described, way);
  pieces.SumFilters();
  // Each piece but the first has a sum of its own, behind the workspaces.
  const int64_t tiles = pieces.workspace();
  const int64_t size = FilterSize(described), count = pieces.count();
  TFPLUG_RETURN_IF_ERROR(Enqueue(
      stream, launcher, tiles + std::max<int64_t>(count - 1, 0) * size, x, dy,
      df,
      [=](const float* from, const float* gradient, float* to,
          float* workspace) {
        if (count == 0) std::fill_n(to, size, 0.0f);
        float* const sums = workspace + tiles;
        pieces.ForEach(workspace, [&](const Conv2D& some, int64_t in,
                                      int64_t out, int64_t piece, float* tile) {
          float* const sum = piece == 0 ? to : sums + (piece - 1) * size;
          if (way == Way::kDepthwise) {
            Simd().depthwise.filter_gradient(some, from + in, gradient + out,
                                             sum);
          } else {
            CodeOf(way).filter_gradient(some, from + in, gradient + out, sum,
                                        tile);
          }
        });
        if (count < 2) return;
        ForEachPiece(size, PieceOf(count),
                     [&](int64_t begin, int64_t end, int64_t) {
                       for (int64_t piece = 1; piece < count; ++piece) {
                         const float* const sum = sums + (piece - 1) * size;
                         for (int64_t i = begin; i < end; ++i) to[i] += sum[i];
                       }
                     });
      }));
  return outputs.Finish();
}

}  // namespace cpu_sim
