// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_PAD_H_
#define TFPLUG_OP_KERNELS_PAD_H_

#include <string>
#include <utility>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Pad, PadV2 and MirrorPad.
namespace tfplug {
namespace op_kernels_internal {

// The sizes that Pad and MirrorPad add before and after each dimension.
class Paddings {
 public:
  static absl::StatusOr<Paddings> Get(OpRun& run, const Operand& x) {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor paddings, run.GetInput(1));
    if (paddings.rank() != 2 || paddings.dim(1) != 2) {
      return absl::InvalidArgumentError(
          "paddings must be a matrix with 2 columns: " +
          paddings.shape().ToString());
    }
    if (paddings.dim(0) != x.rank) {
      return absl::InvalidArgumentError(
          "The first dimension of paddings must be the rank of inputs" +
          paddings.shape().ToString() + " " + ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(Ints sizes, run.GetInts(1));
    return Paddings(std::move(sizes));
  }

  std::pair<int64_t, int64_t> operator[](int d) const {
    const size_t i = 2 * static_cast<size_t>(d);
    return {sizes_[i], sizes_[i + 1]};
  }
  // Returns INVALID_ARGUMENT if more elements are to be mirrored at an end of
  // dimension `d` than its size or, without the edge, one less.
  absl::Status CheckMirror(int d, int64_t size, bool without_edge) const {
    const auto [before, after] = (*this)[d];
    const std::string both =
        std::to_string(before) + ", " + std::to_string(after);
    if (before < 0 || after < 0) {
      return absl::InvalidArgumentError("paddings must be non-negative: " +
                                        both);
    }
    const int64_t limit = without_edge ? size - 1 : size;
    if (before <= limit && after <= limit) return absl::OkStatus();
    return absl::InvalidArgumentError(
        without_edge
            ? "paddings must be less than the dimension size: " + both +
                  " not less than " + std::to_string(size)
            : "paddings must be no greater than the dimension size: " + both +
                  " greater than " + std::to_string(size));
  }
  // Returns the size of dimension `d`, which has `size` elements, with its
  // padding, which is not negative.
  absl::StatusOr<int64_t> Padded(int d, int64_t size) const {
    const auto [before, after] = (*this)[d];
    if (!__builtin_add_overflow(size, before, &size) &&
        !__builtin_add_overflow(size, after, &size)) {
      return size;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Padded size of dimension ", d,
                     " overflows: paddings are ", before, ", ", after));
  }
  // Returns the part of `y` that has the dimensions of `x`.
  Operand Inside(Operand y, const Operand& x) const {
    for (int d = 0; d < x.rank; ++d) {
      const int64_t before = (*this)[d].first;
      y = ir::Range(y, d, before, before + x.dim(d));
    }
    return y;
  }

 private:
  explicit Paddings(Ints sizes) : sizes_(std::move(sizes)) {}
  Ints sizes_;
};

// Pad and PadV2.
class PadKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Paddings paddings, Paddings::Get(run, x));
    Shape shape;
    for (int d = 0; d < x.rank; ++d) {
      const auto [before, after] = paddings[d];
      if (before < 0 || after < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Paddings must be non-negative: ", before, " ", after));
      }
      TFPLUG_ASSIGN_OR_RETURN(const int64_t size, paddings.Padded(d, x.dim(d)));
      shape.add_dim(size);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (run.context().num_inputs() > 2) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand value, GetView(run, 2));
      if (value.rank != 0) {
        return absl::InvalidArgumentError(
            "constant_values must be a scalar. Found: " +
            ShapeOf(value).ToString());
      }
      TFPLUG_RETURN_IF_ERROR(Copy(run, BroadcastTo(value, shape), y));
    } else {
      TFPLUG_RETURN_IF_ERROR(Fill(run, y, 0));
    }
    return Copy(run, x, paddings.Inside(y, x));
  }
};

// MirrorPad: copies the input, then mirrors one dimension after the other.
class MirrorPadKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string mode,
                            construction.GetAttr<std::string>("mode"));
    edge_ = mode == "REFLECT" ? 1 : 0;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Paddings paddings, Paddings::Get(run, x));
    Shape shape;
    for (int d = 0; d < x.rank; ++d) {
      TFPLUG_RETURN_IF_ERROR(paddings.CheckMirror(d, x.dim(d), edge_ != 0));
      TFPLUG_ASSIGN_OR_RETURN(const int64_t size, paddings.Padded(d, x.dim(d)));
      shape.add_dim(size);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    Operand inside = paddings.Inside(y, x);
    TFPLUG_RETURN_IF_ERROR(Copy(run, x, inside));
    for (int d = 0; d < x.rank; ++d) {
      const auto [before, after] = paddings[d];
      // Copies the mirror image of `size` elements from `first` on, counted
      // from the inside, which is complete in the earlier dimensions.
      const auto mirror = [&](int64_t first, int64_t size, int64_t to) {
        Operand from = inside, at = inside;
        from.Advance((first + size - 1) * y.stride(d));
        from.stride(d) = -y.stride(d);
        at.Advance(to * y.stride(d));
        from.dim(d) = at.dim(d) = size;
        return Copy(run, from, at);
      };
      if (before > 0) TFPLUG_RETURN_IF_ERROR(mirror(edge_, before, -before));
      if (after > 0) {
        const int64_t size = x.dim(d);
        TFPLUG_RETURN_IF_ERROR(mirror(size - edge_ - after, after, size));
      }
      inside.Advance(-before * y.stride(d));
      inside.dim(d) = y.dim(d);
    }
    return absl::OkStatus();
  }

 private:
  int64_t edge_ = 0;  // 1: the edge itself is not repeated
};

// MirrorPadGrad: adds each mirrored element to its origin, in one dimension
// after the other, from the last one on.
class MirrorPadGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string mode,
                            construction.GetAttr<std::string>("mode"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    edge_ = mode == "REFLECT" ? 1 : 0;
    TFPLUG_ASSIGN_OR_RETURN(
        add_, MakeExpression({ComputeType(type), ComputeType(type)},
                             {ComputeType(type)},
                             [](Value a, Value b) { return a + b; }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Paddings paddings, Paddings::Get(run, dy));
    Shape shape;
    for (int d = 0; d < dy.rank; ++d) {
      const auto [before, after] = paddings[d];
      if (before < 0 || after < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Paddings must be non-negative: ", before, ", ", after));
      }
      const int64_t size = dy.dim(d) - before - after;
      if (before > dy.dim(d) || after > dy.dim(d) || size <= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Total paddings must be less than the input dimension size: ",
            before, " + ", after, " was not less than ", dy.dim(d)));
      }
      TFPLUG_RETURN_IF_ERROR(paddings.CheckMirror(d, size, edge_ != 0));
      shape.add_dim(size);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(
        Operand sum,
        run.launcher().Allocate(ComputeType(dy.type), ir::DimsOf(dy)));
    TFPLUG_RETURN_IF_ERROR(Convert(run, dy, sum));
    for (int d = dy.rank; d-- > 0;) {
      const auto [before, after] = paddings[d];
      const int64_t end = before + shape.dim(d);
      const auto add = [&](int64_t first, int64_t size, int64_t to) {
        const Operand at = ir::Range(sum, d, to, to + size);
        const Operand mirrored =
            ir::Reversed(ir::Range(sum, d, first, first + size), d, d + 1);
        return run.launcher().Map(add_, {at, mirrored}, {at});
      };
      if (before > 0) TFPLUG_RETURN_IF_ERROR(add(0, before, before + edge_));
      if (after > 0) {
        TFPLUG_RETURN_IF_ERROR(add(end, after, end - edge_ - after));
      }
      sum = ir::Range(sum, d, before, end);
    }
    return Convert(run, sum, dx);
  }

 private:
  int64_t edge_ = 0;
  Expression add_;
};

}  // namespace op_kernels_internal

inline void PadOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<PadKernel>(KernelDef("Pad").HostMemory("paddings"), "T",
                           kCopiedTypes);
  registrar.Add<PadKernel>(KernelDef("PadV2").HostMemory("paddings"), "T",
                           kCopiedTypes);
  registrar.Add<MirrorPadGradKernel>(
      KernelDef("MirrorPadGrad").HostMemory("paddings"), "T", kFloatTypes);
  registrar.Add<MirrorPadKernel>(KernelDef("MirrorPad").HostMemory("paddings"),
                                 "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_PAD_H_
