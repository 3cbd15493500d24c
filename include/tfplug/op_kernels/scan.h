// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SCAN_H_
#define TFPLUG_OP_KERNELS_SCAN_H_

#include <limits>
#include <string>
#include <utility>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Cumsum, Cumprod, CumulativeLogsumexp and TopKV2.
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
      if (!is_reversed_) continue;
      view->Advance((size - 1) * view->stride(last));
      view->stride(last) = -view->stride(last);
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
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            construction.GetAttr<DataType>("T"));
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
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SCAN_H_
