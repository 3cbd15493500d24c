// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_RESIZE_H_
#define TFPLUG_BACKEND_OPS_RESIZE_H_

#include <array>
#include <string>

#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/ops/resize_rule.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// ResizeBilinear, ResizeNearestNeighbor and their gradients, for images [batch,
// height, width, channels].
namespace tfplug {
namespace internal {

// Returns the [height, width] of input `i`, in host memory.
inline absl::StatusOr<std::array<int64_t, 2>> GetImageSize(OpRun& run, int i) {
  TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(i));
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
    return absl::InvalidArgumentError(
        "size must have two elements, both positive");
  }
  return std::array<int64_t, 2>{size[0], size[1]};
}
// As on TensorFlow's CPU, only some ops take an image without channels.
inline absl::Status CheckImage(const Operand& image, bool has_channels = true) {
  if (image.rank == 4 && image.dim(1) > 0 && image.dim(2) > 0 &&
      (image.dim(3) > 0 || !has_channels)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "images must be 4-dimensional, with pixels and channels, not " +
      ShapeOf(image).ToString());
}

class ResizeKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(rule_.Init(construction));
    constexpr DataType kInt64 = DataType::kInt64, kFloat = DataType::kFloat;
    TFPLUG_ASSIGN_OR_RETURN(
        sources_,
        MakeExpression({kInt64, kFloat, kInt64, kInt64},
                       {kInt64, kInt64, kFloat},
                       [&](Value to, Value scale, Value size, Value stride) {
                         const auto s = rule_.SourceOf(to, scale, size);
                         return std::array<Value, 3>{
                             s.lower * stride, s.upper * stride, s.fraction};
                       }));
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            construction.GetAttr<DataType>("T"));
    return rule_.is_bilinear() ? BuildBilinear(type) : BuildNearest(type);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const auto size, GetImageSize(run, 1));
    TFPLUG_RETURN_IF_ERROR(CheckImage(x));
    const Shape shape = {x.dim(0), size[0], size[1], x.dim(3)};
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    absl::InlinedVector<Operand, 7> inputs;
    for (int d = 1; d <= 2; ++d) {
      TFPLUG_RETURN_IF_ERROR(
          AddSources(run, y, d, x.dim(d), d == 1 ? x.dim(2) : 1, inputs));
    }
    // The pixels of an image are one axis.
    Operand pixels =
        WithDim(WithDim(WithAxis(WithAxis(x, 2), 1), 1, size[0]), 2, size[1]);
    pixels.axis_size = x.dim(1) * x.dim(2);
    pixels.axis_stride = x.stride(2);
    Operand out = y;
    if (!rule_.is_bilinear()) {
      pixels = AsBits(pixels);
      out = AsBits(out);
    }
    inputs.push_back(pixels);
    return run.launcher().Map(resize_, absl::MakeSpan(inputs),
                              absl::MakeSpan(&out, 1));
  }

 private:
  absl::Status BuildBilinear(DataType type) {
    ExpressionBuilder builder;
    const Value top = builder.Input(DataType::kInt64);
    const Value bottom = builder.Input(DataType::kInt64);
    const Value y = builder.Input(DataType::kFloat);
    const Value left = builder.Input(DataType::kInt64);
    const Value right = builder.Input(DataType::kInt64);
    const Value x = builder.Input(DataType::kFloat);
    const int pixels = builder.AxisInput(type);
    const auto row = [&](Value at) {
      const Value a =
          Cast(builder.Element(pixels, at + left), DataType::kFloat);
      const Value b =
          Cast(builder.Element(pixels, at + right), DataType::kFloat);
      return a + (b - a) * x;
    };
    const Value a = row(top);
    builder.Output(a + (row(bottom) - a) * y, DataType::kFloat);
    TFPLUG_ASSIGN_OR_RETURN(resize_, std::move(builder).Build());
    return absl::OkStatus();
  }
  absl::Status BuildNearest(DataType type) {
    Operand element;
    element.type = type;
    type = AsBits(element).type;
    ExpressionBuilder builder;
    const Value row = builder.Input(DataType::kInt64);
    const Value column = builder.Input(DataType::kInt64);
    builder.Output(builder.Element(builder.AxisInput(type), row + column),
                   type);
    TFPLUG_ASSIGN_OR_RETURN(resize_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Computes the sources of dimension `d` of `like`, once for all rows or
  // columns, and adds them to the inputs of resize_.
  absl::Status AddSources(OpRun& run, const Operand& like, int d, int64_t from,
                          int64_t stride,
                          absl::InlinedVector<Operand, 7>& inputs) const {
    const int64_t size = like.dim(d);
    const auto number = [&](DataType type, double value) {
      return ScalarOf(type, value, Operand::Index().AddDim(size, 1));
    };
    constexpr DataType kInt64 = DataType::kInt64;
    Operand results[3];
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          results[i],
          run.launcher().Allocate(i < 2 ? kInt64 : DataType::kFloat, {size}));
    }
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        sources_,
        {Operand::Index().AddDim(size, 1),
         number(DataType::kFloat, double{rule_.Scale(from, size)}),
         number(kInt64, static_cast<double>(from)),
         number(kInt64, static_cast<double>(stride))},
        {results[0], results[1], results[2]}));
    for (int i = 0; i < (rule_.is_bilinear() ? 3 : 1); ++i) {
      Operand view = results[i];
      view.rank = 0;
      for (int k = 0; k < like.rank; ++k) {
        view.AddDim(like.dim(k), k == d ? 1 : 0);
      }
      inputs.push_back(view);
    }
    return absl::OkStatus();
  }

  ResizeRule rule_;
  Expression sources_, resize_;
};

// The gradients, one dimension after the other: the gradient of an element is
// the sum of the gradients of the elements that were computed from it.
class ResizeGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(rule_.Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            construction.GetAttr<DataType>("T"));
    const DataType from = rule_.is_bilinear() ? DataType::kFloat : type;
    between_ = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(rows_, MakeSum(from, between_));
    TFPLUG_ASSIGN_OR_RETURN(columns_, MakeSum(between_, type));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 0));
    TFPLUG_RETURN_IF_ERROR(CheckImage(dy, rule_.is_bilinear()));
    std::array<int64_t, 2> size;
    if (rule_.is_bilinear()) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand image, GetView(run, 1));
      TFPLUG_RETURN_IF_ERROR(CheckImage(image));
      size = {image.dim(1), image.dim(2)};
    } else {
      TFPLUG_ASSIGN_OR_RETURN(size, GetImageSize(run, 1));
    }
    const Shape shape = {dy.dim(0), size[0], size[1], dy.dim(3)};
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx, run.AllocateOutput(0, shape));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand between,
        run.launcher().Allocate(between_,
                                {dy.dim(0), size[0], dy.dim(2), dy.dim(3)}));
    TFPLUG_RETURN_IF_ERROR(Sum(run, rows_, 1, dy, between));
    return Sum(run, columns_, 2, between, dx);
  }

 private:
  absl::StatusOr<Reduction> MakeSum(DataType from, DataType to) const {
    constexpr DataType kInt64 = DataType::kInt64, kFloat = DataType::kFloat;
    const DataType type = between_;
    ExpressionBuilder builder;
    const Value i = builder.Input(kInt64), k = builder.Input(kInt64);
    const Value scale = builder.Input(kFloat), size = builder.Input(kInt64);
    const Value shift = builder.Input(kFloat), ratio = builder.Input(kFloat);
    const Value half = builder.Input(kFloat);
    const Value first = Floor((Cast(i, kFloat) + shift) * ratio - half);
    const Value at = Cast(first, kInt64) + k;
    const Value dy = builder.Element(builder.AxisInput(from), at);
    const ResizeRule::Source source = rule_.SourceOf(at, scale, size);
    if (rule_.is_bilinear()) {
      const auto weighted = [&](Value weight) {
        return Cast(dy, type) * Cast(weight, type);
      };
      const Value lower =
          Select(source.lower == i, weighted(1 - source.fraction), 0);
      const Value upper =
          Select(source.upper == i, weighted(source.fraction), 0);
      builder.Output(lower + upper, type);
    } else {
      builder.Output(Select(source.lower == i, dy, 0), type);
    }
    Reduction sum;
    TFPLUG_ASSIGN_OR_RETURN(sum.map, std::move(builder).Build());
    TFPLUG_ASSIGN_OR_RETURN(sum.finish, CastExpression(type, to));
    return sum;
  }

  // Computes the gradient of dimension `d`.
  absl::Status Sum(OpRun& run, const Reduction& sum, int d, const Operand& dy,
                   const Operand& dx) const {
    const int64_t in = dx.dim(d), out = dy.dim(d);
    const ResizeRule::Uses uses = rule_.UsesOf(in, out);
    // [batch, height, width, channels, uses]
    Operand like = dx;
    like.AddDim(uses.count, 0);
    const auto number = [&](DataType type, double value) {
      return ScalarOf(type, value, like);
    };
    const Operand elements =
        WithDim(WithDim(WithAxis(dy, d), d, in), 4, uses.count);
    constexpr DataType kInt64 = DataType::kInt64, kFloat = DataType::kFloat;
    return run.launcher().Reduce(
        sum,
        {IndexOf(like, d), IndexOf(like, 4),
         number(kFloat, double{rule_.Scale(in, out)}),
         number(kInt64, static_cast<double>(in)), number(kFloat, uses.shift),
         number(kFloat, uses.ratio), number(kFloat, uses.half), elements},
        {dx});
  }

  ResizeRule rule_;
  DataType between_ = DataType::kFloat;
  Reduction rows_, columns_;
};

}  // namespace internal

inline void ResizeOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
    registrar.Add<ResizeKernel>(KernelDef(op).HostMemory("size"), "T",
                                kNumberTypes);
  }
  registrar.Add<ResizeGradKernel>(KernelDef("ResizeBilinearGrad"), "T",
                                  kFloatTypes);
  registrar.Add<ResizeGradKernel>(
      KernelDef("ResizeNearestNeighborGrad").HostMemory("size"), "T",
      kFloatTypes | kIndexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_RESIZE_H_
