// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CONCAT_H_
#define TFPLUG_OP_KERNELS_CONCAT_H_

#include <algorithm>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that join tensors or split one: each input, or each output, is a range of
// the whole.
namespace tfplug {
namespace op_kernels_internal {

// Concat and ConcatV2: copies each input to a range of the output.
class ConcatKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_first_ = op == "Concat";
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_inputs() - 1;
    const int first = is_first_ ? 1 : 0;
    TFPLUG_ASSIGN_OR_RETURN(const Operand like, GetView(run, first));
    // TensorFlow's CPU accepts a vector of one element, too.
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(is_first_ ? 0 : n));
    if (axes.size() != 1) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor,
                              run.GetInput(is_first_ ? 0 : n));
      return absl::InvalidArgumentError(
          (is_first_ ? "concat_dim" : "axis") +
          std::string(" tensor should be a scalar integer, but got shape ") +
          tensor.shape().ToString());
    }
    if (like.rank == 0 && axes[0] == 0) {
      return absl::InvalidArgumentError(
          "ConcatOp : Can't concatenate scalars (use tf.stack instead)");
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const int axis,
        CheckAxis(
            axes[0], like.rank,
            "ConcatOp : Expected concatenating dimensions in the range "));
    int64_t size = 0;
    for (int i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, first + i));
      for (int d = 0; d < std::max(x.rank, like.rank); ++d) {
        if (x.rank != like.rank || (d != axis && x.dim(d) != like.dim(d))) {
          return absl::InvalidArgumentError(
              "ConcatOp : Dimension " + std::to_string(d) +
              " in both shapes must be equal: shape[0] = " +
              ShapeOf(like).ToString() + " vs. shape[" + std::to_string(i) +
              "] = " + ShapeOf(x).ToString());
        }
      }
      size += x.dim(axis);
    }
    Shape shape = ShapeOf(like);
    shape.set_dim(axis, size);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    int64_t at = 0;
    for (int i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, first + i));
      const int64_t end = at + x.dim(axis);
      TFPLUG_RETURN_IF_ERROR(Copy(run, x, ir::Range(y, axis, at, end)));
      at = end;
    }
    return absl::OkStatus();
  }

 private:
  bool is_first_ = false;  // the axis is the first input
};

// Split and SplitV: copies a range of the input to each output.
class SplitKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    has_sizes_ = op == "SplitV";
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_outputs();
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, has_sizes_ ? 0 : 1));
    const int at_axis = has_sizes_ ? 2 : 0;
    TFPLUG_ASSIGN_OR_RETURN(const Tensor axis_tensor, run.GetInput(at_axis));
    if (!has_sizes_ && axis_tensor.rank() != 0) {
      return absl::InvalidArgumentError(
          "split_dim must be a scalar but has rank " +
          std::to_string(axis_tensor.rank()));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(at_axis));
    // TensorFlow's CPU accepts the axis of SplitV as a vector of one element.
    if (axes.size() != 1) {
      return absl::InvalidArgumentError(
          "split_dim_tensor must have exactly one element.");
    }
    if (has_sizes_) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor sizes_tensor, run.GetInput(1));
      if (sizes_tensor.rank() != 1 || sizes_tensor.dim(0) != n) {
        return absl::InvalidArgumentError(
            "size of the split_tensor must be 1-D and have the same elements "
            "as outputs got " +
            std::to_string(sizes_tensor.rank()) + " -D and " +
            std::to_string(sizes_tensor.num_elements()) + " elements");
      }
    }
    if (axes[0] < -x.rank || axes[0] >= x.rank) {
      const std::string rank = std::to_string(x.rank);
      return absl::InvalidArgumentError(
          "-input rank(-" + rank + ") <= split_dim < input rank (" + rank +
          "), but got " + std::to_string(axes[0]));
    }
    const auto axis =
        static_cast<int>(axes[0] < 0 ? axes[0] + x.rank : axes[0]);
    const int64_t size = x.dim(axis);
    Ints sizes(static_cast<size_t>(n), size / n);
    if (has_sizes_) {
      TFPLUG_ASSIGN_OR_RETURN(sizes, run.GetVector(1));
    } else if (size % n != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Number of ways to split should evenly divide the split dimension, "
          "but got split_dim ",
          axis, " (size = ", size, ") and num_split ", n));
    }
    TFPLUG_RETURN_IF_ERROR(CompleteSizes(size, n, sizes));
    int64_t at = 0;
    for (int i = 0; i < n; ++i) {
      const int64_t end = at + sizes[static_cast<size_t>(i)];
      const Operand part = ir::Range(x, axis, at, end);
      TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                              run.AllocateOutput(i, ShapeOf(part)));
      TFPLUG_RETURN_IF_ERROR(Copy(run, part, y));
      at = end;
    }
    return absl::OkStatus();
  }

 private:
  // Computes the size that is -1, if there is one.
  static absl::Status CompleteSizes(int64_t size, int n, Ints& sizes) {
    int64_t rest = size;  // negative if the sizes are too large
    int64_t* unknown = nullptr;
    for (size_t i = 0; i < sizes.size(); ++i) {
      // TensorFlow's CPU accepts no -1 as the only size.
      if (sizes[i] == -1 && unknown == nullptr && n > 1) {
        unknown = &sizes[i];
        continue;
      }
      if (sizes[i] == -1 && unknown != nullptr) {
        return absl::InvalidArgumentError(
            "There can only be one -1 in the input.");
      }
      if (sizes[i] < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Split size at index ", i, " must be >= 0. Got: ", sizes[i]));
      }
      if (rest >= 0) rest -= sizes[i];
    }
    if (unknown != nullptr ? rest < 0 : rest != 0) {
      return absl::InvalidArgumentError(
          "Determined shape must either match input shape along split_dim "
          "exactly if fully specified, or be less than the size of the input "
          "along split_dim if not fully specified.  Got: sizes that exceed or "
          "miss " +
          std::to_string(size));
    }
    if (unknown != nullptr) *unknown = rest;
    return absl::OkStatus();
  }

  bool has_sizes_ = false;
};

// Pack: copies each input to one index of a new dimension.
class PackKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int32_t>("axis"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_inputs();
    TFPLUG_ASSIGN_OR_RETURN(const Operand like, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, like.rank + 1));
    const Operand wanted = ir::WithDim(like, axis, n);
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(wanted));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(wanted)));
    for (int i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, i));
      if (ShapeOf(x) != ShapeOf(like)) {
        return absl::InvalidArgumentError(
            "Shapes of all inputs must match: values[0].shape = " +
            ShapeOf(like).ToString() + " != values[" + std::to_string(i) +
            "].shape = " + ShapeOf(x).ToString());
      }
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, ir::WithDim(x, axis, 1), ir::Range(y, axis, i, i + 1)));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

class UnpackKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int32_t>("axis"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_outputs();
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, x.rank));
    if (x.dim(axis) != n) {
      return absl::InvalidArgumentError(
          "Input shape axis " + std::to_string(axis) + " must equal " +
          std::to_string(n) + ", got shape " + ShapeOf(x).ToString());
    }
    for (int i = 0; i < n; ++i) {
      Operand part = ir::WithDimLast(ir::Range(x, axis, i, i + 1), axis);
      --part.rank;
      TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                              run.AllocateOutput(i, ShapeOf(part)));
      TFPLUG_RETURN_IF_ERROR(Copy(run, part, y));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

}  // namespace op_kernels_internal

inline void ConcatOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  UseHostBackend();
  const uint64_t without_int32 = kCopiedTypes & ~kInt32Type;
  registrar.Add<ConcatKernel>(KernelDef("ConcatV2").HostMemory("axis"), "T",
                              without_int32);
  registrar.Add<ConcatKernel>(KernelDef("Concat").HostMemory("concat_dim"), "T",
                              without_int32);
  registrar.Add<SplitKernel>(KernelDef("Split").HostMemory("split_dim"), "T",
                             kCopiedTypes);
  registrar.Add<SplitKernel>(
      KernelDef("SplitV").HostMemory("size_splits").HostMemory("split_dim"),
      "T", kCopiedTypes);
  registrar.Add<PackKernel>(KernelDef("Pack"), "T", without_int32);
  registrar.Add<OnHost<PackKernel>>(
      KernelDef("Pack").HostMemory("values").HostMemory("output"), "T",
      kInt32Type);
  registrar.Add<UnpackKernel>(KernelDef("Unpack"), "T",
                              without_int32 & ~kernel::SetOf(DataType::kInt64));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CONCAT_H_
