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
      return absl::InvalidArgumentError("the axis must be a scalar");
    }
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axes[0], like.rank));
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
    // TensorFlow's CPU accepts the axis of SplitV as a vector of one element.
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(has_sizes_ ? 2 : 0));
    if (!has_sizes_) TFPLUG_RETURN_IF_ERROR(run.GetScalar(0).status());
    if (axes.size() != 1) {
      return absl::InvalidArgumentError("split_dim must be a scalar");
    }
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axes[0], x.rank));
    const int64_t size = x.dim(axis);
    Ints sizes(static_cast<size_t>(n), size / n);
    if (has_sizes_) {
      TFPLUG_ASSIGN_OR_RETURN(sizes, run.GetVector(1));
    } else if (size % n != 0) {
      return absl::InvalidArgumentError(
          "Number of ways to split should evenly divide the split dimension, "
          "but got split_dim " +
          std::to_string(axis) + " (size = " + std::to_string(size) +
          ") and num_split " + std::to_string(n));
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
    int64_t sum = 0;
    int64_t* unknown = nullptr;
    // TensorFlow's CPU accepts no -1 as the only size.
    bool is_valid =
        sizes.size() == static_cast<size_t>(n) && (n > 1 || sizes[0] >= 0);
    for (int64_t& part : sizes) {
      if (part == -1 && unknown == nullptr) {
        unknown = &part;
      } else {
        is_valid = is_valid && part >= 0;
        sum += part;
      }
    }
    if (unknown != nullptr) {
      *unknown = size - sum;
      is_valid = is_valid && *unknown >= 0;
    } else {
      is_valid = is_valid && sum == size;
    }
    if (is_valid) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the sizes of a split must be " + std::to_string(n) +
        " non-negative numbers, of which one may be -1, with the sum " +
        std::to_string(size));
  }

  bool has_sizes_ = false;
};

// Pack: copies each input to one index of a new dimension.
class PackKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int64_t>("axis"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_inputs();
    TFPLUG_ASSIGN_OR_RETURN(const Operand like, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, like.rank + 1));
    const Shape shape = ShapeOf(ir::WithDim(like, axis, n));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
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
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int64_t>("axis"));
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
