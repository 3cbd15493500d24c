// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_REDUCTION_H_
#define TFPLUG_BACKEND_OPS_REDUCTION_H_

#include <limits>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/backend/internal/host_backend.h"
#include "tfplug/backend/internal/views.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/registrar.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace internal {

// Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any. Of complex numbers, both
// parts are summed.
class ReductionKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    return SetUp(construction, op);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(1));
    return Reduce(run, axes, absl::MakeConstSpan(&x, 1));
  }

 protected:
  // Sets the reduction of elements in memory.
  absl::Status SetUp(KernelConstruction& construction, const std::string& op) {
    TFPLUG_ASSIGN_OR_RETURN(keep_dims_,
                            construction.GetAttr<bool>("keep_dims"));
    DataType type = DataType::kBool;
    if (construction.HasAttr("T")) {
      TFPLUG_ASSIGN_OR_RETURN(type, construction.GetAttr<DataType>("T"));
    }
    type = PartType(type);
    is_mean_ = op == "Mean";
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
    if (op == "EuclideanNorm") {
      TFPLUG_ASSIGN_OR_RETURN(
          reduction_.map,
          MakeExpression({type}, {computed}, [](Value x) { return x * x; }));
      TFPLUG_ASSIGN_OR_RETURN(
          reduction_.finish,
          MakeExpression({computed}, {type}, [](Value x) { return Sqrt(x); }));
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(reduction_.map, CastExpression(type, computed));
    if (!is_mean_) {
      const int bits = type == DataType::kInt8    ? 7
                       : type == DataType::kInt16 ? 15
                                                  : 0;
      const bool is_bounded = bits != 0 && (op == "Max" || op == "Min");
      TFPLUG_ASSIGN_OR_RETURN(
          reduction_.finish, MakeExpression({computed}, {type}, [&](Value x) {
            if (!is_bounded) return x;
            // The result of no elements is that of the narrow type.
            return Min(Max(x, -(1 << bits)), (1 << bits) - 1);
          }));
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(
        reduction_.finish,
        MakeExpression({computed, computed}, {type},
                       [](Value sum, Value count) { return sum / count; }));
    return absl::OkStatus();
  }

  // Reduces what reduction_.map computes from the elements of views with the
  // same dimensions.
  absl::Status Reduce(OpRun& run, const Ints& axes,
                      absl::Span<const Operand> views) {
    const Operand& x = views[0];
    uint64_t is_reduced = 0;
    for (int64_t axis : axes) {
      TFPLUG_ASSIGN_OR_RETURN(const int d, CheckAxis(axis, x.rank));
      if ((is_reduced >> d & 1) != 0) {
        return absl::InvalidArgumentError(
            "Invalid reduction arguments: Axes contains duplicate dimension: " +
            std::to_string(d));
      }
      is_reduced |= uint64_t{1} << d;
    }
    Shape shape;
    int64_t count = 1;
    for (int d = 0; d < x.rank; ++d) {
      if ((is_reduced >> d & 1) != 0) count *= x.dim(d);
    }
    absl::InlinedVector<Operand, 4> inputs;
    for (const Operand& view : views) {
      inputs.push_back(WithoutDims(view));
      for (const uint64_t reduced : {0, 1}) {
        for (int d = 0; d < x.rank; ++d) {
          if ((is_reduced >> d & 1) != reduced) continue;
          inputs.back().AddDim(view.dim(d), view.stride(d));
        }
      }
    }
    for (int d = 0; d < x.rank; ++d) {
      const bool reduced = (is_reduced >> d & 1) != 0;
      if (!reduced || keep_dims_) shape.add_dim(reduced ? 1 : x.dim(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(Operand y, run.AllocateOutput(0, shape));
    if (keep_dims_) {
      Operand squeezed = y;
      squeezed.rank = 0;
      for (int d = 0; d < x.rank; ++d) {
        if ((is_reduced >> d & 1) == 0) {
          squeezed.AddDim(y.dim(d), y.stride(d));
        }
      }
      y = squeezed;
    }
    if (is_mean_) {
      inputs.push_back(
          ScalarOf(reduction_.type(), static_cast<double>(count), inputs[0]));
    }
    const auto reduce = [&](Operand to) {
      return run.launcher().Reduce(reduction_, absl::MakeSpan(inputs),
                                   absl::MakeSpan(&to, 1));
    };
    if (!IsComplex(x.type)) return reduce(y);
    // As on TensorFlow's CPU, the mean of no complex numbers is 0.
    if (count == 0) return Fill(run, y, 0);
    const Operand complex = inputs[0];
    inputs[0] = PartOf(complex, 0);
    TFPLUG_RETURN_IF_ERROR(reduce(PartOf(y, 0)));
    inputs[0] = PartOf(complex, 1);
    return reduce(PartOf(y, 1));
  }

  Reduction reduction_;

 private:
  bool keep_dims_ = false;
  bool is_mean_ = false;
};

// L2Loss: half the sum of squares.
class L2LossKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("T"));
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
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
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
        best_, MakeReduction(is_max ? ReduceKind::kMax : ReduceKind::kMin,
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
    TFPLUG_ASSIGN_OR_RETURN(const int axis, GetAxis(run, 1, x.rank));
    if (x.dim(axis) == 0) {
      return absl::InvalidArgumentError(
          "Reduction axis " + std::to_string(axis) + " is empty in shape " +
          ShapeOf(x).ToString());
    }
    const Operand rows = WithDimLast(x, axis);
    Operand kept = rows;
    --kept.rank;
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(kept)));
    TFPLUG_ASSIGN_OR_RETURN(Operand best,
                            run.launcher().Allocate(computed_, DimsOf(kept)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(best_, {rows}, {best}));
    return run.launcher().Reduce(
        first_,
        {rows, best.AddDim(x.dim(axis), 0), IndexOf(rows, rows.rank - 1)}, {y});
  }

 private:
  DataType type_{}, computed_{};
  Reduction best_, first_;
};

}  // namespace internal

inline void ReductionOps(const Registrar& registrar) {
  using internal::ReductionKernel;
  internal::UseHostBackend();
  const auto def = [](const char* op) {
    return KernelDef(op).HostMemory("reduction_indices");
  };
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    registrar.Add<ReductionKernel>(def(op), "T", kNumberTypes & ~kInt32Type);
    // TensorFlow has the kernels of Max and Min for int32, the arithmetic of
    // shapes.
    if (HasHostKernel(op)) continue;
    registrar.Add<OnHost<ReductionKernel>>(
        def(op).HostMemory("input").HostMemory("output"), "T", kInt32Type);
  }
  for (const char* op : {"Sum", "Mean"}) {
    registrar.Add<ReductionKernel>(def(op), "T", kComplexTypes);
  }
  registrar.Add<ReductionKernel>(def("EuclideanNorm"), "T", kFloatTypes);
  registrar.Add<ReductionKernel>(def("All"));
  registrar.Add<ReductionKernel>(def("Any"));
  registrar.Add<internal::L2LossKernel>(KernelDef("L2Loss"), "T", kFloatTypes);
  for (const char* op : {"ArgMax", "ArgMin"}) {
    registrar.Add<internal::ArgKernel>(
        KernelDef(op)
            .TypeConstraint<int32_t, int64_t>("output_type")
            .HostMemory("dimension"),
        "T", kAllTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_REDUCTION_H_
