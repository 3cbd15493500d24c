// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESIZE_H_
#define TFPLUG_OP_KERNELS_RESIZE_H_

#include <array>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/resize_rule.h"

#pragma GCC visibility push(hidden)

// ResizeBilinear, ResizeNearestNeighbor and their gradients, for images [batch,
// height, width, channels].
namespace tfplug {
namespace op_kernels_internal {

// Returns the [height, width] of input `i`, in host memory.
inline absl::StatusOr<std::array<int64_t, 2>> GetImageSize(OpRun& run, int i) {
  TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(i));
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
    return absl::InvalidArgumentError(
        "size must have two elements, both positive");
  }
  return std::array<int64_t, 2>{size[0], size[1]};
}
// Returns an error unless the image has pixels and, if `has_channels`,
// channels: in TensorFlow, only some ops take an image without channels.
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
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    if (!rule_.is_bilinear()) return BuildNearest(type);
    TFPLUG_ASSIGN_OR_RETURN(columns_, MakeInterpolation(type));
    TFPLUG_ASSIGN_OR_RETURN(rows_, MakeInterpolation(DataType::kFloat));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const auto size, GetImageSize(run, 1));
    TFPLUG_RETURN_IF_ERROR(CheckImage(x));
    const Shape shape = {x.dim(0), size[0], size[1], x.dim(3)};
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    return rule_.is_bilinear() ? Interpolate(run, x, y) : Copy(run, x, y);
  }

 private:
  using Inputs = absl::InlinedVector<Operand, 4>;

  // Interpolates in each row first, as TensorFlow does, and then between rows.
  absl::Status Interpolate(OpRun& run, const Operand& x, const Operand& y) {
    Shape shape = ShapeOf(x);
    shape.set_dim(2, y.dim(2));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand between,
        run.launcher().Allocate(DataType::kFloat, shape.dims()));
    TFPLUG_RETURN_IF_ERROR(InterpolateDim(run, columns_, 2, x, between));
    return InterpolateDim(run, rows_, 1, between, y);
  }
  absl::Status InterpolateDim(OpRun& run, const Expression& expression, int d,
                              const Operand& x, Operand y) const {
    Inputs inputs;
    TFPLUG_RETURN_IF_ERROR(AddSources(run, y, d, x.dim(d), 1, inputs));
    inputs.push_back(ir::WithDim(ir::WithAxis(x, d), d, y.dim(d)));
    return run.launcher().Map(expression, absl::MakeSpan(inputs),
                              absl::MakeSpan(&y, 1));
  }

  absl::Status Copy(OpRun& run, const Operand& x, const Operand& y) {
    Inputs inputs;
    TFPLUG_RETURN_IF_ERROR(AddSources(run, y, 1, x.dim(1), x.dim(2), inputs));
    TFPLUG_RETURN_IF_ERROR(AddSources(run, y, 2, x.dim(2), 1, inputs));
    // The pixels of an image are one axis.
    Operand pixels = ir::WithDim(
        ir::WithDim(ir::WithAxis(ir::WithAxis(x, 2), 1), 1, y.dim(1)), 2,
        y.dim(2));
    pixels.axis_size = x.dim(1) * x.dim(2);
    pixels.axis_stride = x.stride(2);
    inputs.push_back(ir::AsBits(pixels));
    Operand out = ir::AsBits(y);
    return run.launcher().Map(nearest_, absl::MakeSpan(inputs),
                              absl::MakeSpan(&out, 1));
  }

  static absl::StatusOr<Expression> MakeInterpolation(DataType type) {
    ExpressionBuilder builder;
    const Value lower = builder.Input(DataType::kInt64);
    const Value upper = builder.Input(DataType::kInt64);
    const Value fraction = builder.Input(DataType::kFloat);
    const int x = builder.AxisInput(type);
    const Value a = Cast(builder.Element(x, lower), DataType::kFloat);
    const Value b = Cast(builder.Element(x, upper), DataType::kFloat);
    builder.Output(a + (b - a) * fraction, DataType::kFloat);
    return std::move(builder).Build();
  }
  absl::Status BuildNearest(DataType type) {
    type = ir::BitsOf(type);
    ExpressionBuilder builder;
    const Value row = builder.Input(DataType::kInt64);
    const Value column = builder.Input(DataType::kInt64);
    builder.Output(builder.Element(builder.AxisInput(type), row + column),
                   type);
    TFPLUG_ASSIGN_OR_RETURN(nearest_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Computes the sources of dimension `d` of `like`, once for all rows or
  // columns, and adds them to the inputs.
  absl::Status AddSources(OpRun& run, const Operand& like, int d, int64_t from,
                          int64_t stride, Inputs& inputs) const {
    const int64_t size = like.dim(d);
    const auto number = [&](DataType type, double value) {
      return ir::ScalarOf(type, value, Operand::Index().AddDim(size, 1));
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
      inputs.push_back(ir::AlongDim(results[i], like, d));
    }
    return absl::OkStatus();
  }

  ResizeRule rule_;
  Expression sources_, columns_, rows_, nearest_;
};

// The gradients, one dimension after the other: the gradient of an element is
// the sum of the gradients of the elements that were computed from it.
class ResizeGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(rule_.Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const DataType from = rule_.is_bilinear() ? DataType::kFloat : type;
    between_ = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(uses_, MakeUses());
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
  // Returns the expression of the k-th element of the resized dimension that
  // may use element i: its index, -1 if it does not, and the weight.
  absl::StatusOr<Expression> MakeUses() const {
    constexpr DataType kInt64 = DataType::kInt64, kFloat = DataType::kFloat;
    ExpressionBuilder builder;
    const Value i = builder.Input(kInt64), k = builder.Input(kInt64);
    const Value scale = builder.Input(kFloat), size = builder.Input(kInt64);
    const Value shift = builder.Input(kFloat), ratio = builder.Input(kFloat);
    const Value half = builder.Input(kFloat);
    const Value first = Floor((Cast(i, kFloat) + shift) * ratio - half);
    const Value at = Cast(first, kInt64) + k;
    const ResizeRule::Source source = rule_.SourceOf(at, scale, size);
    const Value is_lower = source.lower == i, is_upper = source.upper == i;
    builder.Output(Select(is_lower | is_upper, at, -1), kInt64);
    if (rule_.is_bilinear()) {
      builder.Output(Select(is_lower, 1 - source.fraction, 0) +
                         Select(is_upper, source.fraction, 0),
                     kFloat);
    }
    return std::move(builder).Build();
  }

  // Returns the sum of the elements that uses_ finds, with their weights.
  absl::StatusOr<Reduction> MakeSum(DataType from, DataType to) const {
    ExpressionBuilder builder;
    const Value at = builder.Input(DataType::kInt64);
    if (rule_.is_bilinear()) {
      const Value weight = builder.Input(DataType::kFloat);
      const Value dy = builder.Element(builder.AxisInput(from), at);
      builder.Output(Cast(dy, between_) * Cast(weight, between_), between_);
    } else {
      builder.Output(builder.Element(builder.AxisInput(from), at), between_);
    }
    Reduction sum;
    TFPLUG_ASSIGN_OR_RETURN(sum.map, std::move(builder).Build());
    TFPLUG_ASSIGN_OR_RETURN(sum.finish, CastExpression(between_, to));
    return sum;
  }

  // Computes the gradient of dimension `d`.
  absl::Status Sum(OpRun& run, const Reduction& sum, int d, const Operand& dy,
                   Operand dx) const {
    const int64_t in = dx.dim(d), out = dy.dim(d);
    const ResizeRule::Uses uses = rule_.UsesOf(in, out);
    constexpr DataType kInt64 = DataType::kInt64, kFloat = DataType::kFloat;
    absl::InlinedVector<Operand, 2> tables;  // [in, uses]
    for (const DataType type : {kInt64, kFloat}) {
      if (type == kFloat && !rule_.is_bilinear()) continue;
      TFPLUG_ASSIGN_OR_RETURN(tables.emplace_back(),
                              run.launcher().Allocate(type, {in, uses.count}));
    }
    absl::InlinedVector<Operand, 3> inputs;
    for (const Operand& table : tables) {
      // [batch, height, width, channels, uses]
      inputs.push_back(
          ir::AlongDim(table, dx, d, uses.count).AddDim(uses.count, 1));
    }
    const auto number = [&](DataType type, double value) {
      return ir::ScalarOf(type, value, tables[0]);
    };
    Operand sources[] = {ir::IndexOf(tables[0], 0),
                         ir::IndexOf(tables[0], 1),
                         number(kFloat, double{rule_.Scale(in, out)}),
                         number(kInt64, static_cast<double>(in)),
                         number(kFloat, uses.shift),
                         number(kFloat, uses.ratio),
                         number(kFloat, uses.half)};
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(uses_, absl::MakeSpan(sources),
                                              absl::MakeSpan(tables)));
    inputs.push_back(
        ir::WithDim(ir::WithDim(ir::WithAxis(dy, d), d, in), 4, uses.count));
    return run.launcher().Reduce(sum, absl::MakeSpan(inputs),
                                 absl::MakeSpan(&dx, 1));
  }

  ResizeRule rule_;
  DataType between_ = DataType::kFloat;
  Expression uses_;
  Reduction rows_, columns_;
};

}  // namespace op_kernels_internal

inline void ResizeOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
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

#endif  // TFPLUG_OP_KERNELS_RESIZE_H_
