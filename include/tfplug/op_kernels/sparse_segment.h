// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_SEGMENT_H_
#define TFPLUG_OP_KERNELS_SPARSE_SEGMENT_H_

#include <string>

#include "tfplug/op_kernels/segment.h"

#pragma GCC visibility push(hidden)

// Segments of the rows with given indices, and their gradients: the ops of
// lookups of embeddings that are summed.
namespace tfplug {
namespace op_kernels_internal {

// SparseSegmentSumWithNumSegments, -MeanWithNumSegments, -SqrtNWithNumSegments.
class NumberedSegmentKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return reduction_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t segments,
        run.GetScalar(3, "num_segments should be a scalar, not shape "));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids, reduction_.Ids(run));
    return reduction_.Reduce(run, ids, segments);
  }

 private:
  SegmentReduction reduction_;
};

// The gradients of SparseSegmentSum, -Mean and -SqrtN: each row of the data
// gets the sum of its segments' gradients, divided as the op divides.
class SparseSegmentGradient {
 public:
  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    const auto has = [&](const char* text) { return op.find(text) != op.npos; };
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    divides_ = !has("Sum");
    ExpressionBuilder builder;
    const Value id = builder.Input(DataType::kInt64);
    const Value x = builder.Element(builder.AxisInput(type), id);
    if (divides_) {
      const Value n = builder.Element(builder.AxisInput(DataType::kInt64), id);
      const Value count = Cast(Max(n, 1), ComputeType(type));
      builder.Output(x / (has("SqrtN") ? Sqrt(count) : count),
                     ComputeType(type));
    } else {
      builder.Output(x, ComputeType(type));
    }
    TFPLUG_ASSIGN_OR_RETURN(select_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Checks the inputs. Returns the size of the data's first dimension.
  absl::StatusOr<int64_t> Check(OpRun& run) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids, GetView(run, 2));
    TFPLUG_RETURN_IF_ERROR(CheckIndices(indices, ids));
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t size,
        run.GetScalar(3, "output_dim0 should be a scalar. Found: "));
    if (gradient.rank < 1 || size < 0) {
      return absl::InvalidArgumentError(
          "grad must have rows, and output_dim0 must not be negative: " +
          ShapeOf(gradient).ToString() + ", " + std::to_string(size));
    }
    return size;
  }

  // Sets output 0, which has `rows` rows; `indices` are int64.
  absl::Status Run(OpRun& run, const Operand& indices, int64_t rows) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand segment_ids, GetView(run, 2));
    Shape shape = ShapeOf(gradient);
    shape.set_dim(0, rows);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    const int64_t n = indices.dim(0);
    const Operand from = AsSlices(gradient, 1);
    const int64_t size = from.dim(1);
    if (n == 0 || y.num_elements() == 0) return Fill(run, y, 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand out,
                            AllocateSums(run, AsSlices(y, 1)));
    TFPLUG_RETURN_IF_ERROR(Fill(run, out, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids, AsInt64(run, segment_ids));
    TFPLUG_ASSIGN_OR_RETURN(const Operand updates,
                            run.launcher().Allocate(out.type, {n, size}));
    absl::InlinedVector<Operand, 4> inputs = {
        ir::WithDim(ids, 1, size), ir::WithDim(ir::WithAxis(from, 0), 0, n)};
    if (divides_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand counts,
                              CountSegments(run, ids, gradient.dim(0)));
      inputs.push_back(
          ir::WithDim(ir::WithDim(ir::WithAxis(counts, 0), 0, size), 0, n));
    }
    Operand to = updates;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(select_, absl::MakeSpan(inputs),
                                              absl::MakeSpan(&to, 1)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scatter(ScatterKind::kAdd, indices, updates, out));
    return Convert(run, out, AsSlices(y, 1));
  }

 private:
  bool divides_ = false;
  Expression select_;
};

class SparseSegmentGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return gradient_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t rows, gradient_.Check(run));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices64, AsInt64(run, indices));
    return gradient_.Run(run, indices64, rows);
  }

 private:
  SparseSegmentGradient gradient_;
};

// The ops with V2 return only the rows with an index, and these indices in
// ascending order.
class SparseSegmentGradV2Kernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(
        place_, MakeExpression({DataType::kInt64, DataType::kInt64},
                               {DataType::kInt64}, [](Value used, Value count) {
                                 return Select(used > 0, count - 1, -1);
                               }));
    ExpressionBuilder builder;
    const Value at = builder.Input(DataType::kInt64);
    builder.Output(builder.Element(builder.AxisInput(DataType::kInt64), at) - 1,
                   DataType::kInt64);
    TFPLUG_ASSIGN_OR_RETURN(rank_, std::move(builder).Build());
    return gradient_.Init(construction);
  }

  // Returns how many of the indices up to each one are used.
  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t size, gradient_.Check(run));
    TFPLUG_ASSIGN_OR_RETURN(const Operand used, Used(run, size));
    TFPLUG_ASSIGN_OR_RETURN(const Operand counts,
                            run.launcher().Allocate(DataType::kInt64, {size}));
    if (size > 0) {
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Scan(ReduceKind::kSum, used, counts));
    }
    return counts;
  }

  absl::Status End(OpRun& run, const Operand& counts,
                   absl::Span<const int64_t> numbers) const override {
    const int64_t rows = numbers[0], size = counts.dim(0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    const int64_t n = indices.dim(0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices64, AsInt64(run, indices));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ranks,
                            run.launcher().Allocate(DataType::kInt64, {n}));
    if (n > 0) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          rank_, {indices64, ir::WithDim(ir::WithAxis(counts, 0), 0, n)},
          {ranks}));
    }
    TFPLUG_RETURN_IF_ERROR(gradient_.Run(run, ranks, rows));
    TFPLUG_ASSIGN_OR_RETURN(const Operand unique,
                            run.AllocateOutput(1, {rows}));
    if (rows == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand used, Used(run, size));
    TFPLUG_ASSIGN_OR_RETURN(const Operand places,
                            run.launcher().Allocate(DataType::kInt64, {size}));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(place_, {used, counts}, {places}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand all,
                            run.launcher().Allocate(unique.type, {size}));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression* const convert,
        primitives::ConversionOf(DataType::kInt64, unique.type));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(*convert, {ir::IndexOf(all, 0)}, {all}));
    return run.launcher().Scatter(ScatterKind::kSet, places, all, unique);
  }

 private:
  // Returns 1 for each index that is used, and 0 for the others.
  static absl::StatusOr<Operand> Used(OpRun& run, int64_t size) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand used,
                            run.launcher().Allocate(DataType::kInt64, {size}));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand ones,
        run.launcher().Allocate(DataType::kInt64, {indices.dim(0)}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, used, 0));
    TFPLUG_RETURN_IF_ERROR(Fill(run, ones, 1));
    if (size > 0 && indices.dim(0) > 0) {
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Scatter(ScatterKind::kSet, indices, ones, used));
    }
    return used;
  }

  SparseSegmentGradient gradient_;
  Expression place_, rank_;
};

}  // namespace op_kernels_internal

inline void SparseSegmentOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const auto def = [](const std::string& op) {
    return KernelDef(op)
        .TypeConstraint<int32_t, int64_t>("Tidx")
        .TypeConstraint<int32_t, int64_t>("Tsegmentids");
  };
  for (const std::string op :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    registrar.Add<SegmentKernel>(def(op), "T", kFloatTypes);
    registrar.Add<NumberedSegmentKernel>(
        def(op + "WithNumSegments")
            .TypeConstraint<int32_t, int64_t>("Tnumsegments")
            .HostMemory("num_segments"),
        "T", kFloatTypes);
    registrar.Add<SparseSegmentGradKernel>(
        def(op + "Grad").HostMemory("output_dim0"), "T", kFloatTypes);
    registrar.Add<SparseSegmentGradV2Kernel>(
        def(op + "GradV2").HostMemory("dense_output_dim0"), "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPARSE_SEGMENT_H_
