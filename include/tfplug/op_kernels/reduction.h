// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_REDUCTION_H_
#define TFPLUG_OP_KERNELS_REDUCTION_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/ir/views.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Builds the reductions of Sum, Mean, Prod, Max, Min, EuclideanNorm, All and
// Any. Complex numbers are reduced part by part, except by EuclideanNorm, whose
// reduction takes both parts.
class Reducer {
 public:
  absl::Status Init(KernelConstruction& construction, const std::string& op) {
    TFPLUG_ASSIGN_OR_RETURN(keep_dims_,
                            construction.GetAttr<bool>("keep_dims"));
    DataType type = DataType::kBool;
    if (construction.HasAttr("T")) {
      TFPLUG_ASSIGN_OR_RETURN(type, GetType(construction));
    }
    const bool is_complex = IsComplex(type);
    type = PartType(type);
    is_mean_ = op == "Mean";
    is_norm_ = op == "EuclideanNorm";
    reduction_.kind = op == "Prod"                 ? ReduceKind::kProduct
                      : op == "Max" || op == "Any" ? ReduceKind::kMax
                      : op == "Min" || op == "All" ? ReduceKind::kMin
                                                   : ReduceKind::kSum;
    DataType computed = ComputeType(type);
    if (is_mean_ && !IsFloat(type)) {  // the sum may exceed the type
      const bool is_unsigned =
          type == DataType::kUint8 || type == DataType::kUint16 ||
          type == DataType::kUint32 || type == DataType::kUint64;
      computed = is_unsigned ? DataType::kUint64 : DataType::kInt64;
    }
    if (op == "Max" || op == "Min") {
      bits_ = type == DataType::kInt8 ? 7 : type == DataType::kInt16 ? 15 : 0;
    }
    TFPLUG_ASSIGN_OR_RETURN(
        reduction_.map,
        !is_norm_    ? CastExpression(type, computed)
        : is_complex ? MakeExpression(
                           {type, type}, {computed},
                           [](Value re, Value im) { return re * re + im * im; })
                     : MakeExpression({type}, {computed},
                                      [](Value x) { return x * x; }));
    ExpressionBuilder finish;
    finish.Output(AddResult(finish), type);
    TFPLUG_ASSIGN_OR_RETURN(reduction_.finish, std::move(finish).Build());
    return absl::OkStatus();
  }

  // Returns the reduction of elements in memory.
  const Reduction& reduction() const { return reduction_; }
  bool is_norm() const { return is_norm_; }

  // Adds the inputs of `finish`, the combined value and the count of a Mean,
  // and returns the result.
  Value AddResult(ExpressionBuilder& finish) const {
    const Value x = finish.Input(reduction_.type());
    if (is_mean_) return x / finish.Input(reduction_.type());
    if (is_norm_) return Sqrt(x);
    // The result of no elements is that of the narrow type.
    if (bits_ != 0) return Min(Max(x, -(1 << bits_)), (1 << bits_) - 1);
    return x;
  }

  // The operands of one run.
  struct Run {
    Shape shape;  // of the result
    // The operands of the Reduce, with the kept dimensions before the reduced
    // ones; the last one is the count of a Mean.
    absl::InlinedVector<Operand, 4> inputs;
    int64_t count = 1;  // of the elements of a result
    uint64_t is_reduced = 0;
    bool keeps_dims = false;

    // Returns the output of the Reduce for a view of the result's shape.
    Operand ToOutput(const Operand& view) const {
      if (!keeps_dims) return view;
      Operand output = ir::WithoutDims(view);
      for (int d = 0; d < view.rank; ++d) {
        if ((is_reduced >> d & 1) == 0) {
          output.AddDim(view.dim(d), view.stride(d));
        }
      }
      return output;
    }
    // Returns an input of `finish` for a view of the result's shape.
    Operand ToInput(const Operand& view) const {
      Operand input = ToOutput(view);
      while (input.rank < inputs[0].rank) {
        input.AddDim(inputs[0].dim(input.rank), 0);
      }
      return input;
    }
  };
  // Arranges views with the same dimensions, the inputs of reduction().map or
  // of another map.
  absl::StatusOr<Run> Arrange(const Ints& axes,
                              absl::Span<const Operand> views) const {
    const Operand& x = views[0];
    Run run;
    run.keeps_dims = keep_dims_;
    for (int64_t axis : axes) {
      if (axis < -x.rank || axis >= x.rank) {
        return absl::InvalidArgumentError(
            "Invalid reduction dimension (" + std::to_string(axis) +
            " for input with " + std::to_string(x.rank) + " dimension(s)");
      }
      const auto d = static_cast<int>(axis < 0 ? axis + x.rank : axis);
      if ((run.is_reduced >> d & 1) != 0) {
        return absl::InvalidArgumentError(
            "Invalid reduction arguments: Axes contains duplicate dimension: " +
            std::to_string(d));
      }
      run.is_reduced |= uint64_t{1} << d;
    }
    for (int d = 0; d < x.rank; ++d) {
      const bool reduced = (run.is_reduced >> d & 1) != 0;
      if (reduced) run.count *= x.dim(d);
      if (!reduced || keep_dims_) run.shape.add_dim(reduced ? 1 : x.dim(d));
    }
    for (const Operand& view : views) {
      run.inputs.push_back(ir::WithoutDims(view));
      for (const uint64_t reduced : {0, 1}) {
        for (int d = 0; d < x.rank; ++d) {
          if ((run.is_reduced >> d & 1) != reduced) continue;
          run.inputs.back().AddDim(view.dim(d), view.stride(d));
        }
      }
    }
    if (is_mean_) {
      run.inputs.push_back(ir::ScalarOf(
          reduction_.type(), static_cast<double>(run.count), run.inputs[0]));
    }
    return run;
  }

 private:
  Reduction reduction_;
  bool keep_dims_ = false, is_mean_ = false, is_norm_ = false;
  int bits_ = 0;  // of the largest number of a narrow type
};

class ReductionKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    return reducer_.Init(construction, op);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(1));
    absl::InlinedVector<Operand, 2> views = {x};
    const bool takes_both = IsComplex(x.type) && reducer_.is_norm();
    if (takes_both) views = {PartOf(x, 0), PartOf(x, 1)};
    TFPLUG_ASSIGN_OR_RETURN(Reducer::Run reduce, reducer_.Arrange(axes, views));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output,
                            run.AllocateOutput(0, reduce.shape));
    const Operand y = reduce.ToOutput(output);
    const auto reduce_to = [&](Operand to) {
      return run.launcher().Reduce(reducer_.reduction(),
                                   absl::MakeSpan(reduce.inputs),
                                   absl::MakeSpan(&to, 1));
    };
    if (!IsComplex(x.type)) return reduce_to(y);
    // TensorFlow's CPU kernel returns 0 as the mean of no complex numbers, too.
    if (reduce.count == 0) return Fill(run, y, 0);
    if (takes_both) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, PartOf(y, 1), 0));
      return reduce_to(PartOf(y, 0));
    }
    const auto inputs = reduce.inputs;  // which a Reduce may simplify in place
    for (int part : {0, 1}) {
      reduce.inputs = inputs;
      reduce.inputs[0] = PartOf(inputs[0], part);
      TFPLUG_RETURN_IF_ERROR(reduce_to(PartOf(y, part)));
    }
    return absl::OkStatus();
  }

 private:
  Reducer reducer_;
};

// L2Loss: half the sum of squares.
class L2LossKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const DataType computed = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(
        reduction_.map,
        MakeExpression({type}, {computed}, [](Value x) { return x * x; }));
    TFPLUG_ASSIGN_OR_RETURN(
        reduction_.finish,
        MakeExpression({computed}, {type}, [](Value x) { return x / 2; }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {}));
    return run.launcher().Reduce(reduction_, {x}, {y});
  }

 private:
  Reduction reduction_;
};

// ArgMax and ArgMin: the first of the largest elements. Two passes: the largest
// element, then the smallest index at which it is.
class ArgKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(type_, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType index,
                            construction.GetAttr<DataType>("output_type"));
    const bool is_max = op == "ArgMax";
    computed_ = ComputeType(type_);
    // NaN never wins.
    const auto number = [&](Value x) {
      if (!IsFloat(x.type())) return x;
      const Value infinity = Infinity(x);
      return Select(IsNan(x), is_max ? -infinity : infinity, x);
    };
    TFPLUG_ASSIGN_OR_RETURN(
        best_,
        primitives::MakeReduction(is_max ? ReduceKind::kMax : ReduceKind::kMin,
                                  {type_}, computed_, number, computed_));
    constexpr DataType kInt64 = DataType::kInt64;
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    first_.kind = ReduceKind::kMin;
    TFPLUG_ASSIGN_OR_RETURN(first_.map,
                            MakeExpression({type_, computed_, kInt64}, {kInt64},
                                           [](Value x, Value best, Value i) {
                                             return Select(x == best, i, kNone);
                                           }));
    TFPLUG_ASSIGN_OR_RETURN(first_.finish,
                            MakeExpression({kInt64}, {index}, [](Value i) {
                              return Select(i == i.Like(kNone), 0, i);
                            }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const int axis, GetAxis(run, 1, x.rank,
                                "dim must be a scalar, but received tensor of "
                                "shape: "));
    if (x.dim(axis) == 0) {
      return absl::InvalidArgumentError(
          "Reduction axis " + std::to_string(axis) + " is empty in shape " +
          ShapeOf(x).ToString());
    }
    const Operand rows = ir::WithDimLast(x, axis);
    Operand kept = rows;
    --kept.rank;
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(kept)));
    TFPLUG_ASSIGN_OR_RETURN(
        Operand best, run.launcher().Allocate(computed_, ir::DimsOf(kept)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(best_, {rows}, {best}));
    return run.launcher().Reduce(
        first_,
        {rows, best.AddDim(x.dim(axis), 0), ir::IndexOf(rows, rows.rank - 1)},
        {y});
  }

 private:
  DataType type_{}, computed_{};
  Reduction best_, first_;
};

}  // namespace op_kernels_internal

inline void ReductionOps(const Registrar& registrar) {
  using op_kernels_internal::ReductionKernel;
  op_kernels_internal::UseHostBackend();
  const auto def = [](const char* op) {
    return KernelDef(op).HostMemory("reduction_indices");
  };
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    registrar.Add<ReductionKernel>(def(op), "T", kNumberTypes & ~kInt32Type);
    // TensorFlow has the kernels of Max and Min for int32, the arithmetic of
    // shapes.
    if (kernel::HasHostKernel(op)) continue;
    registrar.Add<OnHost<ReductionKernel>>(
        def(op).HostMemory("input").HostMemory("output"), "T", kInt32Type);
  }
  for (const char* op : {"Sum", "Mean"}) {
    registrar.Add<ReductionKernel>(def(op), "T", kComplexTypes);
  }
  registrar.Add<ReductionKernel>(def("EuclideanNorm"), "T",
                                 kFloatTypes | kComplexTypes);
  registrar.Add<ReductionKernel>(def("All"));
  registrar.Add<ReductionKernel>(def("Any"));
  registrar.Add<op_kernels_internal::L2LossKernel>(KernelDef("L2Loss"), "T",
                                                   kFloatTypes);
  for (const char* op : {"ArgMax", "ArgMin"}) {
    registrar.Add<op_kernels_internal::ArgKernel>(
        KernelDef(op)
            .TypeConstraint<int32_t, int64_t>("output_type")
            .HostMemory("dimension"),
        "T", kAllTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_REDUCTION_H_
