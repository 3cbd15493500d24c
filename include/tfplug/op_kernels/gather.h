// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_GATHER_H_
#define TFPLUG_OP_KERNELS_GATHER_H_

#include <string>
#include <utility>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/primitives/memo.h"

#pragma GCC visibility push(hidden)

// Ops that read elements at indices. An index out of range reads 0, as on
// TensorFlow's GPUs: a device cannot raise an error on the host.
namespace tfplug {
namespace op_kernels_internal {

// Returns the expression that reads an element of an axis at an index.
inline absl::StatusOr<const Expression*> GatherExpression(DataType index,
                                                          DataType element) {
  static primitives::Memo<Expression> memo;
  return memo.Get(primitives::KeyOf(index, element), [&] {
    ExpressionBuilder builder;
    const Value at = Cast(builder.Input(index), DataType::kInt64);
    builder.Output(builder.Element(builder.AxisInput(element), at), element);
    return std::move(builder).Build();
  });
}

// Reads elements of the axis of `from` at indices.
inline absl::Status GatherElements(OpRun& run, const Operand& at,
                                   const Operand& from, const Operand& to) {
  return MoveParts(from, to,
                   [&](const Operand& x, const Operand& y) -> absl::Status {
                     TFPLUG_ASSIGN_OR_RETURN(const Expression* const gather,
                                             GatherExpression(at.type, x.type));
                     return run.launcher().Map(*gather, {at, x}, {y});
                   });
}

class GatherKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    if (construction.HasAttr("batch_dims")) {
      TFPLUG_ASSIGN_OR_RETURN(batch_dims_,
                              construction.GetAttr<int32_t>("batch_dims"));
    }
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    int axis = 0;
    if (x.rank == 0) {
      return absl::InvalidArgumentError(
          "params must be at least 1 dimensional");
    }
    if (run.context().num_inputs() > 2) {
      TFPLUG_ASSIGN_OR_RETURN(const int64_t value,
                              run.GetScalar(2, "axis must be scalar, not "));
      const absl::StatusOr<int> valid = CheckAxis(value, x.rank);
      if (!valid.ok()) return RankError(value, x.rank);
      axis = *valid;
    }
    return Gather(run, x, axis);
  }

 protected:
  int64_t batch_dims() const { return batch_dims_; }

  // Gathers from x with input 1, the indices.
  absl::Status Gather(OpRun& run, const Operand& x, int axis) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    if (batch_dims_ < -indices.rank || batch_dims_ > indices.rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("Expected batch_dims in the range [", -indices.rank,
                       ", ", indices.rank, "], but got ", batch_dims_));
    }
    const auto batch = static_cast<int>(
        batch_dims_ < 0 ? batch_dims_ + indices.rank : batch_dims_);
    if (batch > axis) {
      return absl::InvalidArgumentError(
          absl::StrCat("batch_dims (", batch,
                       ") must be less than or equal to axis (", axis, ")."));
    }
    for (int d = 0; d < batch; ++d) {
      if (x.dim(d) != indices.dim(d)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "params.shape[", d, "] should be equal to indices.shape[", d, "]"));
      }
    }
    // [batch..., outer..., index..., inner...]
    Operand at = indices, from = ir::WithAxis(x, axis);
    const Operand elements = from;
    at.rank = from.rank = 0;
    const auto add = [&](int64_t size, int64_t at_stride, int64_t stride) {
      at.AddDim(size, at_stride);
      from.AddDim(size, stride);
    };
    for (int d = 0; d < axis; ++d) {
      add(x.dim(d), d < batch ? indices.stride(d) : 0, elements.stride(d));
    }
    for (int d = batch; d < indices.rank; ++d) {
      add(indices.dim(d), indices.stride(d), 0);
    }
    for (int d = axis; d < elements.rank; ++d) {
      add(elements.dim(d), 0, elements.stride(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(from)));
    return GatherElements(run, at, from, y);
  }

 private:
  int64_t batch_dims_ = 0;
};

// Computes the index of a slice among all slices of `shape`'s first `depth`
// dimensions, for the coordinates in the last dimension of `indices`: -1 if one
// is out of range. Returns a dense int64 view without that dimension.
inline absl::StatusOr<Operand> FlattenIndices(OpRun& run,
                                              const Operand& indices,
                                              const Shape& shape, int depth) {
  constexpr DataType kInt64 = DataType::kInt64;
  Operand first = indices;
  --first.rank;
  first.data = indices.data;
  ExpressionBuilder builder;
  absl::InlinedVector<Operand, 8> inputs;
  Value flat = builder.Constant(kInt64, int64_t{0});
  Value is_valid = builder.Constant(DataType::kBool, int64_t{1});
  for (int k = 0; k < depth; ++k) {
    const Value at = Cast(builder.Input(indices.type), kInt64);
    const Value size = builder.Input(kInt64);
    flat = flat * size + at;
    is_valid = is_valid & (at >= 0) & (at < size);
    Operand coordinate = first;
    inputs.push_back(coordinate.Advance(k * indices.stride(first.rank)));
    inputs.push_back(
        ir::ScalarOf(kInt64, static_cast<double>(shape.dim(k)), first));
  }
  builder.Output(Select(is_valid, flat, -1), kInt64);
  TFPLUG_ASSIGN_OR_RETURN(const Expression flatten, std::move(builder).Build());
  TFPLUG_ASSIGN_OR_RETURN(Operand result,
                          run.launcher().Allocate(kInt64, ir::DimsOf(first)));
  Operand out = result;
  TFPLUG_RETURN_IF_ERROR(run.launcher().Map(flatten, absl::MakeSpan(inputs),
                                            absl::MakeSpan(&out, 1)));
  return result;
}

// Returns the number of coordinates of each index.
inline absl::StatusOr<int> IndexDepth(const Operand& indices,
                                      const Shape& shape) {
  if (indices.rank < 1) {
    return absl::InvalidArgumentError("indices must be at least a vector");
  }
  const int64_t depth = indices.dim(indices.rank - 1);
  if (depth > shape.rank()) {
    return absl::InvalidArgumentError(
        "index innermost dimension length must be <= params rank; saw: " +
        std::to_string(depth) + " vs. " + std::to_string(shape.rank()));
  }
  return static_cast<int>(depth);
}

// Returns a dense view as [slices, elements of a slice].
inline Operand AsSlices(const Operand& view, int depth) {
  int64_t slices = 1, size = 1;
  for (int d = 0; d < view.rank; ++d)
    (d < depth ? slices : size) *= view.dim(d);
  return Operand::Dense(view.data, view.type, {slices, size});
}

class GatherNdKernel : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    return Gather(run, x);
  }

 protected:
  // Gathers from x with input 1, the indices.
  static absl::Status Gather(OpRun& run, const Operand& x) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    if (x.rank == 0) {
      return absl::InvalidArgumentError("params must be at least a vector");
    }
    TFPLUG_ASSIGN_OR_RETURN(const int depth, IndexDepth(indices, ShapeOf(x)));
    if (x.num_elements() == 0 && indices.num_elements() > 0) {
      return absl::InvalidArgumentError(
          "Requested more than 0 entries, but params is empty: " +
          ShapeOf(x).ToString());
    }
    Shape shape(
        ir::DimsOf(indices).first(static_cast<size_t>(indices.rank) - 1));
    for (int d = depth; d < x.rank; ++d) shape.add_dim(x.dim(d));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand at,
                            FlattenIndices(run, indices, ShapeOf(x), depth));
    const Operand slices = AsSlices(x, depth);
    const int64_t n = at.num_elements(), size = slices.dim(1);
    const Operand from = ir::WithDim(ir::WithAxis(slices, 0), 0, n);
    return GatherElements(run, ir::WithDim(ir::Flat(at), 1, size), from,
                          Operand::Dense(y.data, y.type, {n, size}));
  }
};

}  // namespace op_kernels_internal

inline void GatherOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const auto indexed = [](const char* op) {
    return KernelDef(op).TypeConstraint<int32_t, int64_t>("Tindices");
  };
  registrar.Add<GatherKernel>(indexed("Gather"), "Tparams", kCopiedTypes);
  registrar.Add<GatherKernel>(indexed("GatherV2")
                                  .TypeConstraint<int32_t, int64_t>("Taxis")
                                  .HostMemory("axis"),
                              "Tparams", kCopiedTypes);
  registrar.Add<GatherNdKernel>(indexed("GatherNd"), "Tparams", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_GATHER_H_
