// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COUNTING_H_
#define TFPLUG_OP_KERNELS_COUNTING_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that count elements: histograms, buckets, positions in sorted rows.
namespace tfplug {
namespace op_kernels_internal {

// Bincount and DenseBincount: how often each number in [0, size) occurs, or the
// sum of its weights. A number that is negative or too large is not counted.
class BincountKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_dense_ = op == "DenseBincount";
    DataType index = DataType::kInt32;
    if (is_dense_) {
      TFPLUG_ASSIGN_OR_RETURN(index, construction.GetAttr<DataType>("Tidx"));
      TFPLUG_ASSIGN_OR_RETURN(is_binary_,
                              construction.GetAttr<bool>("binary_output"));
    }
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        place_, MakeExpression({index, kInt64, kInt64}, {kInt64},
                               [](Value x, Value row, Value size) {
                                 const Value at = Cast(x, DataType::kInt64);
                                 const Value counts = (at >= 0) & (at < size);
                                 return Select(counts, row * size + at, -1);
                               }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor size_tensor, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand weights, GetView(run, 2));
    if (is_dense_ && x.rank > 2) {
      return absl::InvalidArgumentError(
          "Shape must be at most rank 2 but is rank " + std::to_string(x.rank));
    }
    if (size_tensor.rank() != 0) {
      return absl::InvalidArgumentError("Shape must be rank 0 but is rank " +
                                        std::to_string(size_tensor.rank()));
    }
    TFPLUG_ASSIGN_OR_RETURN(const int64_t size, run.GetScalar(1));
    if (size < 0) {
      return absl::InvalidArgumentError("size (" + std::to_string(size) +
                                        ") must be non-negative");
    }
    const bool is_weighted = weights.num_elements() > 0;
    // TensorFlow's CPU compares only the sizes for Bincount.
    if (is_weighted &&
        (is_dense_ ? ShapeOf(weights) != ShapeOf(x)
                   : weights.num_elements() != x.num_elements())) {
      return absl::InvalidArgumentError(
          "`weights` must be the same shape as `arr` or a length-0 `Tensor`, "
          "in which case it acts as all weights equal to 1. Received " +
          ShapeOf(weights).ToString() + " for " + ShapeOf(x).ToString());
    }
    Shape shape = {size};
    if (is_dense_ && x.rank == 2) shape = {x.dim(0), size};
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(Fill(run, y, 0));
    const int64_t n = x.num_elements();
    if (n == 0 || y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand place,
        run.launcher().Allocate(DataType::kInt64, ir::DimsOf(x)));
    Operand row = ir::ScalarOf(DataType::kInt64, 0, x);
    if (shape.rank() == 2) row = ir::IndexOf(x, 0);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        place_,
        {x, row, ir::ScalarOf(DataType::kInt64, static_cast<double>(size), x)},
        {place}));
    const Operand places = ir::Flat(place);
    TFPLUG_ASSIGN_OR_RETURN(Operand amounts,
                            run.launcher().Allocate(y.type, {n}));
    if (is_weighted && !is_binary_) {
      amounts = ir::Flat(weights);
    } else {
      TFPLUG_RETURN_IF_ERROR(Fill(run, amounts, 1));
    }
    return run.launcher().Scatter(
        is_binary_ ? ScatterKind::kMax : ScatterKind::kAdd, places, amounts,
        ir::Flat(y));
  }

 private:
  bool is_dense_ = false, is_binary_ = false;
  Expression place_;
};

// HistogramFixedWidth: how many values are in each of `nbins` equal parts of a
// range. Values outside are counted in the first or the last one.
class HistogramKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    constexpr DataType kDouble = DataType::kDouble;
    TFPLUG_ASSIGN_OR_RETURN(
        place_,
        MakeExpression({type, kDouble, kDouble, kDouble}, {DataType::kInt64},
                       [](Value x, Value low, Value step, Value last) {
                         const Value above =
                             Max(Cast(x, DataType::kDouble), low) - low;
                         return Cast(Min(above / step, last), DataType::kInt64);
                       }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor range, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t bins,
        run.GetScalar(2, "nbins should be a scalar, but got shape "));
    if (range.shape() != Shape{2}) {
      return absl::InvalidArgumentError(
          "value_range should be a vector of 2 elements, not of shape " +
          range.shape().ToString());
    }
    if (bins <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nbins should be a positive number, but got '", bins, "'"));
    }
    double bounds[2] = {};
    ir::VisitStored(range.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int i = 0; i < 2; ++i) {
        bounds[i] = static_cast<double>(static_cast<const T*>(range.data())[i]);
      }
    });
    if (bounds[0] >= bounds[1]) {
      return absl::InvalidArgumentError(
          "value_range should satisfy value_range[0] < value_range[1], but got "
          "[" +
          std::to_string(bounds[0]) + ", " + std::to_string(bounds[1]) + "]");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {bins}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, y, 0));
    const int64_t n = x.num_elements();
    if (n == 0) return absl::OkStatus();
    const Operand values = ir::Flat(x);
    const auto scalar = [&](double value) {
      return ir::ScalarOf(DataType::kDouble, value, values);
    };
    TFPLUG_ASSIGN_OR_RETURN(const Operand places,
                            run.launcher().Allocate(DataType::kInt64, {n}));
    const auto count = static_cast<double>(bins);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        place_,
        {values, scalar(bounds[0]), scalar((bounds[1] - bounds[0]) / count),
         scalar(count - 1)},
        {places}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ones,
                            run.launcher().Allocate(y.type, {n}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, ones, 1));
    return run.launcher().Scatter(ScatterKind::kAdd, places, ones, y);
  }

 private:
  Expression place_;
};

// Bucketize: the number of boundaries that are not above an element. A pass
// compares with as many boundaries as fit in an expression of moderate size.
class BucketizeKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(
        const auto boundaries,
        construction.GetAttr<std::vector<float>>("boundaries"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
      return absl::InvalidArgumentError("Expected sorted boundaries");
    }
    constexpr size_t kPerPass = 32;
    const DataType compared =
        type == DataType::kDouble ? type : DataType::kFloat;
    for (size_t begin = 0; begin == 0 || begin < boundaries.size();
         begin += kPerPass) {
      ExpressionBuilder builder;
      const Value x = Cast(builder.Input(type), compared);
      Value count = begin == 0 ? builder.Constant(DataType::kInt32, int64_t{0})
                               : builder.Input(DataType::kInt32);
      const size_t end = std::min(begin + kPerPass, boundaries.size());
      for (size_t i = begin; i < end; ++i) {
        // NaN is in the last bucket.
        count = count +
                Cast(!(x < static_cast<double>(boundaries[i])), count.type());
      }
      builder.Output(count, DataType::kInt32);
      TFPLUG_ASSIGN_OR_RETURN(Expression pass, std::move(builder).Build());
      passes_.push_back(std::move(pass));
    }
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(passes_[0], {x}, {y}));
    for (size_t i = 1; i < passes_.size(); ++i) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(passes_[i], {x, y}, {y}));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Expression> passes_;
};

// LowerBound and UpperBound: where each value belongs in a sorted row, which is
// the number of smaller elements, or of elements that are not larger.
class BoundKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType index,
                            construction.GetAttr<DataType>("out_type"));
    const bool is_lower = op == "LowerBound";
    TFPLUG_ASSIGN_OR_RETURN(
        count_, primitives::MakeReduction(
                    ReduceKind::kSum, {type, type}, DataType::kInt64,
                    [&](Value sorted, Value value) {
                      return Cast(is_lower ? sorted < value : sorted <= value,
                                  DataType::kInt64);
                    },
                    index));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand sorted, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, GetView(run, 1));
    if (sorted.rank != 2 || values.rank != 2 ||
        sorted.dim(0) != values.dim(0)) {
      return absl::InvalidArgumentError(
          "sorted_inputs and values must be matrices with as many rows, not " +
          ShapeOf(sorted).ToString() + " and " + ShapeOf(values).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(values)));
    return run.launcher().Reduce(count_,
                                 {ir::WithDim(sorted, 1, values.dim(1)),
                                  ir::WithDim(values, 2, sorted.dim(1))},
                                 {y});
  }

 private:
  Reduction count_;
};

// InTopKV2: whether fewer than k predictions of a row are larger than that of
// the target; false if the target or a prediction is out of range.
class InTopKKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType index, GetType(construction));
    constexpr DataType kFloat = DataType::kFloat, kInt64 = DataType::kInt64;
    constexpr int64_t kNever = int64_t{1} << 40;
    const auto is_finite = [](Value x) { return Abs(x) < Infinity(x); };
    ExpressionBuilder builder;
    const Value at = Cast(builder.Input(index), kInt64);
    builder.Output(builder.Element(builder.AxisInput(kFloat), at), kFloat);
    TFPLUG_ASSIGN_OR_RETURN(gather_, std::move(builder).Build());
    TFPLUG_ASSIGN_OR_RETURN(
        count_.map,
        MakeExpression({kFloat, kFloat}, {kInt64}, [&](Value x, Value target) {
          const Value larger = Cast(x > target, kInt64);
          return Select(is_finite(x), larger, kNever);
        }));
    TFPLUG_ASSIGN_OR_RETURN(
        count_.finish,
        MakeExpression({kInt64, index, index, kInt64}, {DataType::kBool},
                       [&](Value larger, Value target, Value k, Value classes) {
                         const Value t = Cast(target, kInt64);
                         return (t >= 0) & (t < classes) &
                                (larger < Min(Cast(k, kInt64), kNever));
                       }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand targets, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(Operand k, GetView(run, 2));
    const auto shapes = [&] {
      return "; the shapes are " + ShapeOf(x).ToString() + " and " +
             ShapeOf(targets).ToString();
    };
    if (k.rank != 0) {
      return absl::InvalidArgumentError("k must be 0-D, got shape " +
                                        ShapeOf(k).ToString());
    }
    if (x.rank != 2) {
      return absl::InvalidArgumentError("predictions must be 2-dimensional" +
                                        shapes());
    }
    if (targets.rank != 1) {
      return absl::InvalidArgumentError("targets must be 1-dimensional" +
                                        shapes());
    }
    if (x.dim(0) != targets.dim(0)) {
      return absl::InvalidArgumentError(
          "First dimension of predictions " + std::to_string(x.dim(0)) +
          " must match length of targets " + std::to_string(targets.dim(0)));
    }
    const int64_t rows = x.dim(0), classes = x.dim(1);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {rows}));
    if (classes == 0) return Fill(run, y, 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand target,
                            run.launcher().Allocate(x.type, {rows}));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(gather_, {targets, ir::WithAxis(x, 1)}, {target}));
    return run.launcher().Reduce(
        count_,
        {x, ir::WithDim(target, 1, classes), ir::WithDim(targets, 1, classes),
         k.AddDim(rows, 0).AddDim(classes, 0),
         ir::ScalarOf(DataType::kInt64, static_cast<double>(classes), x)},
        {y});
  }

 private:
  Expression gather_;
  Reduction count_;
};

}  // namespace op_kernels_internal

inline void CountingOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  constexpr uint64_t kWeights = kernel::SetOf(
      DataType::kInt32, DataType::kInt64, DataType::kFloat, DataType::kDouble);
  registrar.Add<BincountKernel>(KernelDef("Bincount").HostMemory("size"), "T",
                                kWeights);
  // `size` has the type of the input.
  registrar.Add<BincountKernel>(KernelDef("DenseBincount")
                                    .TypeConstraint<int32_t, int64_t>("Tidx")
                                    .HostMemory("size"),
                                "T", kWeights);
  if (!registrar.Supported(kernel::SetOf(DataType::kDouble)).empty()) {
    registrar.Add<HistogramKernel>(
        KernelDef("HistogramFixedWidth")
            .TypeConstraint<int32_t, int64_t>("dtype")
            .HostMemory("value_range")
            .HostMemory("nbins"),
        "T", kWeights);
  }
  registrar.Add<BucketizeKernel>(KernelDef("Bucketize"), "T", kWeights);
  for (const char* op : {"LowerBound", "UpperBound"}) {
    registrar.Add<BoundKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("out_type"), "T",
        kNumberTypes);
  }
  registrar.Add<InTopKKernel>(KernelDef("InTopKV2"), "T", kIndexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COUNTING_H_
