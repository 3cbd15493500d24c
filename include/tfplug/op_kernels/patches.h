// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_PATCHES_H_
#define TFPLUG_OP_KERNELS_PATCHES_H_

#include <array>
#include <string>

#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"
#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Ops on the elements around each element: patches, local response
// normalization.
namespace tfplug {
namespace op_kernels_internal {

// ExtractImagePatches and ExtractVolumePatches: the elements of each window as
// channels.
class PatchesKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    return attrs_.Init(construction, op == "ExtractVolumePatches" ? 3 : 2);
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank != attrs_.spatial() + 2) {
      return absl::InvalidArgumentError(
          "input must be " + std::to_string(attrs_.spatial() + 2) +
          "-dimensional: " + ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Windows windows, attrs_.Over(x));
    int64_t channels = x.dim(x.rank - 1);
    for (const Window& window : windows) channels *= window.size;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand y,
        run.AllocateOutput(0, ImageShape(x.dim(0), windows, channels,
                                         /*channels_first=*/false)));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                            primitives::Padded(run.launcher(), x, windows, 0));
    const Operand patches = primitives::WindowsOf(padded, windows);
    return Copy(run, patches,
                Operand::Dense(y.data, y.type, ir::DimsOf(patches)));
  }

 private:
  WindowAttrs attrs_;
};

// LRN and LRNGrad: each element is divided by a power of the sum of the squares
// of the channels around it.
class LocalNormKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_gradient_ = op == "LRNGrad";
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(radius_,
                            construction.GetAttr<int64_t>("depth_radius"));
    TFPLUG_ASSIGN_OR_RETURN(const double bias,
                            construction.GetAttr<float>("bias"));
    TFPLUG_ASSIGN_OR_RETURN(const double alpha,
                            construction.GetAttr<float>("alpha"));
    TFPLUG_ASSIGN_OR_RETURN(const double beta,
                            construction.GetAttr<float>("beta"));
    constexpr DataType kFloat = DataType::kFloat;
    TFPLUG_ASSIGN_OR_RETURN(
        norm_.map,
        MakeExpression({type}, {kFloat}, [](Value x) { return Square(x); }));
    const auto norm = [=](Value squares) { return squares * alpha + bias; };
    const auto power = [=](Value base) {
      return beta == 1     ? 1 / base
             : beta == 0.5 ? 1 / Sqrt(base)
                           : Exp(Log(base) * -beta);
    };
    if (!is_gradient_) {
      TFPLUG_ASSIGN_OR_RETURN(
          norm_.finish,
          MakeExpression({kFloat, type}, {type}, [&](Value squares, Value x) {
            return x * power(norm(squares));
          }));
      return absl::OkStatus();
    }
    // The norm, and the part of the gradient that neighbours add up.
    TFPLUG_ASSIGN_OR_RETURN(
        norm_.finish,
        MakeExpression(
            {kFloat, type, type}, {kFloat, kFloat},
            [&](Value squares, Value gradient, Value output) {
              const Value base = norm(squares);
              return std::array<Value, 2>{base, gradient * output / base};
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        gradient_.map,
        MakeExpression({kFloat}, {kFloat}, [](Value x) { return x; }));
    TFPLUG_ASSIGN_OR_RETURN(
        gradient_.finish,
        MakeExpression({kFloat, type, type, kFloat}, {type},
                       [&](Value sum, Value gradient, Value x, Value base) {
                         return gradient * power(base) -
                                x * sum * (2 * alpha * beta);
                       }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand first, GetView(run, 0));
    if (first.rank != 4) {
      return absl::InvalidArgumentError("in must be 4-dimensional, not " +
                                        ShapeOf(first).ToString());
    }
    Operand x = first, output = first;
    if (is_gradient_) {
      TFPLUG_ASSIGN_OR_RETURN(x, GetView(run, 1));
      TFPLUG_ASSIGN_OR_RETURN(output, GetView(run, 2));
      if (ShapeOf(x) != ShapeOf(first) || ShapeOf(output) != ShapeOf(first)) {
        return absl::InvalidArgumentError(
            "input_grads, input_image and output_image must have the same "
            "shape, not " +
            ShapeOf(first).ToString() + ", " + ShapeOf(x).ToString() + " and " +
            ShapeOf(output).ToString());
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand result,
                            run.AllocateOutput(0, ShapeOf(first)));
    if (result.num_elements() == 0) return absl::OkStatus();
    const Operand y = Pixels(result), pixels = Pixels(x);
    TFPLUG_ASSIGN_OR_RETURN(const Operand around, Neighbours(run, pixels));
    const auto repeat = [&](const Operand& view) {
      return ir::WithDim(view, 2, around.dim(2));
    };
    if (!is_gradient_) {
      return run.launcher().Reduce(norm_, {around, repeat(pixels)}, {y});
    }
    const Operand gradient = repeat(Pixels(first));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand base,
        run.launcher().Allocate(DataType::kFloat, ir::DimsOf(pixels)));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand part,
        run.launcher().Allocate(DataType::kFloat, ir::DimsOf(pixels)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        norm_, {around, gradient, repeat(Pixels(output))}, {base, part}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand parts, Neighbours(run, part));
    return run.launcher().Reduce(
        gradient_, {parts, gradient, repeat(pixels), repeat(base)}, {y});
  }

 private:
  // Returns an image as [pixel, channel].
  static Operand Pixels(const Operand& image) {
    return Operand::Dense(
        image.data, image.type,
        {ir::CountOf(image, 0, image.rank - 1), image.dim(image.rank - 1)});
  }
  // Returns [pixel, channel, neighbour], with zeros outside.
  absl::StatusOr<Operand> Neighbours(OpRun& run, const Operand& pixels) const {
    const int64_t depth = pixels.dim(1), padded = depth + 2 * radius_;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand all,
        run.launcher().Allocate(pixels.type, {pixels.dim(0), padded}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, all, 0));
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, pixels, ir::Range(all, 1, radius_, radius_ + depth)));
    return ir::Range(all, 1, 0, depth).AddDim(2 * radius_ + 1, 1);
  }

  bool is_gradient_ = false;
  int64_t radius_ = 5;
  Reduction norm_, gradient_;
};

}  // namespace op_kernels_internal

inline void PatchOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<PatchesKernel>(KernelDef("ExtractImagePatches"), "T",
                               kCopiedTypes);
  registrar.Add<PatchesKernel>(KernelDef("ExtractVolumePatches"), "T",
                               kNumberTypes);
  for (const char* op : {"LRN", "LRNGrad"}) {
    registrar.Add<LocalNormKernel>(
        KernelDef(op), "T",
        kernel::SetOf(DataType::kFloat, DataType::kHalf, DataType::kBfloat16));
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_PATCHES_H_
