// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CONV_H_
#define TFPLUG_OP_KERNELS_CONV_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"

#pragma GCC visibility push(hidden)

// Convolutions of two and three dimensions, also dilated, in groups and
// depthwise, and their gradients.
namespace tfplug {
namespace op_kernels_internal {

class ConvKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_depthwise_ = op.find("Depthwise") != op.npos;
    may_be_empty_ = op.rfind("Depthwise", 0) == 0;
    if (op != "Conv") {
      return attrs_.Init(construction, op.rfind("Conv3D", 0) == 0 ? 3 : 2);
    }
    // The op of any number of dimensions.
    TFPLUG_ASSIGN_OR_RETURN(
        const auto strides,
        construction.GetAttr<std::vector<int32_t>>("strides"));
    TFPLUG_ASSIGN_OR_RETURN(batch_dims_,
                            construction.GetAttr<int32_t>("batch_dims"));
    TFPLUG_ASSIGN_OR_RETURN(groups_, construction.GetAttr<int32_t>("groups"));
    if (strides.size() != 4 && strides.size() != 5) {
      return absl::UnimplementedError(
          "Conv needs two or three spatial dimensions on this device");
    }
    if (batch_dims_ < 0) {
      return absl::InvalidArgumentError("batch_dims must be >= 0, not " +
                                        std::to_string(batch_dims_));
    }
    return attrs_.Init(construction, static_cast<int>(strides.size()) - 2,
                       /*has_default_dilations=*/true);
  }

 protected:
  // Returns a dense image with the dimensions of its batch, if any, as one.
  absl::StatusOr<Operand> MergeBatch(const Operand& view) const {
    if (batch_dims_ == 1) return view;
    if (view.rank - attrs_.spatial() - 1 != batch_dims_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input must have ", batch_dims_, " dimensions of the batch, ",
          attrs_.spatial(), " spatial ones and the channels, not the shape ",
          ShapeOf(view).ToString()));
    }
    Ints dims = {ir::CountOf(view, 0, batch_dims_)};
    for (int d = batch_dims_; d < view.rank; ++d) dims.push_back(view.dim(d));
    return Operand::Dense(view.data, view.type, dims);
  }
  // Returns an image with its channels last.
  Operand Image(const Operand& view) const {
    return ChannelsLast(view, attrs_.channels_first());
  }
  // Returns a filter as [window..., channels of a group, outputs]. That of a
  // depthwise op is [window..., channels, outputs of a channel].
  Operand Filter(const Operand& view) const {
    if (!is_depthwise_ || view.rank != 4) return view;
    Operand filter = view;
    filter.dim(2) = 1;
    filter.dim(3) = view.dim(2) * view.dim(3);
    return filter;
  }

  // Returns the convolution of an image, whose channels are last, with a filter
  // of this shape.
  absl::StatusOr<Convolution> Describe(const Operand& image,
                                       const Operand& filter) const {
    const int rank = attrs_.spatial() + 2;
    if (image.rank != rank || filter.rank != rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input and filter must be ", rank, "-dimensional: ",
          ShapeOf(image).ToString(), ", ", ShapeOf(filter).ToString()));
    }
    Convolution conv;
    const int64_t depth = filter.dim(rank - 2), channels = image.dim(rank - 1);
    if (is_depthwise_) {
      if (channels != depth) {
        return absl::InvalidArgumentError(
            "input and filter must have the same depth: " +
            std::to_string(channels) + " vs " + std::to_string(depth));
      }
      conv.groups = channels;
    } else {
      if (depth == 0 || channels == 0 || channels % depth != 0 ||
          filter.dim(rank - 1) % (channels / depth) != 0) {
        return absl::InvalidArgumentError(
            "input depth must be evenly divisible by filter depth, and the "
            "number of outputs by their quotient: " +
            std::to_string(channels) + " vs " + std::to_string(depth));
      }
      conv.groups = channels / depth;
      if (groups_ > 0 && conv.groups != groups_) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input depth must be the product of groups and filter depth: ",
            channels, " vs ", groups_, " and ", depth));
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(
        conv.windows,
        attrs_.Over(
            image, [&](int i) { return filter.dim(i); }, may_be_empty_));
    return conv;
  }

  // Returns the sizes in input `i`. Conv2DBackpropInput also takes only those of
  // the spatial dimensions.
  absl::StatusOr<Shape> Sizes(OpRun& run, int i, const Operand& filter,
                              const Operand& dy) const {
    TFPLUG_ASSIGN_OR_RETURN(
        const Shape shape,
        GetShape(run, i,
                 i == 0 ? "input_sizes shape must be rank 1, got shape "
                        : "filter_sizes shape must be rank 1, got shape "));
    const int rank = attrs_.spatial() + 2;
    if (shape.rank() == rank) return shape;
    if (i != 0 || rank != 4 || is_depthwise_ || shape.rank() != 2 ||
        filter.rank != 4 || dy.rank != 4) {
      return absl::InvalidArgumentError(absl::StrCat(
          i == 0 ? "input_sizes" : "filter_sizes",
          " input must be 1-dim, and its number of elements must be ", rank,
          ", not ", shape.rank()));
    }
    Windows sizes(2);
    for (int d = 0; d < 2; ++d) sizes[d].output = shape.dim(d);
    return ImageShape(dy.dim(0), sizes, filter.dim(2), attrs_.channels_first());
  }

  // Returns the shape of an output with the dimensions of the input's batch.
  Shape SplitBatch(const Shape& output, const Operand& input) const {
    if (batch_dims_ == 1) return output;
    const auto batch =
        ir::DimsOf(input).first(static_cast<size_t>(batch_dims_));
    std::vector<int64_t> dims(batch.begin(), batch.end());
    dims.insert(dims.end(), output.dims().begin() + 1, output.dims().end());
    return Shape(dims);
  }

  Shape OutputShape(const Convolution& conv, const Operand& image,
                    const Operand& filter) const {
    return ImageShape(image.dim(0), conv.windows,
                      Filter(filter).dim(filter.rank - 1),
                      attrs_.channels_first());
  }
  absl::Status CheckGradient(const Operand& gradient, const Shape& want) const {
    if (ShapeOf(gradient) == want) return absl::OkStatus();
    return absl::InvalidArgumentError("out_backprop must have shape " +
                                      want.ToString() + ", not " +
                                      ShapeOf(gradient).ToString());
  }

 private:
  bool is_depthwise_ = false;
  // A depthwise filter may have no elements, as in TensorFlow; the result is 0.
  bool may_be_empty_ = false;
  int64_t groups_ = 0;  // 0: as many as the depths have
  int32_t batch_dims_ = 1;
  WindowAttrs attrs_;
};

class Conv : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand merged, MergeBatch(input));
    const Operand image = Image(merged);
    TFPLUG_ASSIGN_OR_RETURN(const Convolution conv, Describe(image, filter));
    const Shape shape = OutputShape(conv, image, filter);
    TFPLUG_ASSIGN_OR_RETURN(const Operand whole,
                            run.AllocateOutput(0, SplitBatch(shape, input)));
    if (whole.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, MergeBatch(whole));
    return Convolve(run, conv, image, Filter(filter), Image(output));
  }

 protected:
  virtual absl::Status Convolve(OpRun& run, const Convolution& conv,
                                const Operand& image, const Operand& filter,
                                const Operand& output) {
    if (filter.num_elements() == 0) return Fill(run, output, 0);
    return run.launcher().Conv(conv, image, filter, output);
  }
};

class ConvBackpropInput final : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, Sizes(run, 0, filter, dy));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, run.AllocateOutput(0, shape));
    const Operand dx = Image(output);
    TFPLUG_ASSIGN_OR_RETURN(const Convolution conv, Describe(dx, filter));
    TFPLUG_RETURN_IF_ERROR(CheckGradient(dy, OutputShape(conv, dx, filter)));
    if (dx.num_elements() == 0) return absl::OkStatus();
    if (dy.num_elements() == 0 || filter.num_elements() == 0) {
      return Fill(run, dx, 0);
    }
    return run.launcher().ConvInputGradient(conv, Filter(filter), Image(dy),
                                            dx);
  }
};

class ConvBackpropFilter final : public ConvKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, Sizes(run, 1, dy, dy));
    const Operand image = Image(input);
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Convolution conv, Describe(image, filter));
    TFPLUG_RETURN_IF_ERROR(CheckGradient(dy, OutputShape(conv, image, filter)));
    if (filter.num_elements() == 0) return absl::OkStatus();
    if (dy.num_elements() == 0) return Fill(run, filter, 0);
    return run.launcher().ConvFilterGradient(conv, image, Image(dy),
                                             Filter(filter));
  }
};

}  // namespace op_kernels_internal

inline void ConvOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"Conv", "Conv2D", "Conv3D", "DepthwiseConv2dNative"}) {
    registrar.Add<Conv>(KernelDef(op), "T", kFloatTypes);
  }
  for (const char* op : {"Conv2DBackpropInput", "Conv3DBackpropInputV2",
                         "DepthwiseConv2dNativeBackpropInput"}) {
    registrar.Add<ConvBackpropInput>(KernelDef(op).HostMemory("input_sizes"),
                                     "T", kFloatTypes);
  }
  for (const char* op : {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
                         "DepthwiseConv2dNativeBackpropFilter"}) {
    registrar.Add<ConvBackpropFilter>(KernelDef(op).HostMemory("filter_sizes"),
                                      "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CONV_H_
