// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPATIAL_H_
#define TFPLUG_OP_KERNELS_SPATIAL_H_

#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"
#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Ops that rearrange blocks of an image.
namespace tfplug {
namespace op_kernels_internal {

// Returns a view of an image [batch, spatial..., rest], whose spatial sizes are
// multiples of the blocks' sizes, as [position in the block..., batch,
// block..., rest].
inline Operand BlocksOf(const Operand& image,
                        absl::Span<const int64_t> blocks) {
  Operand view = image;
  view.rank = 0;
  const auto n = static_cast<int>(blocks.size());
  for (int i = 0; i < n; ++i) {
    view.AddDim(blocks[static_cast<size_t>(i)], image.stride(i + 1));
  }
  view.AddDim(image.dim(0), image.stride(0));
  for (int i = 0; i < n; ++i) {
    const int64_t size = blocks[static_cast<size_t>(i)];
    view.AddDim(image.dim(i + 1) / size, image.stride(i + 1) * size);
  }
  return view.AddDim(image.dim(n + 1), image.stride(n + 1));
}

// SpaceToBatchND, BatchToSpaceND, SpaceToBatch and BatchToSpace.
class BatchKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    to_batch_ = op.rfind("SpaceTo", 0) == 0;
    if (construction.HasAttr("block_size")) {
      TFPLUG_ASSIGN_OR_RETURN(block_size_,
                              construction.GetAttr<int32_t>("block_size"));
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    Ints blocks = {block_size_, block_size_};
    if (block_size_ == 0) {
      TFPLUG_ASSIGN_OR_RETURN(blocks, run.GetVector(1));
    } else if (x.rank != 4) {
      return absl::InvalidArgumentError("Input rank should be: 4 instead of: " +
                                        std::to_string(x.rank));
    }
    const int at = block_size_ == 0 ? 2 : 1;
    const std::string margins_name = to_batch_ ? "paddings" : "crops";
    TFPLUG_ASSIGN_OR_RETURN(const Tensor margin_tensor, run.GetInput(at));
    const Shape margin_shape = margin_tensor.shape();
    TFPLUG_ASSIGN_OR_RETURN(const Ints margins, run.GetInts(at));
    const auto n = static_cast<int>(blocks.size());
    if (x.rank < n + 1 || 2 * n + 2 > kMaxViewRank) {
      return absl::InvalidArgumentError(
          "input rank should be >= " + std::to_string(n + 1) + " instead of " +
          std::to_string(x.rank) + ", and block_shape must have at most " +
          std::to_string(kMaxViewRank / 2 - 1) + " elements");
    }
    if (margin_shape != Shape{n, 2}) {
      return absl::InvalidArgumentError(margins_name + " should have shape [" +
                                        std::to_string(n) + ", 2] instead of " +
                                        margin_shape.ToString());
    }
    int64_t product = 1;
    for (int64_t block : blocks) {
      if (__builtin_mul_overflow(product, block, &product)) {
        return absl::InvalidArgumentError(
            "Product of block sizes must be positive, got an overflow");
      }
      if (block < 1) {
        return absl::InvalidArgumentError(
            "All values in block_shape must be positive, got value, " +
            std::to_string(block));
      }
    }
    for (int64_t margin : margins) {
      if (margin < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat((to_batch_ ? "Paddings" : "Crops"),
                         " must be non-negative, not ", margin));
      }
    }
    if (!to_batch_) return ToSpace(run, x, blocks, margins);
    // TensorFlow checks the batch before the other sizes.
    TFPLUG_ASSIGN_OR_RETURN(const int64_t batch,
                            MultiplySizes(x.dim(0), product));
    return ToBatch(run, x, batch, blocks, margins);
  }

 private:
  // Returns a dense view with these spatial sizes, and one dimension after.
  static Operand WithSizes(const Operand& x, int64_t batch, const Ints& sizes,
                           int64_t rest) {
    Ints dims = {batch};
    for (int64_t size : sizes) dims.push_back(size);
    dims.push_back(rest);
    return ir::AsBits(Operand::Dense(x.data, x.type, dims));
  }
  static Shape ResultShape(const Operand& x, int64_t batch, const Ints& sizes) {
    Shape shape = {batch};
    for (int64_t size : sizes) shape.add_dim(size);
    for (int d = shape.rank(); d < x.rank; ++d) shape.add_dim(x.dim(d));
    return shape;
  }
  static int64_t Rest(const Operand& x, size_t spatial) {
    int64_t rest = 1;
    for (int d = static_cast<int>(spatial) + 1; d < x.rank; ++d) {
      rest *= x.dim(d);
    }
    return rest;
  }

  static absl::Status ToBatch(OpRun& run, const Operand& x, int64_t batch,
                              const Ints& blocks, const Ints& paddings) {
    Ints from, to;  // sizes
    absl::InlinedVector<primitives::Placement, 3> placements;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t size = x.dim(static_cast<int>(i) + 1);
      int64_t padded;
      if (__builtin_add_overflow(paddings[2 * i], paddings[2 * i + 1],
                                 &padded) ||
          __builtin_add_overflow(padded, size, &padded)) {
        return absl::InvalidArgumentError("padded_shape[" + std::to_string(i) +
                                          "] is no 64-bit integer");
      }
      if (padded % blocks[i] != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "padded_shape[", i, "]=", padded,
            " is not divisible by block_shape[", i, "]=", blocks[i]));
      }
      from.push_back(size);
      to.push_back(padded / blocks[i]);
      placements.push_back({padded, paddings[2 * i], 1});
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ResultShape(x, batch, to)));
    if (y.num_elements() == 0) return absl::OkStatus();
    Operand image = WithSizes(x, x.dim(0), from, Rest(x, from.size()));
    bool is_padded = false;
    for (int64_t padding : paddings) is_padded = is_padded || padding > 0;
    if (is_padded) {
      TFPLUG_ASSIGN_OR_RETURN(
          image, primitives::Place(run.launcher(), image, placements, 0));
    }
    const Operand from_blocks = BlocksOf(image, blocks);
    return Copy(run, from_blocks,
                Operand::Dense(y.data, image.type, ir::DimsOf(from_blocks)));
  }

  static absl::Status ToSpace(OpRun& run, const Operand& x, const Ints& blocks,
                              const Ints& crops) {
    Ints whole, cropped;  // sizes
    int64_t batch = x.dim(0);
    bool is_cropped = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (batch % blocks[i] != 0) {
        return absl::InvalidArgumentError(
            "Input batch dimension (" + std::to_string(x.dim(0)) +
            ") is not divisible by product of block sizes, of which one is " +
            std::to_string(blocks[i]));
      }
      batch /= blocks[i];
      TFPLUG_ASSIGN_OR_RETURN(
          const int64_t size,
          MultiplySizes(x.dim(static_cast<int>(i) + 1), blocks[i]));
      // No difference of two sizes overflows.
      const int64_t rest = size - crops[2 * i];
      if (rest < 0 || crops[2 * i + 1] > rest) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cropped_shape[", i, "]=",
            static_cast<int64_t>(static_cast<uint64_t>(rest) -
                                 static_cast<uint64_t>(crops[2 * i + 1])),
            " must be non-negative"));
      }
      const int64_t crop = crops[2 * i] + crops[2 * i + 1];
      is_cropped = is_cropped || crop > 0;
      whole.push_back(size);
      cropped.push_back(size - crop);
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand y, run.AllocateOutput(0, ResultShape(x, batch, cropped)));
    if (y.num_elements() == 0) return absl::OkStatus();
    const int64_t rest = Rest(x, blocks.size());
    const Operand out = WithSizes(y, batch, cropped, rest);
    Operand image = WithSizes(y, batch, whole, rest);
    if (is_cropped) {
      TFPLUG_ASSIGN_OR_RETURN(
          image, run.launcher().Allocate(image.type, ir::DimsOf(image)));
    }
    const Operand to = BlocksOf(image, blocks);
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, Operand::Dense(x.data, image.type, ir::DimsOf(to)), to));
    if (!is_cropped) return absl::OkStatus();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t begin = crops[2 * i];
      image =
          ir::Range(image, static_cast<int>(i) + 1, begin, begin + cropped[i]);
    }
    return Copy(run, image, out);
  }

  bool to_batch_ = false;
  int64_t block_size_ = 0;  // 0: block_shape is an input
};

// SpaceToDepth and DepthToSpace.
class DepthKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    to_depth_ = op == "SpaceToDepth";
    TFPLUG_ASSIGN_OR_RETURN(block_,
                            construction.GetAttr<int32_t>("block_size"));
    constexpr int64_t kLargest = 46340;  // its square is an int32
    if (block_ < 2 || block_ > kLargest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Block size should be > 1 and <= ", kLargest, ", but was: ", block_));
    }
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank != 4) {
      return absl::InvalidArgumentError("Input rank should be: 4 instead of: " +
                                        std::to_string(x.rank));
    }
    const Operand image = ChannelsLast(x, channels_first_);
    int64_t height = image.dim(1), width = image.dim(2), depth = image.dim(3);
    const int64_t area = block_ * block_;
    if (to_depth_) {
      if (height % block_ != 0 || width % block_ != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("Image height ", height, " and width ", width,
                         " should be divisible by block_size: ", block_));
      }
      height /= block_;
      width /= block_;
      TFPLUG_ASSIGN_OR_RETURN(depth, MultiplySizes(depth, area));
    } else {
      if (depth % area != 0) {
        return absl::InvalidArgumentError(
            "Input depth dimension " + std::to_string(depth) +
            " should be divisible by: " + std::to_string(area));
      }
      TFPLUG_ASSIGN_OR_RETURN(height, MultiplySizes(height, block_));
      TFPLUG_ASSIGN_OR_RETURN(width, MultiplySizes(width, block_));
      depth /= area;
    }
    const Shape shape = channels_first_ ? Shape{x.dim(0), depth, height, width}
                                        : Shape{x.dim(0), height, width, depth};
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    const Operand result = ChannelsLast(y, channels_first_);
    return to_depth_ ? Copy(run, Large(image), Small(result))
                     : Copy(run, Small(image), Large(result));
  }

 private:
  // Return views of both images as [batch, block row, block column, row in the
  // block, column in the block, channel].
  Operand Large(const Operand& image) const {
    const Operand blocks = BlocksOf(image, {block_, block_});
    return ir::WithDimLast(ir::WithDimLast(ir::WithDimLast(blocks, 0), 0), 3);
  }
  Operand Small(const Operand& image) const {
    Operand view = image;
    const int64_t channels = image.dim(3) / (block_ * block_);
    view.rank = 3;
    return view.AddDim(block_, block_ * channels * image.stride(3))
        .AddDim(block_, channels * image.stride(3))
        .AddDim(channels, image.stride(3));
  }

  bool to_depth_ = false;
  bool channels_first_ = false;
  int64_t block_ = 1;
};

}  // namespace op_kernels_internal

inline void SpatialOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<BatchKernel>(
      KernelDef("SpaceToBatchND")
          .TypeConstraint<int32_t, int64_t>("Tblock_shape")
          .TypeConstraint<int32_t, int64_t>("Tpaddings")
          .HostMemory("block_shape")
          .HostMemory("paddings"),
      "T", kAllTypes);
  registrar.Add<BatchKernel>(
      KernelDef("BatchToSpaceND")
          .TypeConstraint<int32_t, int64_t>("Tblock_shape")
          .TypeConstraint<int32_t, int64_t>("Tcrops")
          .HostMemory("block_shape")
          .HostMemory("crops"),
      "T", kAllTypes);
  registrar.Add<BatchKernel>(KernelDef("SpaceToBatch").HostMemory("paddings"),
                             "T", kAllTypes);
  registrar.Add<BatchKernel>(KernelDef("BatchToSpace").HostMemory("crops"), "T",
                             kAllTypes);
  for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
    registrar.Add<DepthKernel>(KernelDef(op), "T", kCopiedTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPATIAL_H_
