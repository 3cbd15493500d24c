// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_H_
#define TFPLUG_OP_KERNELS_SPARSE_H_

#include <string>
#include <utility>

#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops on sparse tensors: the coordinates of some elements, and their values.
namespace tfplug {
namespace op_kernels_internal {

// SparseToDense. Without validate_indices, coordinates out of range are ignored.
class SparseToDenseKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(validates_,
                            construction.GetAttr<bool>("validate_indices"));
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        first_fault_, primitives::MakeReduction(
                          ReduceKind::kMax, {kInt64, kInt64, kInt64}, kInt64,
                          [](Value at, Value before, Value number) {
                            const Value fault = number * -kFaults + kNoFault;
                            const Value order =
                                Select(at > before, at.Like(0), fault - kLess);
                            return Select(
                                at < 0, fault - kOutside,
                                Select(at == before, fault - kEqual, order));
                          },
                          kInt64));
    return absl::OkStatus();
  }

  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    constexpr DataType kInt64 = DataType::kInt64;
    Shape shape;
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, Read(run, shape));
    const int64_t n = indices.dim(0);
    if (!validates_ || n == 0) return run.launcher().Allocate(kInt64, {0});
    TFPLUG_ASSIGN_OR_RETURN(const Operand at, At(run, indices, shape));
    // -1, the places, and the fault.
    TFPLUG_ASSIGN_OR_RETURN(const Operand all,
                            run.launcher().Allocate(kInt64, {n + 2}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, ir::Range(all, 0, 0, 1), -1));
    TFPLUG_RETURN_IF_ERROR(Copy(run, at, Places(all)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ones,
                            run.launcher().Allocate(kInt64, {n}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand numbers,
                            run.launcher().Allocate(kInt64, {n}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, ones, 1));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scan(ReduceKind::kSum, ones, numbers));
    Operand fault = ir::Range(all, 0, n + 1, n + 2);
    fault.rank = 0;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        first_fault_, {at, ir::Range(all, 0, 0, n), numbers}, {fault}));
    return all;
  }

  absl::Status End(OpRun& run, const Operand& all,
                   absl::Span<const int64_t> numbers) const override {
    Shape shape;
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, Read(run, shape));
    if (numbers[0] != 0) {
      const int64_t fault = kNoFault - numbers[0];
      const std::string index =
          absl::StrCat("indices[", fault / kFaults - 1, "]");
      switch (fault % kFaults) {
        case kOutside:
          return absl::InvalidArgumentError(index + " is out of bounds of " +
                                            shape.ToString());
        case kEqual:
          return absl::InvalidArgumentError(index + " is repeated");
        default:
          return absl::InvalidArgumentError(
              index +
              " is out of order. Many sparse ops require sorted indices. Use "
              "`tf.sparse.reorder` to create a correctly ordered copy.");
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand rest, GetView(run, 3));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(Copy(run, BroadcastTo(rest, shape), y));
    const int64_t n = indices.dim(0);
    if (n == 0 || y.num_elements() == 0) return absl::OkStatus();
    Operand at;
    if (validates_) {
      at = Places(all);
    } else {
      TFPLUG_ASSIGN_OR_RETURN(at, At(run, indices, shape));
    }
    return MoveParts(BroadcastTo(values, {n}), ir::Flat(y),
                     [&](const Operand& from, const Operand& to) {
                       return run.launcher().Scatter(ScatterKind::kSet, at,
                                                     from, to);
                     });
  }

 private:
  // A fault of row k is read back as kNoFault - ((k + 1) * kFaults + its kind),
  // the largest of all rows; 0 if there is none.
  static constexpr int64_t kNoFault = int64_t{1} << 62, kFaults = 4;
  static constexpr int64_t kOutside = 0, kEqual = 1, kLess = 2;

  // Returns the part of Begin's result that has the place of each value.
  static Operand Places(const Operand& all) {
    return ir::Range(all, 0, 1, all.dim(0) - 1);
  }
  static absl::StatusOr<Operand> At(OpRun& run, const Operand& indices,
                                    const Shape& shape) {
    return FlattenIndices(run, indices, shape,
                          static_cast<int>(indices.dim(1)));
  }

  // Returns the indices as a matrix, and sets the shape of the output.
  static absl::StatusOr<Operand> Read(OpRun& run, Shape& output) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 0));
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
    TFPLUG_ASSIGN_OR_RETURN(output, ToShape(sizes));
    return Operand::Dense(indices.data, indices.type, {n, depth});
  }

  bool validates_ = true;
  Reduction first_fault_;
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
