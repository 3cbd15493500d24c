// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_SEGMENT_H_
#define TFPLUG_BACKEND_OPS_SEGMENT_H_

#include <string>

#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/read_back_kernel.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Reductions of rows that have the same segment id. Ids ascend, so that the
// last one gives the number of segments; the device does not check that.
namespace tfplug {
namespace internal {

// SegmentSum, -Mean, -Prod, -Max and -Min, and SparseSegmentSum, -Mean and
// -SqrtN, which reduce the rows with given indices.
class SegmentKernel : public ReadBackKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("T"));
    const auto has = [&](const char* text) { return op.find(text) != op.npos; };
    is_sparse_ = has("Sparse");
    is_empty_zero_ = has("Max") || has("Min");
    divides_ = has("Mean") || has("SqrtN");
    kind_ = has("Prod")  ? ScatterKind::kMultiply
            : has("Max") ? ScatterKind::kMax
            : has("Min") ? ScatterKind::kMin
                         : ScatterKind::kAdd;
    constexpr DataType kInt64 = DataType::kInt64;
    const bool is_root = has("SqrtN"), divides = divides_;
    TFPLUG_ASSIGN_OR_RETURN(
        finish_, MakeExpression({type, kInt64}, {type}, [&](Value x, Value n) {
          if (!divides) return Select(n == 0, x.Like(0), x);
          const Value count = Cast(Max(n, 1), x.type());
          return x / (is_root ? Sqrt(count) : count);
        }));
    TFPLUG_ASSIGN_OR_RETURN(const DataType id,
                            construction.GetAttr<DataType>(
                                is_sparse_ ? "Tsegmentids" : "Tindices"));
    TFPLUG_ASSIGN_OR_RETURN(to_int64_, CastExpression(id, kInt64));
    if (!is_sparse_) return absl::OkStatus();
    Operand bits;
    bits.type = type;
    TFPLUG_ASSIGN_OR_RETURN(const DataType index,
                            construction.GetAttr<DataType>("Tidx"));
    TFPLUG_ASSIGN_OR_RETURN(const Expression* const gather,
                            GatherExpression(index, AsBits(bits).type));
    gather_ = *gather;
    return absl::OkStatus();
  }

  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids, GetView(run, IdsInput()));
    bool fits = x.rank > 0 && ids.rank == 1;
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
      fits = fits && ShapeOf(indices) == ShapeOf(ids);
    } else {
      fits = fits && ids.dim(0) == x.dim(0);
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          "segment_ids should be a vector of the same size as dimension 0 of "
          "input, or as indices, not " +
          ShapeOf(ids).ToString() + "; the input has shape " +
          ShapeOf(x).ToString());
    }
    const int64_t n = ids.dim(0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids64,
                            run.launcher().Allocate(DataType::kInt64, {n}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(to_int64_, {ids}, {ids64}));
    return ids64;
  }

  absl::Status End(OpRun& run, const Operand& ids,
                   int64_t last) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const int64_t n = ids.dim(0);
    int64_t segments = n == 0 ? 0 : last + 1;
    if (segments < 0) {
      return absl::InvalidArgumentError("segment ids must be >= 0");
    }
    Operand rows = Operand::Dense(x.data, x.type, {x.dim(0), SizeOfRow(x)});
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand gathered,
          run.launcher().Allocate(x.type, {n, rows.dim(1)}));
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(gather_,
                             {WithDim(indices, 1, rows.dim(1)),
                              AsBits(WithDim(WithAxis(rows, 0), 0, n))},
                             {AsBits(gathered)}));
      rows = gathered;
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(0, segments);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    const Operand out = Operand::Dense(y.data, y.type, {segments, rows.dim(1)});
    TFPLUG_RETURN_IF_ERROR(Start(run, out));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(kind_, ids, rows, out));
    if (!divides_ && !is_empty_zero_) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(
        Operand counts, run.launcher().Allocate(DataType::kInt64, {segments}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ones,
                            run.launcher().Allocate(DataType::kInt64, {n}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, counts, 0));
    TFPLUG_RETURN_IF_ERROR(Fill(run, ones, 1));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scatter(ScatterKind::kAdd, ids, ones, counts));
    return run.launcher().Map(finish_, {out, counts.AddDim(rows.dim(1), 0)},
                              {out});
  }

 private:
  int IdsInput() const { return is_sparse_ ? 2 : 1; }
  static int64_t SizeOfRow(const Operand& x) {
    int64_t size = 1;
    for (int d = 1; d < x.rank; ++d) size *= x.dim(d);
    return size;
  }

  absl::Status Start(OpRun& run, const Operand& out) const {
    if (!is_empty_zero_) {
      return Fill(run, out, kind_ == ScatterKind::kMultiply ? 1 : 0);
    }
    const DataType type = ComputeType(out.type);
    Operand identity = ScalarOf(type, 0, out);
    identity.scalar = ReduceIdentity(
        kind_ == ScatterKind::kMax ? ReduceKind::kMax : ReduceKind::kMin, type);
    TFPLUG_ASSIGN_OR_RETURN(const Expression store,
                            CastExpression(type, out.type));
    return run.launcher().Map(store, {identity}, {out});
  }

  bool is_sparse_ = false, is_empty_zero_ = false, divides_ = false;
  ScatterKind kind_ = ScatterKind::kAdd;
  Expression to_int64_, gather_, finish_;
};

}  // namespace internal

inline void SegmentOps(const Registrar& registrar) {
  using internal::SegmentKernel;
  for (const char* op : {"SegmentSum", "SegmentProd", "SegmentMax",
                         "SegmentMin", "SegmentMean"}) {
    registrar.Add<SegmentKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("Tindices"), "T",
        kNumberTypes);
  }
  for (const char* op :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    registrar.Add<SegmentKernel>(
        KernelDef(op)
            .TypeConstraint<int32_t, int64_t>("Tidx")
            .TypeConstraint<int32_t, int64_t>("Tsegmentids"),
        "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_SEGMENT_H_
