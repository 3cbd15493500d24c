// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_UPDATE_SLICE_H_
#define TFPLUG_OP_KERNELS_UPDATE_SLICE_H_

#include <algorithm>
#include <string>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that replace a part of a tensor, in its own memory if nothing else uses
// it: the caches of transformers.
namespace tfplug {
namespace op_kernels_internal {

// Copies `x` to `y`, unless they are the same memory.
inline absl::Status CopyUnlessForwarded(OpRun& run, const Operand& x,
                                        const Operand& y) {
  return x.data == y.data ? absl::OkStatus() : Copy(run, x, y);
}

// Returns the slice of a tensor that begins at the indices, moved to the place
// next to it where the slice is inside of the tensor.
inline absl::StatusOr<Operand> SliceInside(const Operand& x,
                                           absl::Span<const int64_t> indices,
                                           absl::Span<const int64_t> sizes) {
  const auto rank = static_cast<size_t>(x.rank);
  if (indices.size() != rank || sizes.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the slice must have as many indices and sizes as the tensor ",
        ShapeOf(x).ToString(), " has dimensions, not ", indices.size(), " and ",
        sizes.size()));
  }
  Operand slice = x;
  for (int d = 0; d < x.rank; ++d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    if (size < 0 || size > x.dim(d)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Update dim size ", size, " greater than dynamic slice dimension: ",
          x.dim(d), ", or negative, in dimension ", d));
    }
    const int64_t begin = std::clamp<int64_t>(indices[static_cast<size_t>(d)],
                                              0, x.dim(d) - size);
    slice = ir::Range(slice, d, begin, begin + size);
  }
  return slice;
}

class DynamicUpdateSliceKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand update, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints indices, run.GetVector(2));
    TFPLUG_RETURN_IF_ERROR(
        SliceInside(x, indices, ir::DimsOf(update)).status());
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.ForwardOrAllocateOutput(0, {0}, ShapeOf(x)));
    TFPLUG_RETURN_IF_ERROR(CopyUnlessForwarded(run, x, y));
    TFPLUG_ASSIGN_OR_RETURN(const Operand slice,
                            SliceInside(y, indices, ir::DimsOf(update)));
    return Copy(run, update, slice);
  }
};

class DynamicSliceKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints indices, run.GetVector(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, run.GetVector(2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand slice,
                            SliceInside(x, indices, sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(slice)));
    return Copy(run, slice, y);
  }
};

// InplaceUpdate, InplaceAdd and InplaceSub, which change rows of their input x. A
// negative index counts from the end.
class InplaceKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    adds_ = op != "InplaceUpdate";
    if (!adds_) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(
        combine_, MakeExpression({type, type}, {type}, [&](Value x, Value v) {
          return op == "InplaceAdd" ? x + v : x - v;
        }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand v, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor index_tensor, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints rows, run.GetInts(1));
    TFPLUG_RETURN_IF_ERROR(Check(ShapeOf(x), index_tensor.shape(), ShapeOf(v)));
    // TensorFlow's kernels write into x, too, whoever else uses it.
    TFPLUG_ASSIGN_OR_RETURN(const Tensor changed, run.context().GetInput(0));
    TFPLUG_RETURN_IF_ERROR(run.context().SetOutput(0, changed));
    if (x.num_elements() == 0) return absl::OkStatus();
    const Operand& y = x;
    for (size_t k = 0; k < rows.size(); ++k) {
      const int64_t size = y.dim(0), row = (rows[k] % size + size) % size;
      const auto from = static_cast<int64_t>(k);
      const Operand to = ir::Range(y, 0, row, row + 1);
      const Operand value = ir::Range(v, 0, from, from + 1);
      TFPLUG_RETURN_IF_ERROR(
          adds_ ? run.launcher().Map(combine_, {to, value}, {to})
                : Copy(run, value, to));
    }
    return absl::OkStatus();
  }

 private:
  // Checks that v has a row of x for each index. Begins with TensorFlow's words.
  static absl::Status Check(const Shape& x, const Shape& i, const Shape& v) {
    std::string problem;
    if (i.rank() != 1) {
      problem = "i must be a vector";
    } else if (x.rank() == 0 || x.rank() != v.rank()) {
      problem = "x and v shape doesn't match (ranks differ)";
    } else if (i.dim(0) != v.dim(0)) {
      problem = "i and x shape doesn't match at index 0";
    }
    for (int d = 1; problem.empty() && d < x.rank(); ++d) {
      if (x.dim(d) == v.dim(d)) continue;
      problem = "x and v shape doesn't match at index " + std::to_string(d);
    }
    if (problem.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(problem + ": x is " + x.ToString() +
                                      ", i is " + i.ToString() + ", v is " +
                                      v.ToString());
  }

  bool adds_ = false;
  Expression combine_;
};

// The ops into which TensorFlow turns tf.parallel_stack: the first allocates the
// stack, and each of the others writes a row into its memory and returns it.
// Readers of the stack wait for all of them.
class ParallelConcatStartKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(shape_, construction.GetAttr<Shape>("shape"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    return run.AllocateOutput(0, shape_).status();
  }

 private:
  Shape shape_;
};

class ParallelConcatUpdateKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(row_, construction.GetAttr<int64_t>("loc"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand row, GetView(run, 1));
    Shape expected = ShapeOf(x);
    if (expected.rank() > 0) expected.set_dim(0, 1);
    if (x.rank == 0 || ShapeOf(row) != expected) {
      return absl::InvalidArgumentError(
          "value and update shape doesn't match: the tensor is " +
          ShapeOf(x).ToString() + ", and its new row " +
          ShapeOf(row).ToString());
    }
    if (row_ < 0 || row_ >= x.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "loc is ", row_, ", and the tensor has ", x.dim(0), " rows"));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Tensor changed, run.context().GetInput(0));
    TFPLUG_RETURN_IF_ERROR(run.context().SetOutput(0, changed));
    if (row.num_elements() == 0) return absl::OkStatus();
    return Copy(run, row, ir::Range(x, 0, row_, row_ + 1));
  }

 private:
  int64_t row_ = 0;
};

}  // namespace op_kernels_internal

inline void UpdateSliceOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<DynamicUpdateSliceKernel>(
      KernelDef("XlaDynamicUpdateSlice")
          .TypeConstraint<int32_t, int64_t>("Tindices")
          .HostMemory("indices"),
      "T", kCopiedTypes);
  registrar.Add<DynamicSliceKernel>(
      KernelDef("XlaDynamicSlice")
          .TypeConstraint<int32_t, int64_t>("Tindices")
          .HostMemory("start_indices")
          .HostMemory("size_indices"),
      "T", kCopiedTypes);
  // TensorFlow's own kernels for all devices have int32, in host memory.
  registrar.Add<ParallelConcatStartKernel>(KernelDef("_ParallelConcatStart"),
                                           "dtype", kCopiedTypes & ~kInt32Type);
  registrar.Add<ParallelConcatUpdateKernel>(KernelDef("_ParallelConcatUpdate"),
                                            "T", kCopiedTypes & ~kInt32Type);
  registrar.Add<InplaceKernel>(KernelDef("InplaceUpdate").HostMemory("i"), "T",
                               kCopiedTypes & ~kInt32Type);
  for (const char* op : {"InplaceAdd", "InplaceSub"}) {
    registrar.Add<InplaceKernel>(KernelDef(op).HostMemory("i"), "T",
                                 kNumberTypes & ~kInt32Type);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_UPDATE_SLICE_H_
