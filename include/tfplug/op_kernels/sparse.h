// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_H_
#define TFPLUG_OP_KERNELS_SPARSE_H_

#include <utility>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops on sparse tensors: the coordinates of some elements, and their values.
namespace tfplug {
namespace op_kernels_internal {

// SparseToDense. Coordinates out of range are ignored.
class SparseToDenseKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand indices, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand rest, GetView(run, 3));
    if (indices.rank > 2) {
      return absl::InvalidArgumentError(
          "sparse_indices should be a scalar, vector, or matrix, got shape " +
          ShapeOf(indices).ToString());
    }
    const int64_t n = indices.rank == 0 ? 1 : indices.dim(0);
    const int64_t depth = indices.rank < 2 ? 1 : indices.dim(1);
    TFPLUG_ASSIGN_OR_RETURN(
        const Ints sizes,
        run.GetVector(1, "output_shape must be rank 1, got shape "));
    if (static_cast<int64_t>(sizes.size()) != depth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output_shape has incorrect number of elements: ", sizes.size(),
          " should be: ", depth));
    }
    if (values.rank > 1 || (values.rank == 1 && values.dim(0) != n)) {
      return absl::InvalidArgumentError(
          "sparse_values has incorrect shape " + ShapeOf(values).ToString() +
          ", should be [] or [" + std::to_string(n) + "]");
    }
    if (rest.rank != 0) {
      return absl::InvalidArgumentError(
          "default_value should be a scalar. Found: " +
          ShapeOf(rest).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, ToShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(Copy(run, BroadcastTo(rest, shape), y));
    if (n == 0 || y.num_elements() == 0) return absl::OkStatus();
    indices = Operand::Dense(indices.data, indices.type, {n, depth});
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand at,
        FlattenIndices(run, indices, shape, static_cast<int>(depth)));
    return MoveParts(BroadcastTo(values, {n}), ir::Flat(y),
                     [&](const Operand& from, const Operand& to) {
                       return run.launcher().Scatter(ScatterKind::kSet, at,
                                                     from, to);
                     });
  }
};

// SparseTensorDenseMatMul: adds each element's multiple of a row of b.
class SparseMatMulKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(adjoint_a_,
                            construction.GetAttr<bool>("adjoint_a"));
    TFPLUG_ASSIGN_OR_RETURN(adjoint_b_,
                            construction.GetAttr<bool>("adjoint_b"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType index,
                            construction.GetAttr<DataType>("Tindices"));
    ExpressionBuilder builder;
    const Value at = Cast(builder.Input(index), DataType::kInt64);
    const Value a = builder.Input(type);
    builder.Output(a * builder.Element(builder.AxisInput(type), at),
                   ComputeType(type));
    TFPLUG_ASSIGN_OR_RETURN(multiply_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand a, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints a_shape, run.GetVector(2));
    TFPLUG_ASSIGN_OR_RETURN(Operand b, GetView(run, 3));
    const auto inner = static_cast<size_t>(adjoint_a_ ? 0 : 1);
    if (indices.rank != 2 || indices.dim(1) != 2 || a.rank != 1 ||
        a.dim(0) != indices.dim(0) || a_shape.size() != 2 || b.rank != 2 ||
        b.dim(adjoint_b_ ? 1 : 0) != a_shape[inner]) {
      return absl::InvalidArgumentError(
          "a_indices must be [values, 2], a_values a vector, and b a matrix "
          "whose size fits that of a: " +
          ShapeOf(indices).ToString() + ", " + ShapeOf(a).ToString() + ", " +
          ShapeOf(b).ToString());
    }
    if (adjoint_b_) b = ir::WithDimLast(b, 0);
    const int64_t n = a.dim(0), columns = b.dim(1);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand y, run.AllocateOutput(0, {a_shape[1 - inner], columns}));
    if (n == 0 || y.num_elements() == 0) return Fill(run, y, 0);
    TFPLUG_ASSIGN_OR_RETURN(const Operand sums, AllocateSums(run, y));
    TFPLUG_RETURN_IF_ERROR(Fill(run, sums, 0));
    const auto coordinate = [&](size_t k) {
      const auto column = static_cast<int64_t>(k);
      Operand view = ir::Range(indices, 1, column, column + 1);
      view.rank = 1;
      return view;
    };
    TFPLUG_ASSIGN_OR_RETURN(const Operand products,
                            run.launcher().Allocate(sums.type, {n, columns}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        multiply_,
        {ir::WithDim(coordinate(inner), 1, columns), ir::WithDim(a, 1, columns),
         ir::WithDim(ir::WithAxis(b, 0), 0, n)},
        {products}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(
        ScatterKind::kAdd, coordinate(1 - inner), products, sums));
    return Convert(run, sums, y);
  }

 private:
  bool adjoint_a_ = false, adjoint_b_ = false;
  Expression multiply_;
};

}  // namespace op_kernels_internal

inline void SparseOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::SparseToDenseKernel>(
      KernelDef("SparseToDense")
          .TypeConstraint<int32_t, int64_t>("Tindices")
          .HostMemory("output_shape"),
      "T", kCopiedTypes);
  registrar.Add<op_kernels_internal::SparseMatMulKernel>(
      KernelDef("SparseTensorDenseMatMul")
          .TypeConstraint<int32_t, int64_t>("Tindices")
          .HostMemory("a_shape"),
      "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPARSE_H_
