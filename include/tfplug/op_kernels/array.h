// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ARRAY_H_
#define TFPLUG_OP_KERNELS_ARRAY_H_

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_join.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that copy elements in another order or repeat them: the output is a view
// of the input.
namespace tfplug {
namespace op_kernels_internal {

// Transpose and ConjugateTranspose.
class TransposeKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    conjugates_ = op == "ConjugateTranspose" && IsComplex(type);
    if (!conjugates_) return absl::OkStatus();
    const DataType part = PartType(type);
    TFPLUG_ASSIGN_OR_RETURN(
        conjugate_,
        MakeExpression({part, part}, {part, part}, [](Value re, Value im) {
          return std::array<Value, 2>{re, -im};
        }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const Ints perm, run.GetVector(1, "perm must be rank 1, got shape "));
    if (perm.size() != static_cast<size_t>(x.rank)) {
      return absl::InvalidArgumentError(
          "transpose expects a vector of size " + std::to_string(x.rank) +
          ". But input(1) is a vector of size " + std::to_string(perm.size()));
    }
    Operand from = x;
    from.rank = 0;
    uint64_t used = 0;
    for (int64_t p : perm) {
      if (p < -x.rank || p >= x.rank) {
        return absl::InvalidArgumentError(
            absl::StrCat(p, " is out of range [0 .. ", x.rank, ")"));
      }
      const auto d = static_cast<int>(p < 0 ? p + x.rank : p);
      used |= uint64_t{1} << d;
      from.AddDim(x.dim(d), x.stride(d));
    }
    for (int d = 0; d < x.rank; ++d) {
      if ((used >> d & 1) == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            d, " is missing from {", absl::StrJoin(perm, ","), "}"));
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(from)));
    if (!conjugates_) return Copy(run, from, y);
    return run.launcher().Map(conjugate_, {PartOf(from, 0), PartOf(from, 1)},
                              {PartOf(y, 0), PartOf(y, 1)});
  }

 private:
  bool conjugates_ = false;
  Expression conjugate_;
};

// Tile: the output as [copies, size, copies, size, ...]. Neighbors that are not
// repeated are one dimension. What is repeated in more dimensions than a view
// has is copied several times.
class TileKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const Ints multiples,
        run.GetVector(1, "Expected multiples to be 1-D, but got shape "));
    if (multiples.size() != static_cast<size_t>(x.rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Expected multiples argument to be a vector of length ",
                       x.rank, " but got length ", multiples.size()));
    }
    Shape shape;
    Ints repeated;  // dimensions
    for (int d = 0; d < x.rank; ++d) {
      const int64_t copies = multiples[static_cast<size_t>(d)];
      if (copies < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("Expected multiples[", d, "] >= 0, but got ", copies));
      }
      TFPLUG_ASSIGN_OR_RETURN(const int64_t size,
                              MultiplySizes(x.dim(d), copies));
      shape.add_dim(size);
      if (copies != 1) repeated.push_back(d);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    Operand from = x;
    // The last dimensions first: each pass then reads whole rows.
    while (repeated.size() > kPerPass) {
      Ints some(from.dims.begin(), from.dims.begin() + from.rank), ones(some);
      for (int64_t& copies : ones) copies = 1;
      for (size_t k = 0; k < kPerPass; ++k) {
        const auto d = static_cast<size_t>(repeated.back());
        repeated.pop_back();
        ones[d] = multiples[d];
        some[d] *= multiples[d];
      }
      TFPLUG_ASSIGN_OR_RETURN(const Operand next,
                              run.launcher().Allocate(x.type, some));
      TFPLUG_RETURN_IF_ERROR(CopyTiles(run, from, ones, next));
      from = next;
    }
    Ints rest(static_cast<size_t>(x.rank), 1);
    for (int64_t d : repeated) {
      rest[static_cast<size_t>(d)] = multiples[static_cast<size_t>(d)];
    }
    return CopyTiles(run, from, rest, y);
  }

 private:
  // With the dimensions before and after, they are at most a view's.
  static constexpr size_t kPerPass = (kMaxViewRank - 2) / 2;

  // Copies a dense view; at most kPerPass of the multiples are not 1.
  static absl::Status CopyTiles(OpRun& run, const Operand& x,
                                const Ints& multiples, const Operand& y) {
    Operand from = x;
    from.rank = 0;
    bool is_after_size = false;
    for (int d = 0; d < x.rank; ++d) {
      const int64_t copies = multiples[static_cast<size_t>(d)];
      if (copies == 1 && x.dim(d) == 1) continue;
      if (copies == 1 && is_after_size) {
        from.dim(from.rank - 1) *= x.dim(d);
        from.stride(from.rank - 1) = x.stride(d);
        continue;
      }
      if (copies != 1) from.AddDim(copies, 0);
      is_after_size = x.dim(d) != 1;
      if (is_after_size) from.AddDim(x.dim(d), x.stride(d));
    }
    return Copy(run, from, Operand::Dense(y.data, y.type, ir::DimsOf(from)));
  }
};

class ReverseKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    // TensorFlow's CPU does not check the axes if there is nothing to do.
    if (x.rank == 0 || x.num_elements() == 0) return Copy(run, x, y);
    TFPLUG_ASSIGN_OR_RETURN(const Tensor axes_tensor, run.GetInput(1));
    if (axes_tensor.rank() != 1) {
      return absl::InvalidArgumentError("'dims' must be 1-dimension, not " +
                                        std::to_string(axes_tensor.rank()));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetVector(1));
    uint64_t used = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i];
      if (axis < -x.rank || axis >= x.rank) {
        return absl::InvalidArgumentError(
            "'axis'[" + std::to_string(i) + "] = " + std::to_string(axis) +
            " is out of valid range [0, " + std::to_string(x.rank - 1) + "]");
      }
      const auto d = static_cast<int>(axis < 0 ? axis + x.rank : axis);
      if ((used >> d & 1) != 0) {
        return absl::InvalidArgumentError("axis " + std::to_string(d) +
                                          " specified more than once.");
      }
      used |= uint64_t{1} << d;
      if (x.dim(d) > 0) x.Advance((x.dim(d) - 1) * x.stride(d));
      x.stride(d) = -x.stride(d);
    }
    return Copy(run, x, y);
  }
};

class BroadcastToKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 1));
    Shape both = ShapeOf(x);
    TFPLUG_RETURN_IF_ERROR(BroadcastShape(shape, &both));
    if (both != shape) {
      return absl::InvalidArgumentError(
          "Unable to broadcast tensor of shape " + ShapeOf(x).ToString() +
          " to tensor of shape " + shape.ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    return Copy(run, BroadcastTo(x, shape), y);
  }
};

// Roll: shifts elements, and moves those past the end to the beginning.
class RollKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints shifts, run.GetInts(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(2));
    if (x.rank < 1) {
      return absl::InvalidArgumentError("input must be 1-D or higher");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Tensor shift_tensor, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor axis_tensor, run.GetInput(2));
    for (const auto& [name, tensor] :
         {std::pair<const char*, const Tensor&>{"shift", shift_tensor},
          {"axis", axis_tensor}}) {
      if (tensor.rank() <= 1) continue;
      return absl::InvalidArgumentError(
          std::string(name) + " must be a scalar or a 1-D vector. Found: " +
          tensor.shape().ToString());
    }
    if (shift_tensor.shape() != axis_tensor.shape()) {
      return absl::InvalidArgumentError(
          "shift and axis must have the same size: " +
          shift_tensor.shape().ToString() + " and " +
          axis_tensor.shape().ToString());
    }
    Ints shift(static_cast<size_t>(x.rank), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] < -x.rank || axes[i] >= x.rank) {
        return absl::InvalidArgumentError("axis " + std::to_string(axes[i]) +
                                          " is out of range");
      }
      const auto d = static_cast<int>(axes[i] < 0 ? axes[i] + x.rank : axes[i]);
      const int64_t size = std::max<int64_t>(x.dim(d), 1);
      int64_t& sum = shift[static_cast<size_t>(d)];
      sum = (sum + shifts[i] % size + size) % size;
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    if (x.num_elements() == 0) return absl::OkStatus();
    return CopyParts(run, shift, 0, x, y);
  }

 private:
  // Copies both parts of each dimension from `d` on.
  static absl::Status CopyParts(OpRun& run, const Ints& shift, int d,
                                const Operand& x, const Operand& y) {
    while (d < x.rank && shift[static_cast<size_t>(d)] == 0) ++d;
    if (d == x.rank) return Copy(run, x, y);
    const int64_t size = x.dim(d), moved = shift[static_cast<size_t>(d)];
    TFPLUG_RETURN_IF_ERROR(CopyParts(run, shift, d + 1,
                                     ir::Range(x, d, 0, size - moved),
                                     ir::Range(y, d, moved, size)));
    return CopyParts(run, shift, d + 1, ir::Range(x, d, size - moved, size),
                     ir::Range(y, d, 0, moved));
  }
};

}  // namespace op_kernels_internal

inline void ArrayOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"Transpose", "ConjugateTranspose"}) {
    registrar.Add<TransposeKernel>(KernelDef(op).HostMemory("perm"), "T",
                                   kCopiedTypes);
  }
  registrar.Add<TileKernel>(KernelDef("Tile").HostMemory("multiples"), "T",
                            kCopiedTypes);
  registrar.Add<ReverseKernel>(KernelDef("ReverseV2").HostMemory("axis"), "T",
                               kCopiedTypes);
  registrar.Add<BroadcastToKernel>(KernelDef("BroadcastTo").HostMemory("shape"),
                                   "T", kCopiedTypes);
  registrar.Add<RollKernel>(KernelDef("Roll")
                                .TypeConstraint<int32_t, int64_t>("Tshift")
                                .TypeConstraint<int32_t, int64_t>("Taxis")
                                .HostMemory("shift")
                                .HostMemory("axis"),
                            "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ARRAY_H_
