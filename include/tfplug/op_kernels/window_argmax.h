// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_WINDOW_ARGMAX_H_
#define TFPLUG_OP_KERNELS_WINDOW_ARGMAX_H_

#include <limits>
#include <string>

#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Ops for which the position of each window's largest element matters: max
// pooling with indices, and morphological dilation, which adds windows to a
// filter. Of equal elements, the first one counts.
namespace tfplug {
namespace op_kernels_internal {

// Counts the elements of windows: `first` for the first element of the
// first window, plus steps for each dimension of the output [batch, height,
// width, channels], and for each row and column of the window.
struct Positions {
  int64_t first;
  int64_t steps[4];
  int64_t row_step, column_step;

  // Counts the elements of an image, with the batch or within one image.
  static Positions InImage(const Operand& image, const Windows& windows,
                           bool counts_batch) {
    const int64_t column = image.dim(3), row = image.dim(2) * column;
    const Window &rows = windows[0], &columns = windows[1];
    return {-rows.before * row - columns.before * column,
            {counts_batch ? image.dim(1) * row : 0, rows.stride * row,
             columns.stride * column, 1},
            rows.dilation * row,
            columns.dilation * column};
  }
  static Positions InFilter(const Operand& filter) {
    return {0, {0, 0, 0, 1}, filter.stride(0), filter.stride(1)};
  }
};

// Finds the largest elements of windows, and where they are.
class WindowMaximum {
 public:
  // `index` is the type of indices.
  absl::Status Init(DataType type, DataType index) {
    const DataType computed = ComputeType(type);
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        maximum_, primitives::MakeReduction(
                      ReduceKind::kMax, {type, type}, computed,
                      [](Value x, Value f) { return x + f; }, computed));
    first_.kind = ReduceKind::kMin;
    TFPLUG_ASSIGN_OR_RETURN(
        first_.map,
        MakeExpression({type, type, computed, kInt64}, {kInt64},
                       [](Value x, Value f, Value maximum, Value i) {
                         return Select(x + f == maximum, i, kNone);
                       }));
    TFPLUG_ASSIGN_OR_RETURN(
        first_.finish,
        MakeExpression({kInt64, kInt64, kInt64, kInt64, kInt64}, {index},
                       [&](Value i, Value start, Value columns, Value row_step,
                           Value column_step) {
                         const Value at = start + i / columns * row_step +
                                          i % columns * column_step;
                         return Select(i == kNone, -1, at);
                       }));
    TFPLUG_ASSIGN_OR_RETURN(store_, CastExpression(computed, type));
    return absl::OkStatus();
  }

  // Computes the maximum of image + filter for each window, or only of the
  // image without a filter; `maximum` may have no memory. An index is -1 if no
  // element equals the maximum.
  absl::Status Run(OpRun& run, const Operand& image, const Operand* filter,
                   const Windows& windows, const Positions& positions,
                   const Operand& maximum, const Operand& indices) const {
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand padded,
        primitives::Padded(run.launcher(), image, windows,
                           -std::numeric_limits<double>::infinity()));
    const Operand x =
        primitives::WithWindowLast(primitives::WindowsOf(padded, windows), 2);
    Operand f = ir::ScalarOf(image.type, 0, x);
    Operand order = Operand::Index(), start = Operand::Index(positions.first);
    if (filter != nullptr) f = ir::WithoutDims(*filter);
    for (int d = 0; d < 6; ++d) {
      const int64_t strides[] = {0, 0, 0, 1};
      if (filter != nullptr) {
        f.AddDim(x.dim(d), d < 4 ? strides[d] : filter->stride(d - 4));
      }
      order.AddDim(x.dim(d), d == 4 ? x.dim(5) : d == 5 ? 1 : 0);
      start.AddDim(x.dim(d), d < 4 ? positions.steps[d] : 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand largest,
        run.launcher().Allocate(ComputeType(image.type), ir::DimsOf(indices)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(maximum_, {x, f}, {largest}));
    if (maximum.data != nullptr) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(store_, {largest}, {maximum}));
    }
    const auto scalar = [&](int64_t value) {
      return ir::ScalarOf(DataType::kInt64, static_cast<double>(value), x);
    };
    return run.launcher().Reduce(
        first_,
        {x, f, ir::WithDim(ir::WithDim(largest, 4, x.dim(5)), 4, x.dim(4)),
         order, start, scalar(x.dim(5)), scalar(positions.row_step),
         scalar(positions.column_step)},
        {indices});
  }

 private:
  static constexpr int64_t kNone = int64_t{1} << 62;

  Reduction maximum_, first_;
  Expression store_;
};

// Sets each element of `y` to the sum of the updates with its index.
inline absl::Status SumElements(OpRun& run, const Operand& indices,
                                const Operand& updates, const Operand& y) {
  const Operand addends = ir::Flat(updates), result = ir::Flat(y);
  TFPLUG_ASSIGN_OR_RETURN(const Operand terms, AllocateSums(run, addends));
  TFPLUG_ASSIGN_OR_RETURN(const Operand sums, AllocateSums(run, result));
  TFPLUG_RETURN_IF_ERROR(Convert(run, addends, terms));
  TFPLUG_RETURN_IF_ERROR(Fill(run, sums, 0));
  TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(
      ScatterKind::kAdd, ir::Flat(indices), terms, sums));
  return Convert(run, sums, result);
}

// Dilation2D and its gradients.
class DilationKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    gradient_ = op == "Dilation2DBackpropInput"    ? Gradient::kInput
                : op == "Dilation2DBackpropFilter" ? Gradient::kFilter
                                                   : Gradient::kNone;
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_RETURN_IF_ERROR(attrs_.Init(construction, 2));
    return maximum_.Init(type, DataType::kInt64);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand filter, GetView(run, 1));
    if (x.rank != 4 || filter.rank != 3 || x.dim(3) != filter.dim(2)) {
      return absl::InvalidArgumentError(
          "input must be 4-dimensional, and filter 3-dimensional with the same "
          "depth, not " +
          ShapeOf(x).ToString() + " and " + ShapeOf(filter).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        Windows windows, attrs_.Over(x, [&](int i) { return filter.dim(i); }));
    const Shape shape =
        ImageShape(x.dim(0), windows, x.dim(3), /*channels_first=*/false);
    const bool is_filter = gradient_ == Gradient::kFilter;
    const Positions positions =
        is_filter ? Positions::InFilter(filter)
                  : Positions::InImage(x, windows, /*counts_batch=*/true);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand indices,
        run.launcher().Allocate(DataType::kInt64, shape.dims()));
    if (gradient_ == Gradient::kNone) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
      if (y.num_elements() == 0) return absl::OkStatus();
      return maximum_.Run(run, x, &filter, windows, positions, y, indices);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 2));
    if (ShapeOf(dy) != shape) {
      return absl::InvalidArgumentError("out_backprop must have shape " +
                                        shape.ToString() + ", not " +
                                        ShapeOf(dy).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand result,
        run.AllocateOutput(0, ShapeOf(is_filter ? filter : x)));
    if (dy.num_elements() == 0 || result.num_elements() == 0) {
      return Fill(run, result, 0);
    }
    TFPLUG_RETURN_IF_ERROR(maximum_.Run(run, x, &filter, windows, positions,
                                        /*maximum=*/{}, indices));
    return SumElements(run, indices, dy, result);
  }

 private:
  enum class Gradient { kNone, kInput, kFilter };

  Gradient gradient_ = Gradient::kNone;
  WindowAttrs attrs_;
  WindowMaximum maximum_;
};

// MaxPoolWithArgmax.
class MaxPoolWithArgmaxKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const auto index,
                            construction.GetAttr<DataType>("Targmax"));
    TFPLUG_ASSIGN_OR_RETURN(
        counts_batch_, construction.GetAttr<bool>("include_batch_in_index"));
    TFPLUG_RETURN_IF_ERROR(attrs_.Init(construction, 2));
    return maximum_.Init(type, index);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank != 4 || x.num_elements() == 0) {
      return absl::InvalidArgumentError(
          "tensor_in must be 4-dimensional and not empty: " +
          ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Windows windows, attrs_.Over(x));
    const Shape shape =
        ImageShape(x.dim(0), windows, x.dim(3), /*channels_first=*/false);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            run.AllocateOutput(1, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    return maximum_.Run(run, x, /*filter=*/nullptr, windows,
                        Positions::InImage(x, windows, counts_batch_), y,
                        indices);
  }

 private:
  bool counts_batch_ = false;
  WindowAttrs attrs_;
  WindowMaximum maximum_;
};

// MaxPoolGradWithArgmax, and the gradient with respect to its `grad`, which
// reads at the indices that the former writes to.
class MaxPoolGradWithArgmaxKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_second_ = op == "MaxPoolGradGradWithArgmax";
    TFPLUG_ASSIGN_OR_RETURN(const auto index,
                            construction.GetAttr<DataType>("Targmax"));
    TFPLUG_ASSIGN_OR_RETURN(
        const bool counts_batch,
        construction.GetAttr<bool>("include_batch_in_index"));
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        place_, MakeExpression({index, kInt64, kInt64}, {kInt64},
                               [&](Value at, Value image, Value size) {
                                 const Value i = Cast(at, kInt64);
                                 return counts_batch ? i : i + image * size;
                               }));
    return attrs_.Init(construction, 2);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand grad, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand argmax, GetView(run, 2));
    if (x.rank != 4) {
      return absl::InvalidArgumentError("tensor_in must be 4-dimensional: " +
                                        ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Windows windows, attrs_.Over(x));
    const Shape image = ShapeOf(x);
    const Shape pooled =
        ImageShape(x.dim(0), windows, x.dim(3), /*channels_first=*/false);
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("grad", grad, is_second_ ? image : pooled));
    TFPLUG_RETURN_IF_ERROR(CheckShape("argmax", argmax, pooled));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                            run.AllocateOutput(0, is_second_ ? pooled : image));
    if (x.num_elements() == 0 || argmax.num_elements() == 0) {
      return Fill(run, result, 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand indices,
        run.launcher().Allocate(DataType::kInt64, ir::DimsOf(argmax)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        place_,
        {argmax, ir::IndexOf(argmax, 0),
         ir::ScalarOf(DataType::kInt64,
                      static_cast<double>(ir::CountOf(x, 1, 4)), argmax)},
        {indices}));
    if (!is_second_) return SumElements(run, indices, grad, result);
    const Operand at = ir::Flat(indices);
    return GatherElements(
        run, at, ir::WithDim(ir::WithAxis(ir::Flat(grad), 0), 0, at.dim(0)),
        ir::Flat(result));
  }

 private:
  bool is_second_ = false;
  WindowAttrs attrs_;
  Expression place_;
};

}  // namespace op_kernels_internal

inline void WindowArgmaxOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op :
       {"Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
    registrar.Add<DilationKernel>(KernelDef(op), "T", kFloatTypes);
  }
  const auto indexed = [](const char* op) {
    return KernelDef(op).TypeConstraint<int32_t, int64_t>("Targmax");
  };
  registrar.Add<MaxPoolWithArgmaxKernel>(indexed("MaxPoolWithArgmax"), "T",
                                         kFloatTypes);
  for (const char* op :
       {"MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"}) {
    registrar.Add<MaxPoolGradWithArgmaxKernel>(indexed(op), "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_WINDOW_ARGMAX_H_
