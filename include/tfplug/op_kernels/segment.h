// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SEGMENT_H_
#define TFPLUG_OP_KERNELS_SEGMENT_H_

#include <string>

#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/scatter.h"

#pragma GCC visibility push(hidden)

// Reductions of rows that have the same segment id. Ids ascend, so that the
// last one gives the number of segments; the device does not check that.
namespace tfplug {
namespace op_kernels_internal {

// Computes how many of the ids, an int64 vector, are in each segment.
inline absl::StatusOr<Operand> CountSegments(OpRun& run, const Operand& ids,
                                             int64_t segments) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand counts,
      run.launcher().Allocate(DataType::kInt64, {segments}));
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand ones,
      run.launcher().Allocate(DataType::kInt64, {ids.dim(0)}));
  TFPLUG_RETURN_IF_ERROR(Fill(run, counts, 0));
  TFPLUG_RETURN_IF_ERROR(Fill(run, ones, 1));
  TFPLUG_RETURN_IF_ERROR(
      run.launcher().Scatter(ScatterKind::kAdd, ids, ones, counts));
  return counts;
}

// Returns a vector of indices as int64.
inline absl::StatusOr<Operand> AsInt64(OpRun& run, const Operand& ids) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand ids64,
      run.launcher().Allocate(DataType::kInt64, ir::DimsOf(ids)));
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const convert,
                          primitives::ConversionOf(ids.type, DataType::kInt64));
  TFPLUG_RETURN_IF_ERROR(run.launcher().Map(*convert, {ids}, {ids64}));
  return ids64;
}

// Returns an error unless both are vectors of the same size.
inline absl::Status CheckIndices(const Operand& indices, const Operand& ids) {
  const auto shapes = [&] {
    return " Indices and segment_ids have shapes " +
           ShapeOf(indices).ToString() + " and " + ShapeOf(ids).ToString() +
           ".";
  };
  if (indices.rank != 1) {
    return absl::InvalidArgumentError("indices should be a vector." + shapes());
  }
  if (ids.rank != 1) {
    return absl::InvalidArgumentError("segment_ids should be a vector." +
                                      shapes());
  }
  if (ids.dim(0) == indices.dim(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "segment_ids and indices should have same size." + shapes());
}

// The base of the kernels of SegmentSum, -Mean, -Prod, -Max and -Min, and of
// SparseSegmentSum, -Mean and -SqrtN, which reduce the rows with given indices.
class SegmentReduction {
 public:
  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const auto has = [&](const char* text) { return op.find(text) != op.npos; };
    is_sparse_ = has("Sparse");
    const bool divides = has("Mean") || has("SqrtN"), is_root = has("SqrtN");
    kind_ = has("Prod")  ? ScatterKind::kMultiply
            : has("Max") ? ScatterKind::kMax
            : has("Min") ? ScatterKind::kMin
                         : ScatterKind::kAdd;
    needs_counts_ = divides || has("Max") || has("Min");
    const bool rounds =
        kind_ == ScatterKind::kAdd || kind_ == ScatterKind::kMultiply;
    between_ = rounds && IsFloat(type) ? ComputeType(type) : type;
    TFPLUG_ASSIGN_OR_RETURN(
        finish_, MakeExpression({between_, DataType::kInt64}, {type},
                                [&](Value x, Value n) {
                                  if (!divides)
                                    return Select(n == 0, x.Like(0), x);
                                  const Value count = Cast(Max(n, 1), x.type());
                                  return x / (is_root ? Sqrt(count) : count);
                                }));
    return absl::OkStatus();
  }

  // Returns the ids as int64.
  absl::StatusOr<Operand> Ids(OpRun& run) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids,
                            GetView(run, is_sparse_ ? 2 : 1));
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
      TFPLUG_RETURN_IF_ERROR(CheckIndices(indices, ids));
    }
    const auto shapes = [&] {
      return " They have shapes " + ShapeOf(ids).ToString() + " and " +
             ShapeOf(x).ToString() + ".";
    };
    if (x.rank == 0) {
      return absl::InvalidArgumentError("Shape must be at least rank 1");
    }
    if (ids.rank != 1) {
      return absl::InvalidArgumentError("segment_ids should be a vector." +
                                        shapes());
    }
    if (!is_sparse_ && ids.dim(0) != x.dim(0)) {
      return absl::InvalidArgumentError(
          "segment_ids should be the same size as dimension 0 of input." +
          shapes());
    }
    return AsInt64(run, ids);
  }

  absl::Status Reduce(OpRun& run, const Operand& ids, int64_t segments) const {
    if (segments < 0) {
      return absl::InvalidArgumentError("segment ids must be >= 0");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const int64_t n = ids.dim(0);
    Operand rows = AsSlices(x, 1);
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand gathered,
          run.launcher().Allocate(x.type, {n, rows.dim(1)}));
      TFPLUG_ASSIGN_OR_RETURN(
          const Expression* const gather,
          GatherExpression(indices.type, ir::AsBits(x).type));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          *gather,
          {ir::WithDim(indices, 1, rows.dim(1)),
           ir::AsBits(ir::WithDim(ir::WithAxis(rows, 0), 0, n))},
          {ir::AsBits(gathered)}));
      rows = gathered;
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(0, segments);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    const Operand out = AsSlices(y, 1);
    Operand sums = out;
    if (between_ != x.type) {
      TFPLUG_ASSIGN_OR_RETURN(sums, AllocateSums(run, out));
      TFPLUG_ASSIGN_OR_RETURN(const Operand wide, AllocateSums(run, rows));
      TFPLUG_RETURN_IF_ERROR(Convert(run, rows, wide));
      rows = wide;
    }
    TFPLUG_RETURN_IF_ERROR(FillIdentity(run, kind_, sums));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(kind_, ids, rows, sums));
    if (!needs_counts_) return Convert(run, sums, out);
    TFPLUG_ASSIGN_OR_RETURN(Operand counts, CountSegments(run, ids, segments));
    return run.launcher().Map(finish_, {sums, counts.AddDim(rows.dim(1), 0)},
                              {out});
  }

 private:
  bool is_sparse_ = false, needs_counts_ = false;
  ScatterKind kind_ = ScatterKind::kAdd;
  // The type of the sums and products, which are rounded once.
  DataType between_ = DataType::kFloat;
  Expression finish_;
};

// The kernel of the ops without num_segments.
class SegmentKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return reduction_.Init(construction);
  }
  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    return reduction_.Ids(run);
  }
  absl::Status End(OpRun& run, const Operand& ids,
                   absl::Span<const int64_t> last) const override {
    return reduction_.Reduce(run, ids, ids.dim(0) == 0 ? 0 : last[0] + 1);
  }

 private:
  SegmentReduction reduction_;
};

}  // namespace op_kernels_internal

inline void SegmentOps(const Registrar& registrar) {
  for (const char* op : {"SegmentSum", "SegmentProd", "SegmentMax",
                         "SegmentMin", "SegmentMean"}) {
    registrar.Add<op_kernels_internal::SegmentKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("Tindices"), "T",
        kNumberTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SEGMENT_H_
