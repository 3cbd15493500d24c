// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SCAN_H_
#define TFPLUG_OP_KERNELS_SCAN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Cumsum, Cumprod, CumulativeLogsumexp, TopKV2 and ApproxTopK.
namespace tfplug {
namespace op_kernels_internal {

// Cumsum and Cumprod.
class ScanKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(is_exclusive_,
                            construction.GetAttr<bool>("exclusive"));
    TFPLUG_ASSIGN_OR_RETURN(is_reversed_,
                            construction.GetAttr<bool>("reverse"));
    kind_ = op == "Cumprod" ? ReduceKind::kProduct : ReduceKind::kSum;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const int axis,
        GetAxis(run, 1, x.rank, "ScanOp: axis must be a scalar, not ",
                "ScanOp: Expected scan axis in the range "));
    TFPLUG_ASSIGN_OR_RETURN(Operand y, run.AllocateOutput(0, ShapeOf(x)));
    if (x.num_elements() == 0) return absl::OkStatus();
    const int last = x.rank - 1;
    const int64_t size = x.dim(axis);
    for (Operand* view : {&x, &y}) {
      *view = ir::WithDimLast(*view, axis);
      if (is_reversed_) *view = ir::Reversed(*view, last, x.rank);
    }
    if (is_exclusive_) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, ir::Range(y, last, 0, 1),
                                  kind_ == ReduceKind::kSum ? 0 : 1));
      x = ir::Range(x, last, 0, size - 1);
      y = ir::Range(y, last, 1, size);
    }
    if (y.num_elements() == 0) return absl::OkStatus();
    if (!IsComplex(x.type)) return run.launcher().Scan(kind_, x, y);
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scan(kind_, PartOf(x, 0), PartOf(y, 0)));
    return run.launcher().Scan(kind_, PartOf(x, 1), PartOf(y, 1));
  }

 private:
  bool is_exclusive_ = false;
  bool is_reversed_ = false;
  ReduceKind kind_ = ReduceKind::kSum;
};

// CumulativeLogsumexp: log2(size) passes, each of which adds the sums that end
// one step, two steps, four steps, ... before.
class LogSumExpKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(is_exclusive_,
                            construction.GetAttr<bool>("exclusive"));
    TFPLUG_ASSIGN_OR_RETURN(is_reversed_,
                            construction.GetAttr<bool>("reverse"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    computed_ = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(load_, CastExpression(type, computed_));
    TFPLUG_ASSIGN_OR_RETURN(store_, CastExpression(computed_, type));
    TFPLUG_ASSIGN_OR_RETURN(
        add_, MakeExpression({computed_, computed_}, {computed_},
                             [](Value x, Value y) {
                               const Value high = Max(x, y), low = Min(x, y);
                               return Select(Abs(high) == Infinity(high), high,
                                             high + Log1p(Exp(low - high)));
                             }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const int axis,
        GetAxis(run, 1, input.rank, "ScanOp: axis must be a scalar, not ",
                "ScanOp: Expected scan axis in the range "));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output,
                            run.AllocateOutput(0, ShapeOf(input)));
    if (input.num_elements() == 0) return absl::OkStatus();
    Operand x = ir::WithDimLast(input, axis), y = ir::WithDimLast(output, axis);
    const int last = x.rank - 1;
    const int64_t size = x.dim(last);
    if (is_reversed_) {
      x = ir::Reversed(x, last, last + 1);
      y = ir::Reversed(y, last, last + 1);
    }
    Launcher& launcher = run.launcher();
    TFPLUG_ASSIGN_OR_RETURN(Operand sums,
                            launcher.Allocate(computed_, ir::DimsOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(Operand next,
                            launcher.Allocate(computed_, ir::DimsOf(x)));
    const int64_t begin = is_exclusive_ ? 1 : 0;
    if (is_exclusive_) {
      // The logarithm of 0.
      TFPLUG_RETURN_IF_ERROR(Fill(run, ir::Range(sums, last, 0, 1),
                                  -std::numeric_limits<double>::infinity()));
    }
    TFPLUG_RETURN_IF_ERROR(launcher.Map(load_,
                                        {ir::Range(x, last, 0, size - begin)},
                                        {ir::Range(sums, last, begin, size)}));
    for (int64_t step = 1; step < size; step *= 2) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, ir::Range(sums, last, 0, step),
                                  ir::Range(next, last, 0, step)));
      TFPLUG_RETURN_IF_ERROR(
          launcher.Map(add_,
                       {ir::Range(sums, last, 0, size - step),
                        ir::Range(sums, last, step, size)},
                       {ir::Range(next, last, step, size)}));
      std::swap(sums, next);
    }
    return launcher.Map(store_, {sums}, {y});
  }

 private:
  bool is_exclusive_ = false, is_reversed_ = false;
  DataType computed_{};
  Expression load_, add_, store_;
};

class TopKKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t k,
                            run.GetScalar(1, "k must be scalar, got shape "));
    const int last = x.rank - 1;
    if (k < 0) {
      return absl::InvalidArgumentError("Need k >= 0, got " +
                                        std::to_string(k));
    }
    if (last < 0) {
      return absl::InvalidArgumentError("input must be >= 1-D, got shape " +
                                        ShapeOf(x).ToString());
    }
    if (x.dim(last) < k) {
      return absl::InvalidArgumentError(
          "input must have at least k columns. Had " +
          std::to_string(x.dim(last)) + ", needed " + std::to_string(k));
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(last, k);
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            run.AllocateOutput(1, shape));
    if (values.num_elements() == 0) return absl::OkStatus();
    if (indices.type == DataType::kInt32) {
      return run.launcher().Sort(x, values, indices);
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand sorted,
        run.launcher().Allocate(DataType::kInt32, ir::DimsOf(indices)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Sort(x, values, sorted));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression* const convert,
        primitives::ConversionOf(DataType::kInt32, indices.type));
    return run.launcher().Map(*convert, {sorted}, {indices});
  }
};

// ApproxTopK: the largest or smallest elements along a dimension. They are exact,
// as on all devices but TPUs.
class ApproxTopKKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(k_, construction.GetAttr<int64_t>("k"));
    TFPLUG_ASSIGN_OR_RETURN(
        axis_, construction.GetAttr<int64_t>("reduction_dimension"));
    TFPLUG_ASSIGN_OR_RETURN(recall_,
                            construction.GetAttr<float>("recall_target"));
    TFPLUG_ASSIGN_OR_RETURN(input_size_, construction.GetAttr<int64_t>(
                                             "reduction_input_size_override"));
    TFPLUG_ASSIGN_OR_RETURN(aggregates_,
                            construction.GetAttr<bool>("aggregate_to_topk"));
    TFPLUG_ASSIGN_OR_RETURN(const bool is_max,
                            construction.GetAttr<bool>("is_max_k"));
    // The smallest are the largest of the negative numbers.
    TFPLUG_ASSIGN_OR_RETURN(
        reorder_, MakeExpression({type}, {type},
                                 [&](Value x) { return is_max ? x : -x; }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    const int64_t axis = axis_ < 0 ? axis_ + x.rank : axis_;
    if (axis < 0 || axis >= x.rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Invalid reduction dimension: ", axis_,
          ". Must be within the range of [", -x.rank, ", ", x.rank - 1, "]"));
    }
    const auto d = static_cast<int>(axis);
    if (x.dim(d) < k_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input must have last dimension >= k = ", k_, " but was ", x.dim(d)));
    }
    if (!(recall_ > 0 && recall_ <= 1)) {
      return absl::InvalidArgumentError(
          "Invalid recall target: " + std::to_string(recall_) +
          ". Valid value range in : [0, 1.0].");
    }
    const int64_t size = aggregates_ ? k_ : ReducedSize(x.rank, x.dim(d));
    if (size > x.dim(d)) {
      return absl::UnimplementedError(
          absl::StrCat("the output has ", size, " elements of ", x.dim(d),
                       "; give a smaller reduction_input_size_override"));
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(d, size);
    TFPLUG_ASSIGN_OR_RETURN(Operand values, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Operand indices, run.AllocateOutput(1, shape));
    if (values.num_elements() == 0) return absl::OkStatus();
    for (Operand* view : {&x, &values, &indices}) {
      std::swap(view->dim(d), view->dim(x.rank - 1));
      std::swap(view->stride(d), view->stride(x.rank - 1));
    }
    // The elements are sorted along the last dimension of dense memory.
    Launcher& launcher = run.launcher();
    TFPLUG_ASSIGN_OR_RETURN(const Operand unsorted,
                            launcher.Allocate(x.type, ir::DimsOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand sorted,
                            launcher.Allocate(x.type, ir::DimsOf(values)));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand places,
        launcher.Allocate(indices.type, ir::DimsOf(indices)));
    TFPLUG_RETURN_IF_ERROR(launcher.Map(reorder_, {x}, {unsorted}));
    TFPLUG_RETURN_IF_ERROR(launcher.Sort(unsorted, sorted, places));
    TFPLUG_RETURN_IF_ERROR(launcher.Map(reorder_, {sorted}, {values}));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression* const copy,
        primitives::ConversionOf(indices.type, indices.type));
    return launcher.Map(*copy, {places}, {indices});
  }

 private:
  // Returns the size that TensorFlow's shape function expects without
  // aggregation: the number of candidates on a TPU.
  int64_t ReducedSize(int rank, int64_t n) const {
    const int64_t tile = rank == 1 ? 1024 : 128;
    if (n <= tile || recall_ == 1) return n;
    if (k_ == 1) return tile;
    const auto ceil_of = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const double wanted = (1.0 - static_cast<double>(k_)) /
                          std::log(static_cast<double>(recall_));
    const double most = static_cast<double>(n);
    const int64_t m = std::min(
        std::max(static_cast<int64_t>(std::min(wanted, most)), tile), n);
    const int64_t of = input_size_ >= 0 ? input_size_ : n;
    // The largest powers of two within the ratios.
    int64_t reduction = 1;
    while (reduction <= of / m / 2) reduction *= 2;
    if (reduction == 1) return n;
    int64_t limit = 1;
    while (limit < n / tile) limit *= 2;
    return ceil_of(ceil_of(n, tile), std::min(reduction, limit)) * tile;
  }

  int64_t k_ = 0, axis_ = -1, input_size_ = -1;
  float recall_ = 1;
  bool aggregates_ = true;
  Expression reorder_;
};

}  // namespace op_kernels_internal

inline void ScanOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"Cumsum", "Cumprod"}) {
    registrar.Add<ScanKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("Tidx").HostMemory(
            "axis"),
        "T", op[3] == 's' ? kNumberTypes | kComplexTypes : kNumberTypes);
  }
  registrar.Add<LogSumExpKernel>(KernelDef("CumulativeLogsumexp")
                                     .TypeConstraint<int32_t, int64_t>("Tidx")
                                     .HostMemory("axis"),
                                 "T", kFloatTypes);
  registrar.Add<TopKKernel>(KernelDef("TopKV2").HostMemory("k"), "T",
                            kNumberTypes);
  registrar.Add<ApproxTopKKernel>(
      KernelDef("ApproxTopK"), "T",
      kernel::SetOf(DataType::kFloat, DataType::kHalf, DataType::kBfloat16));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SCAN_H_
