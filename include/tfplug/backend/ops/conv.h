// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_CONV_H_
#define TFPLUG_BACKEND_OPS_CONV_H_

#include <string>
#include <utility>

#include "tfplug/backend/ops/window.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Convolutions of two and three dimensions, also dilated and in groups, and
// their gradients: matrix products of windows and filters. A filter is
// [window..., channels of a group, outputs].
namespace tfplug {
namespace internal {

// The shared part of the kernels: attributes, geometry and matrix products.
class ConvKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    return attrs_.Init(construction, op.substr(0, 6) == "Conv3D" ? 3 : 2);
  }

 protected:
  struct Geometry {
    WindowDims dims;
    int64_t groups;
    int64_t outputs;
  };

  absl::StatusOr<Geometry> GetGeometry(const Operand& image,
                                       const Operand& filter) const {
    const int rank = attrs_.spatial() + 2;
    if (image.rank != rank || filter.rank != rank) {
      return absl::InvalidArgumentError(
          "input and filter must be " + std::to_string(rank) +
          "-dimensional: " + ShapeOf(image).ToString() + ", " +
          ShapeOf(filter).ToString());
    }
    const int64_t depth = filter.dim(rank - 2), channels = image.dim(rank - 1);
    if (depth == 0 || channels % depth != 0 || channels == 0 ||
        filter.dim(rank - 1) % (channels / depth) != 0) {
      return absl::InvalidArgumentError(
          "input depth must be evenly divisible by filter depth, and the "
          "number "
          "of outputs by their quotient: " +
          std::to_string(channels) + " vs " + std::to_string(depth));
    }
    TFPLUG_ASSIGN_OR_RETURN(WindowDims dims, attrs_.Dims(image, [&](int i) {
      return filter.dim(i);
    }));
    return Geometry{std::move(dims), channels / depth, filter.dim(rank - 1)};
  }

  absl::Status CheckGradient(const Operand& dy, const Operand& image,
                             const Geometry& geometry) const {
    const Shape want =
        ImageShape(image.dim(0), geometry.dims, geometry.outputs, false);
    if (ShapeOf(dy) == want) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the gradient must have the shape of the convolution's output, " +
        want.ToString() + " in the order NHWC, not " + ShapeOf(dy).ToString());
  }

  // Returns the sizes of the first `kept` dimensions of windows as one number.
  static int64_t CountOf(const Operand& view, int begin, int end) {
    int64_t count = 1;
    for (int d = begin; d < end; ++d) count *= view.dim(d);
    return count;
  }

  // Copies windows [batch, output..., window..., channels] to dense matrices
  // [groups, batch * output, window * channels of a group].
  absl::StatusOr<Operand> CopyWindows(OpRun& run, const Operand& windows,
                                      int64_t groups) const {
    const int first = 1 + attrs_.spatial(), last = windows.rank - 1;
    const int64_t depth = windows.dim(last) / groups;
    Operand grouped = WithDim(windows, 0, groups, depth * windows.stride(last));
    grouped.dim(last + 1) = depth;
    const int64_t rows = CountOf(windows, 0, first);
    const int64_t columns = CountOf(windows, first, last) * depth;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand matrices,
        run.launcher().Allocate(windows.type, {groups, rows, columns}));
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, grouped,
             Operand::Dense(matrices.data, matrices.type, DimsOf(grouped))));
    return matrices;
  }

  // Returns an image as [groups, batch * spatial, channels of a group], which
  // needs the channels to be last in memory; otherwise [groups, batch, spatial,
  // channels of a group].
  Operand AsMatrices(const Operand& image, int64_t groups) const {
    const int last = image.rank - 1;
    const int64_t depth = image.dim(last) / groups;
    const int64_t pixels = CountOf(image, 1, last);
    Operand result = image;
    result.rank = 0;
    result.AddDim(groups, depth * image.stride(last));
    if (attrs_.channels_first()) {
      result.AddDim(image.dim(0), image.stride(0))
          .AddDim(pixels, image.stride(last - 1));
    } else {
      result.AddDim(image.dim(0) * pixels, image.stride(last - 1));
    }
    return result.AddDim(depth, image.stride(last));
  }

  // Splits the rows of matrices [groups, rows, columns] to match AsMatrices.
  Operand SplitRows(const Operand& matrices, const Operand& like) const {
    if (like.rank == matrices.rank) return matrices;
    Operand result = WithDim(matrices, 1, like.dim(1));
    result.dim(2) = like.dim(2);
    result.stride(1) = like.dim(2) * matrices.stride(1);
    return result;
  }

  // Multiplies windows with `filter`, dense [window, channels of a group,
  // groups * n], into an image.
  absl::Status Multiply(OpRun& run, const Operand& windows,
                        const Operand& filter, int64_t groups,
                        const Operand& image) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand a, CopyWindows(run, windows, groups));
    const Operand c = AsMatrices(image, groups);
    const int64_t n = c.dim(c.rank - 1);
    Operand b = filter;
    b.rank = 0;
    b.AddDim(groups, n);
    if (c.rank == 4) b.AddDim(c.dim(1), 0);
    b.AddDim(a.dim(2), groups * n).AddDim(n, 1);
    return run.launcher().MatMul(SplitRows(a, c), b, c);
  }

  WindowAttrs attrs_;
};

class Conv final : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, GetView(run, 1));
    const Operand x = ChannelsLast(input, attrs_.channels_first());
    TFPLUG_ASSIGN_OR_RETURN(const Geometry geometry, GetGeometry(x, filter));
    const bool channels_first = attrs_.channels_first();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand output,
        run.AllocateOutput(0, ImageShape(x.dim(0), geometry.dims,
                                         geometry.outputs, channels_first)));
    if (output.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                            Padded(run, x, geometry.dims, 0));
    return Multiply(run, Windows(padded, geometry.dims), filter,
                    geometry.groups, ChannelsLast(output, channels_first));
  }
};

class ConvBackpropInput final : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 2));
    const bool channels_first = attrs_.channels_first();
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, run.AllocateOutput(0, shape));
    const Operand dx = ChannelsLast(output, channels_first);
    const Operand dy = ChannelsLast(gradient, channels_first);
    TFPLUG_ASSIGN_OR_RETURN(const Geometry geometry, GetGeometry(dx, filter));
    TFPLUG_RETURN_IF_ERROR(CheckGradient(dy, dx, geometry));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand windows,
                            SpreadWindows(run, dy, geometry.dims));
    // [window, outputs of a group, groups * channels of a group]
    const int spatial = attrs_.spatial();
    const int64_t groups = geometry.groups, depth = filter.dim(spatial),
                  outputs = geometry.outputs / groups;
    const Operand backward = Reversed(filter, 0, spatial);
    Operand turned = backward;
    turned.rank = spatial;
    turned.AddDim(outputs, backward.stride(spatial + 1))
        .AddDim(groups, outputs * backward.stride(spatial + 1))
        .AddDim(depth, backward.stride(spatial));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand dense,
        run.launcher().Allocate(filter.type, DimsOf(turned)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, turned, dense));
    return Multiply(run, windows, dense, groups, dx);
  }
};

class ConvBackpropFilter final : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 2));
    const bool channels_first = attrs_.channels_first();
    const Operand x = ChannelsLast(input, channels_first);
    const Operand dy = ChannelsLast(gradient, channels_first);
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Geometry geometry, GetGeometry(x, filter));
    TFPLUG_RETURN_IF_ERROR(CheckGradient(dy, x, geometry));
    if (filter.num_elements() == 0) return absl::OkStatus();
    if (dy.num_elements() == 0) return Fill(run, filter, 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                            Padded(run, x, geometry.dims, 0));
    const int64_t groups = geometry.groups;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand a,
        CopyWindows(run, Windows(padded, geometry.dims), groups));
    // The gradient's pixels as rows.
    TFPLUG_ASSIGN_OR_RETURN(const Operand dense,
                            run.launcher().Allocate(dy.type, DimsOf(dy)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, dy, dense));
    const int64_t outputs = geometry.outputs / groups;
    Operand b = dense, c = filter;
    b.rank = c.rank = 0;
    b.AddDim(groups, outputs)
        .AddDim(a.dim(1), geometry.outputs)
        .AddDim(outputs, 1);
    c.AddDim(groups, outputs)
        .AddDim(a.dim(2), geometry.outputs)
        .AddDim(outputs, 1);
    return run.launcher().MatMul(Transposed(a), b, c);
  }
};

// DepthwiseConv2dNative and its gradients: sums of products over the windows.
// The filter is [window..., channels, outputs of a channel].
class DepthwiseKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("T"));
    computes_input_ = op == "DepthwiseConv2dNativeBackpropInput";
    computes_filter_ = op == "DepthwiseConv2dNativeBackpropFilter";
    TFPLUG_RETURN_IF_ERROR(attrs_.Init(construction, 2));
    TFPLUG_ASSIGN_OR_RETURN(
        sum_, MakeReduction(
                  ReduceKind::kSum, {type, type}, ComputeType(type),
                  [](Value x, Value y) { return x * y; }, type));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    const bool channels_first = attrs_.channels_first();
    Operand x, filter, dy, output;
    if (computes_input_) {
      TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
      TFPLUG_ASSIGN_OR_RETURN(output, run.AllocateOutput(0, shape));
      x = output;
    } else {
      TFPLUG_ASSIGN_OR_RETURN(x, GetView(run, 0));
    }
    if (computes_filter_) {
      TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 1));
      TFPLUG_ASSIGN_OR_RETURN(output, run.AllocateOutput(0, shape));
      filter = output;
    } else {
      TFPLUG_ASSIGN_OR_RETURN(filter, GetView(run, 1));
    }
    if (x.rank != 4 || filter.rank != 4) {
      return absl::InvalidArgumentError(
          "input and filter must be 4-dimensional: " + ShapeOf(x).ToString() +
          ", " + ShapeOf(filter).ToString());
    }
    x = ChannelsLast(x, channels_first);
    if (x.dim(3) != filter.dim(2)) {
      return absl::InvalidArgumentError(
          "input and filter must have the same depth: " +
          std::to_string(x.dim(3)) + " vs " + std::to_string(filter.dim(2)));
    }
    TFPLUG_ASSIGN_OR_RETURN(const WindowDims dims, attrs_.Dims(x, [&](int i) {
      return filter.dim(i);
    }));
    const Shape shape = ImageShape(
        x.dim(0), dims, filter.dim(2) * filter.dim(3), channels_first);
    if (computes_input_ || computes_filter_) {
      TFPLUG_ASSIGN_OR_RETURN(dy, GetView(run, 2));
      if (ShapeOf(dy) != shape) {
        return absl::InvalidArgumentError("out_backprop must have the shape " +
                                          shape.ToString() + ", not " +
                                          ShapeOf(dy).ToString());
      }
    } else {
      TFPLUG_ASSIGN_OR_RETURN(dy, run.AllocateOutput(0, shape));
    }
    dy = ChannelsLast(dy, channels_first);
    if (computes_input_) return RunInput(run, x, filter, dy, dims);
    TFPLUG_ASSIGN_OR_RETURN(const Operand padded, Padded(run, x, dims, 0));
    // [n, y, x, i, j, channel]
    const Operand windows = Windows(padded, dims);
    const int64_t outputs = filter.dim(3);
    const Operand split = SplitChannels(dy, outputs);
    // [n, y, x, channel, output, i, j] of all three
    const Operand elements =
        WithDim(Permuted(windows, {0, 1, 2, 5, 3, 4}), 4, outputs);
    Operand weights = Permuted(filter, {2, 3, 0, 1});
    for (int d : {2, 1, 0}) weights = WithDim(weights, 0, split.dim(d));
    if (!computes_filter_) {
      return run.launcher().Reduce(sum_, {elements, weights}, {split});
    }
    const Operand gradient =
        WithDim(WithDim(split, 5, dims[0].size), 6, dims[1].size);
    return run.launcher().Reduce(sum_,
                                 {Permuted(elements, {5, 6, 3, 4, 0, 1, 2}),
                                  Permuted(gradient, {5, 6, 3, 4, 0, 1, 2})},
                                 {filter});
  }

 private:
  // [n, y, x, channel, output] from an image with all outputs.
  static Operand SplitChannels(const Operand& image, int64_t outputs) {
    Operand result = image;
    result.dim(3) = image.dim(3) / outputs;
    result.stride(3) = image.stride(3) * outputs;
    return result.AddDim(outputs, image.stride(3));
  }

  absl::Status RunInput(OpRun& run, const Operand& dx, const Operand& filter,
                        const Operand& dy, const WindowDims& dims) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand windows,
                            SpreadWindows(run, dy, dims));
    const int64_t outputs = filter.dim(3);
    // [n, y, x, i, j, channel, output] to [n, y, x, channel, i, j, output]
    Operand elements = windows;
    elements.dim(5) = windows.dim(5) / outputs;
    elements.stride(5) = windows.stride(5) * outputs;
    elements.AddDim(outputs, windows.stride(5));
    elements = Permuted(elements, {0, 1, 2, 5, 3, 4, 6});
    Operand weights = Permuted(Reversed(filter, 0, 2), {2, 0, 1, 3});
    for (int d : {2, 1, 0}) weights = WithDim(weights, 0, dx.dim(d));
    return run.launcher().Reduce(sum_, {elements, weights}, {dx});
  }

  bool computes_input_ = false, computes_filter_ = false;
  WindowAttrs attrs_;
  Reduction sum_;
};

}  // namespace internal

inline void ConvOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  registrar.Add<Conv>(KernelDef("Conv2D"), "T", kFloatTypes);
  registrar.Add<Conv>(KernelDef("Conv3D"), "T", kFloatTypes);
  registrar.Add<ConvBackpropInput>(
      KernelDef("Conv2DBackpropInput").HostMemory("input_sizes"), "T",
      kFloatTypes);
  registrar.Add<ConvBackpropInput>(
      KernelDef("Conv3DBackpropInputV2").HostMemory("input_sizes"), "T",
      kFloatTypes);
  registrar.Add<ConvBackpropFilter>(
      KernelDef("Conv2DBackpropFilter").HostMemory("filter_sizes"), "T",
      kFloatTypes);
  registrar.Add<ConvBackpropFilter>(
      KernelDef("Conv3DBackpropFilterV2").HostMemory("filter_sizes"), "T",
      kFloatTypes);
  registrar.Add<DepthwiseKernel>(KernelDef("DepthwiseConv2dNative"), "T",
                                 kFloatTypes);
  registrar.Add<DepthwiseKernel>(
      KernelDef("DepthwiseConv2dNativeBackpropInput").HostMemory("input_sizes"),
      "T", kFloatTypes);
  registrar.Add<DepthwiseKernel>(
      KernelDef("DepthwiseConv2dNativeBackpropFilter")
          .HostMemory("filter_sizes"),
      "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_CONV_H_
