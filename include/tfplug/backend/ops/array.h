// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_ARRAY_H_
#define TFPLUG_BACKEND_OPS_ARRAY_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/backend/internal/host_backend.h"
#include "tfplug/backend/ops/elementwise.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/ops/slice_spec.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that copy elements: each output, or part of one, is a view of an input.
namespace tfplug {
namespace internal {

class TransposeKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints perm, run.GetInts(1));
    if (perm.size() != static_cast<size_t>(x.rank)) {
      return absl::InvalidArgumentError(
          "transpose expects a vector of size " + std::to_string(x.rank) +
          ". But input(1) is a vector of size " + std::to_string(perm.size()));
    }
    Operand from = x;
    from.rank = 0;
    uint64_t used = 0;
    for (int64_t p : perm) {
      TFPLUG_ASSIGN_OR_RETURN(const int d, CheckAxis(p, x.rank));
      if ((used >> d & 1) != 0) {
        return absl::InvalidArgumentError(
            std::to_string(d) + " is repeated in the permutation of transpose");
      }
      used |= uint64_t{1} << d;
      from.AddDim(x.dim(d), x.stride(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(from)));
    return Copy(run, from, y);
  }
};

class SliceKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints begin, run.GetInts(1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetInts(2));
    const auto rank = static_cast<size_t>(x.rank);
    if (begin.size() != rank || size.size() != rank) {
      return absl::InvalidArgumentError(
          "Expected begin and size arguments to be 1-D tensors of size " +
          std::to_string(rank) + ", but got sizes " +
          std::to_string(begin.size()) + " and " + std::to_string(size.size()));
    }
    for (int d = 0; d < x.rank; ++d) {
      const int64_t first = begin[static_cast<size_t>(d)];
      int64_t count = size[static_cast<size_t>(d)];
      if (count == -1) count = x.dim(d) - first;
      if (first < 0 || count < 0 || first > x.dim(d) ||
          count > x.dim(d) - first) {
        return absl::InvalidArgumentError(
            "Expected begin[" + std::to_string(d) + "] in [0, " +
            std::to_string(x.dim(d)) + "] and a size within it, but got " +
            std::to_string(first) + " and " + std::to_string(count));
      }
      x = Range(x, d, first, first + count);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return Copy(run, x, y);
  }
};

class StridedSliceKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return spec_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const SliceView slice, spec_.Apply(run, 1, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, slice.shape));
    return Copy(run, slice.view, Reshaped(y, slice.view));
  }

  // Returns a dense view with the dimensions of `like`, which has as many
  // elements.
  static Operand Reshaped(const Operand& view, const Operand& like) {
    return Operand::Dense(view.data, view.type, DimsOf(like));
  }

 private:
  SliceSpec spec_;
};

// StridedSliceGrad: zeros, and the gradient in the place of the slice.
class StridedSliceGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    return spec_.Init(construction);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 4));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const SliceView slice, spec_.Apply(run, 1, dx));
    if (slice.shape != ShapeOf(dy)) {
      return absl::InvalidArgumentError(
          "shape of dy was " + ShapeOf(dy).ToString() + " instead of " +
          slice.shape.ToString());
    }
    TFPLUG_RETURN_IF_ERROR(Fill(run, dx, 0));
    return Copy(run, StridedSliceKernel::Reshaped(dy, slice.view), slice.view);
  }

 private:
  SliceSpec spec_;
};

// The sizes that Pad and MirrorPad add before and after each dimension.
class Paddings {
 public:
  static absl::StatusOr<Paddings> Get(OpRun& run, const Operand& x) {
    TFPLUG_ASSIGN_OR_RETURN(Ints sizes, run.GetInts(1));
    if (sizes.size() != 2 * static_cast<size_t>(x.rank)) {
      return absl::InvalidArgumentError(
          "The first dimension of paddings must be the rank of inputs, " +
          ShapeOf(x).ToString());
    }
    return Paddings(std::move(sizes));
  }

  std::pair<int64_t, int64_t> operator[](int d) const {
    const size_t i = 2 * static_cast<size_t>(d);
    return {sizes_[i], sizes_[i + 1]};
  }
  // Returns the part of `y` that has the dimensions of `x`.
  Operand Inside(Operand y, const Operand& x) const {
    for (int d = 0; d < x.rank; ++d) {
      const int64_t before = (*this)[d].first;
      y = Range(y, d, before, before + x.dim(d));
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
        return absl::InvalidArgumentError(
            "Paddings must be non-negative: " + std::to_string(before) + " " +
            std::to_string(after));
      }
      shape.add_dim(x.dim(d) + before + after);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (run.context().num_inputs() > 2) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand value, GetView(run, 2));
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
      const auto [before, after] = paddings[d];
      const int64_t limit = x.dim(d) - edge_;
      if (before < 0 || after < 0 || before > limit || after > limit) {
        return absl::InvalidArgumentError(
            "paddings must be non-negative and at most " +
            std::to_string(limit) + ": " + std::to_string(before) + ", " +
            std::to_string(after));
      }
      shape.add_dim(x.dim(d) + before + after);
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
    TFPLUG_ASSIGN_OR_RETURN(const int axis,
                            GetAxis(run, is_first_ ? 0 : n, like.rank));
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
      TFPLUG_RETURN_IF_ERROR(Copy(run, x, Range(y, axis, at, end)));
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
    TFPLUG_ASSIGN_OR_RETURN(const int axis,
                            GetAxis(run, has_sizes_ ? 2 : 0, x.rank));
    const int64_t size = x.dim(axis);
    Ints sizes(static_cast<size_t>(n), size / n);
    if (has_sizes_) {
      TFPLUG_ASSIGN_OR_RETURN(sizes, run.GetInts(1));
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
      const Operand part = Range(x, axis, at, end);
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
    bool is_valid = sizes.size() == static_cast<size_t>(n);
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
    const Shape shape = ShapeOf(WithDim(like, axis, n));
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
          Copy(run, WithDim(x, axis, 1), Range(y, axis, i, i + 1)));
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
      Operand part = WithDimLast(Range(x, axis, i, i + 1), axis);
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

// Tile: the output as [copies, size, copies, size, ...].
class TileKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints multiples, run.GetInts(1));
    if (multiples.size() != static_cast<size_t>(x.rank)) {
      return absl::InvalidArgumentError(
          "Expected multiples argument to be a vector of length " +
          std::to_string(x.rank) + " but got length " +
          std::to_string(multiples.size()));
    }
    if (2 * x.rank > kMaxViewRank) {
      return absl::UnimplementedError("Tile supports tensors of rank " +
                                      std::to_string(kMaxViewRank / 2));
    }
    Shape shape;
    Operand from = x;
    from.rank = 0;
    for (int d = 0; d < x.rank; ++d) {
      const int64_t copies = multiples[static_cast<size_t>(d)];
      if (copies < 0) {
        return absl::InvalidArgumentError("Expected multiples[" +
                                          std::to_string(d) + "] >= 0");
      }
      shape.add_dim(copies * x.dim(d));
      from.AddDim(copies, 0).AddDim(x.dim(d), x.stride(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    return Copy(run, from, Operand::Dense(y.data, y.type, DimsOf(from)));
  }
};

class ReverseKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    uint64_t used = 0;
    for (int64_t axis : axes) {
      TFPLUG_ASSIGN_OR_RETURN(const int d, CheckAxis(axis, x.rank));
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

}  // namespace internal

inline void ArrayOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  UseHostBackend();
  const uint64_t without_int32 = kAllTypes & ~kInt32Type;
  registrar.Add<TransposeKernel>(KernelDef("Transpose").HostMemory("perm"), "T",
                                 kAllTypes);
  registrar.Add<SliceKernel>(
      KernelDef("Slice").HostMemory("begin").HostMemory("size"), "T",
      without_int32);
  const auto slice = [](const char* op) {
    return KernelDef(op).HostMemory("begin").HostMemory("end").HostMemory(
        "strides");
  };
  registrar.Add<StridedSliceKernel>(slice("StridedSlice"), "T", without_int32);
  registrar.Add<OnHost<StridedSliceKernel>>(
      slice("StridedSlice").HostMemory("input").HostMemory("output"), "T",
      kInt32Type);
  registrar.Add<StridedSliceGradKernel>(
      slice("StridedSliceGrad").HostMemory("shape"), "T", without_int32);
  registrar.Add<PadKernel>(KernelDef("Pad").HostMemory("paddings"), "T",
                           kAllTypes);
  registrar.Add<PadKernel>(KernelDef("PadV2").HostMemory("paddings"), "T",
                           kAllTypes);
  registrar.Add<MirrorPadKernel>(KernelDef("MirrorPad").HostMemory("paddings"),
                                 "T", kAllTypes);
  registrar.Add<ConcatKernel>(KernelDef("ConcatV2").HostMemory("axis"), "T",
                              without_int32);
  registrar.Add<ConcatKernel>(KernelDef("Concat").HostMemory("concat_dim"), "T",
                              without_int32);
  registrar.Add<SplitKernel>(KernelDef("Split").HostMemory("split_dim"), "T",
                             kAllTypes);
  registrar.Add<SplitKernel>(
      KernelDef("SplitV").HostMemory("size_splits").HostMemory("split_dim"),
      "T", kAllTypes);
  registrar.Add<PackKernel>(KernelDef("Pack"), "T", without_int32);
  registrar.Add<OnHost<PackKernel>>(
      KernelDef("Pack").HostMemory("values").HostMemory("output"), "T",
      kInt32Type);
  registrar.Add<UnpackKernel>(
      KernelDef("Unpack"), "T",
      without_int32 & ~internal::SetOf(DataType::kInt64));
  registrar.Add<TileKernel>(KernelDef("Tile").HostMemory("multiples"), "T",
                            kAllTypes);
  registrar.Add<ReverseKernel>(KernelDef("ReverseV2").HostMemory("axis"), "T",
                               kAllTypes);
  registrar.Add<BroadcastToKernel>(KernelDef("BroadcastTo").HostMemory("shape"),
                                   "T", kAllTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_ARRAY_H_
