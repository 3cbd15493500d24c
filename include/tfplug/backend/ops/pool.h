// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_POOL_H_
#define TFPLUG_BACKEND_OPS_POOL_H_

#include <limits>
#include <string>

#include "tfplug/backend/ops/window.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Pooling of two and three dimensions and its gradients: reductions of windows.
namespace tfplug {
namespace internal {

class PoolKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_3d_ = op.find("3D") != op.npos;
    TFPLUG_RETURN_IF_ERROR(attrs_.Init(construction, is_3d_ ? 3 : 2));
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
    return absl::OkStatus();
  }

 protected:
  // Returns the geometry for an image with its channels last.
  absl::StatusOr<WindowDims> GetDims(const Operand& x) const {
    if (x.rank != attrs_.spatial() + 2) {
      return absl::InvalidArgumentError(
          "tensor_in must be " + std::to_string(attrs_.spatial() + 2) +
          "-dimensional: " + ShapeOf(x).ToString());
    }
    return attrs_.Dims(x, [&](int i) { return attrs_.window_size(i); });
  }

  // Moves the channels of windows before the window: [batch, output...,
  // channels, window...].
  Operand WindowsLast(const Operand& windows) const {
    Operand result = windows;
    const int spatial = attrs_.spatial();
    result.rank = 1 + spatial;
    const int last = windows.rank - 1;
    result.AddDim(windows.dim(last), windows.stride(last));
    for (int d = 1 + spatial; d < last; ++d) {
      result.AddDim(windows.dim(d), windows.stride(d));
    }
    return result;
  }

  absl::StatusOr<Operand> AllocateImage(OpRun& run, const Operand& x,
                                        const WindowDims& dims) const {
    const bool first = attrs_.channels_first();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand y,
        run.AllocateOutput(
            0, ImageShape(x.dim(0), dims, x.dim(x.rank - 1), first)));
    return ChannelsLast(y, first);
  }

  bool is_3d_ = false;
  DataType type_{};
  WindowAttrs attrs_;
};

class MaxPool final : public PoolKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    const Operand x = ChannelsLast(input, attrs_.channels_first());
    TFPLUG_ASSIGN_OR_RETURN(const WindowDims dims, GetDims(x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, AllocateImage(run, x, dims));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand padded,
        Padded(run, x, dims, -std::numeric_limits<double>::infinity()));
    TFPLUG_ASSIGN_OR_RETURN(const Reduction max,
                            MakeReduction(
                                ReduceKind::kMax, {type_}, ComputeType(type_),
                                [](Value v) { return v; }, type_));
    return run.launcher().Reduce(max, {WindowsLast(Windows(padded, dims))},
                                 {y});
  }
};

// MaxPoolGrad: the gradient goes to the first largest element of each window.
class MaxPoolGrad final : public PoolKernel {
 public:
  absl::Status Run(OpRun& run) override {
    const bool first = attrs_.channels_first();
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 2));
    const Operand x = ChannelsLast(input, first);
    TFPLUG_ASSIGN_OR_RETURN(const WindowDims dims, GetDims(x));
    const Shape want = ImageShape(x.dim(0), dims, x.dim(x.rank - 1), first);
    if (ShapeOf(output) != want || ShapeOf(gradient) != want) {
      return absl::InvalidArgumentError(
          "Expected orig_output and grad shapes to be " + want.ToString() +
          ", but got " + ShapeOf(output).ToString() + " and " +
          ShapeOf(gradient).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                            run.AllocateOutput(0, ShapeOf(input)));
    if (result.num_elements() == 0) return absl::OkStatus();
    const Operand y = ChannelsLast(output, first);
    TFPLUG_ASSIGN_OR_RETURN(const Operand position,
                            FindLargest(run, x, y, dims));
    return Spread(run, position, ChannelsLast(gradient, first), dims,
                  ChannelsLast(result, first));
  }

 private:
  // Returns the position in its window of the first element that equals y.
  absl::StatusOr<Operand> FindLargest(OpRun& run, const Operand& x,
                                      const Operand& y,
                                      const WindowDims& dims) const {
    constexpr DataType kInt32 = DataType::kInt32;
    Reduction find;
    find.kind = ReduceKind::kMin;
    TFPLUG_ASSIGN_OR_RETURN(
        find.map, MakeExpression({type_, type_, kInt32}, {kInt32},
                                 [](Value v, Value largest, Value i) {
                                   return Select(
                                       v == largest, i,
                                       std::numeric_limits<int32_t>::max());
                                 }));
    TFPLUG_ASSIGN_OR_RETURN(find.finish, CastExpression(kInt32, kInt32));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand padded,
        Padded(run, x, dims, -std::numeric_limits<double>::infinity()));
    const Operand windows = WindowsLast(Windows(padded, dims));
    Operand largest = y;
    Operand index = Operand::Index(0, kInt32);
    const int kept = y.rank;
    for (int d = 0; d < kept; ++d) index.AddDim(windows.dim(d), 0);
    int64_t stride = 1;
    for (int d = kept; d < windows.rank; ++d) {
      largest.AddDim(windows.dim(d), 0);
      index.AddDim(windows.dim(d), 0);
    }
    for (int d = windows.rank; d-- > kept;) {
      index.stride(d) = stride;
      stride *= windows.dim(d);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand position,
                            run.launcher().Allocate(kInt32, DimsOf(y)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Reduce(find, {windows, largest, index}, {position}));
    return position;
  }

  // Sums, for each element, the gradients of the windows that chose it.
  absl::Status Spread(OpRun& run, const Operand& position, const Operand& dy,
                      const WindowDims& dims, const Operand& dx) const {
    constexpr DataType kInt32 = DataType::kInt32;
    TFPLUG_ASSIGN_OR_RETURN(
        const Reduction sum,
        MakeReduction(
            ReduceKind::kSum, {type_, kInt32, kInt32}, ComputeType(type_),
            [](Value gradient, Value chosen, Value here) {
              return Select(chosen == here, gradient, 0);
            },
            type_));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradients,
                            SpreadWindows(run, dy, dims));
    TFPLUG_ASSIGN_OR_RETURN(const Operand chosen,
                            SpreadWindows(run, position, dims, -1));
    const Operand windows = WindowsLast(gradients);
    int64_t count = 1;
    for (const WindowDim& dim : dims) count *= dim.size;
    // Windows are reversed, so that positions count down.
    Operand here = Operand::Index(count - 1, kInt32);
    for (int d = 0; d < windows.rank; ++d) here.AddDim(windows.dim(d), 0);
    int64_t stride = 1;
    for (int d = windows.rank; d-- > dx.rank;) {
      here.stride(d) = -stride;
      stride *= windows.dim(d);
    }
    return run.launcher().Reduce(sum, {windows, WindowsLast(chosen), here},
                                 {dx});
  }
};

// AvgPool and its gradient: padding does not count.
class AvgPoolKernel final : public PoolKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(PoolKernel::Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_gradient_ = op == "AvgPoolGrad" || op == "AvgPool3DGrad";
    const DataType computed = ComputeType(type_);
    TFPLUG_ASSIGN_OR_RETURN(sum_, MakeReduction(
                                      ReduceKind::kSum, {type_}, computed,
                                      [](Value v) { return v; }, type_));
    // sum / number of elements of the window that are inside the image. For
    // each dimension: the window's start, and the sizes of window and image.
    ExpressionBuilder builder;
    const Value sum = builder.Input(is_gradient_ ? type_ : computed);
    Value count = builder.Constant(DataType::kInt64, int64_t{1});
    for (int i = 0; i < attrs_.spatial(); ++i) {
      const Value start = builder.Input(DataType::kInt64);
      const Value size = builder.Input(DataType::kInt64);
      const Value limit = builder.Input(DataType::kInt64);
      count = count * (Min(start + size, limit) - Max(start, 0));
    }
    builder.Output(sum / Cast(count, computed), type_);
    TFPLUG_ASSIGN_OR_RETURN(divide_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    return is_gradient_ ? RunGradient(run) : RunForward(run);
  }

 private:
  // Appends the further inputs of divide_, for operands like `view` whose
  // dimensions from 1 on are the output's.
  void AddCounts(const Operand& view, const WindowDims& dims,
                 absl::InlinedVector<Operand, 4>& inputs) const {
    int d = 0;
    for (const WindowDim& dim : dims) {
      Operand start = IndexOf(view, ++d, -dim.before);
      start.stride(d) = dim.stride;
      inputs.push_back(start);
      for (int64_t value : {dim.size, dim.input}) {
        inputs.push_back(
            ScalarOf(DataType::kInt64, static_cast<double>(value), view));
      }
    }
  }

  absl::Status RunForward(OpRun& run) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    const Operand x = ChannelsLast(input, attrs_.channels_first());
    TFPLUG_ASSIGN_OR_RETURN(const WindowDims dims, GetDims(x));
    TFPLUG_ASSIGN_OR_RETURN(Operand y, AllocateImage(run, x, dims));
    TFPLUG_ASSIGN_OR_RETURN(const Operand padded, Padded(run, x, dims, 0));
    absl::InlinedVector<Operand, 4> inputs = {
        WindowsLast(Windows(padded, dims))};
    const Operand windows = inputs[0];
    AddCounts(windows, dims, inputs);
    Reduction mean = sum_;
    mean.finish = divide_;
    return run.launcher().Reduce(mean, absl::MakeSpan(inputs),
                                 absl::MakeSpan(&y, 1));
  }

  absl::Status RunGradient(OpRun& run) {
    const bool first = attrs_.channels_first();
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result, run.AllocateOutput(0, shape));
    const Operand dx = ChannelsLast(result, first);
    const Operand dy = ChannelsLast(gradient, first);
    TFPLUG_ASSIGN_OR_RETURN(const WindowDims dims, GetDims(dx));
    const Shape want = ImageShape(dx.dim(0), dims, dx.dim(dx.rank - 1), false);
    if (ShapeOf(dy) != want) {
      return absl::InvalidArgumentError(
          "Expected grad shape to be " + want.ToString() +
          " in the order NHWC, but got " + ShapeOf(dy).ToString());
    }
    if (dx.num_elements() == 0) return absl::OkStatus();
    absl::InlinedVector<Operand, 4> inputs = {dy};
    AddCounts(dy, dims, inputs);
    TFPLUG_ASSIGN_OR_RETURN(Operand shares,
                            run.launcher().Allocate(type_, DimsOf(dy)));
    Operand out = shares;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(divide_, absl::MakeSpan(inputs),
                                              absl::MakeSpan(&out, 1)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand windows,
                            SpreadWindows(run, shares, dims));
    return run.launcher().Reduce(sum_, {WindowsLast(windows)}, {dx});
  }

  bool is_gradient_ = false;
  Reduction sum_;
  Expression divide_;
};

}  // namespace internal

inline void PoolOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  for (const char* op : {"MaxPool", "MaxPool3D"}) {
    registrar.Add<MaxPool>(KernelDef(op), "T", kFloatTypes);
  }
  registrar.Add<MaxPoolGrad>(KernelDef("MaxPoolGrad"), "T", kFloatTypes);
  registrar.Add<MaxPoolGrad>(KernelDef("MaxPool3DGrad"), "T", kFloatTypes);
  for (const char* op : {"AvgPool", "AvgPool3D"}) {
    registrar.Add<AvgPoolKernel>(KernelDef(op), "T", kFloatTypes);
  }
  for (const char* op : {"AvgPoolGrad", "AvgPool3DGrad"}) {
    registrar.Add<AvgPoolKernel>(KernelDef(op).HostMemory("orig_input_shape"),
                                 "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_POOL_H_
