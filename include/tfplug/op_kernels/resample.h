// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESAMPLE_H_
#define TFPLUG_OP_KERNELS_RESAMPLE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/resample_rule.h"

#pragma GCC visibility push(hidden)

// ResizeBicubic, ResizeArea, ScaleAndTranslate and the gradients: each element
// of a row or column is a weighted sum of elements of the original one, in
// float. On the host, because TensorFlow has no such kernels for GPUs, either.
namespace tfplug {
namespace op_kernels_internal {

class ResampleKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_gradient_ = op.size() > 4 && op.substr(op.size() - 4) == "Grad";
    return rule_.Init(construction);
  }
  // The gradient of a resized image has no input that is only needed on the
  // host: only the shape of the original image is used.
  bool IsInputOnHost(int i) const override {
    return i >= (is_gradient_ ? 2 : 1);
  }

  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const Shape& image = in[0].shape;
    TFPLUG_RETURN_IF_ERROR(CheckImage(image));
    std::array<int64_t, 2> size;
    if (is_gradient_) {
      TFPLUG_RETURN_IF_ERROR(CheckImage(in[1].shape));
      size = {in[1].shape.dim(1), in[1].shape.dim(2)};
    } else {
      if (in[1].shape != Shape{2}) {
        return absl::InvalidArgumentError(
            "shape_t must be 1-dimensional and have two elements, not shape " +
            in[1].shape.ToString());
      }
      size = {in[1].as<int32_t>()[0], in[1].as<int32_t>()[1]};
    }
    if (size[0] <= 0 || size[1] <= 0) {
      return absl::InvalidArgumentError("output dimensions must be positive");
    }
    std::array<ResampleRule::Move, 2> moves = {};
    if (in.size() > 2) TFPLUG_ASSIGN_OR_RETURN(moves, GetMoves(in));
    Taps taps[2];
    for (int d = 0; d < 2; ++d) {
      const auto k = static_cast<size_t>(d);
      const int64_t from = image.dim(d + 1), to = size[k];
      taps[d] = is_gradient_ ? Transposed(rule_.TapsOf(to, from, moves[k]), to)
                             : rule_.TapsOf(from, to, moves[k]);
    }
    const Shape shape = {image.dim(0), size[0], size[1], image.dim(3)};
    if (shape.num_elements() < 0) {
      return absl::InvalidArgumentError("the resized image " +
                                        shape.ToString() + " is too large");
    }
    const bool is_double = is_gradient_ && in[1].type == DataType::kDouble;
    const HostArray& y =
        outputs.Add(is_double ? in[1].type : DataType::kFloat, shape);
    ir::VisitStored(in[0].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, float>) {
        // Gradients of the result are floats.
        if (is_double) {
          return Resample(in[0].as<T>(), image, taps, y.as<double>(), shape);
        }
      }
      Resample(in[0].as<T>(), image, taps, y.as<float>(), shape);
    });
    return absl::OkStatus();
  }

 private:
  using Taps = ResampleRule::Taps;

  static absl::Status CheckImage(const Shape& image) {
    if (image.rank() != 4) {
      return absl::InvalidArgumentError("input must be 4-dimensional" +
                                        image.ToString());
    }
    if (image.dim(1) <= 0 || image.dim(2) <= 0) {
      return absl::InvalidArgumentError("input image must be of non-zero size" +
                                        std::string(", not ") +
                                        image.ToString());
    }
    if (image.dim(3) > 0) return absl::OkStatus();
    return absl::InvalidArgumentError("image must have at least one channel");
  }

  // Returns the scales and translations of ScaleAndTranslate.
  static absl::StatusOr<std::array<ResampleRule::Move, 2>> GetMoves(
      absl::Span<const HostArray> in) {
    if (in[2].shape != Shape{2} || in[3].shape != Shape{2}) {
      return absl::InvalidArgumentError(
          "scale and translation must be 1-dimensional and have two elements");
    }
    std::array<ResampleRule::Move, 2> moves;
    for (size_t d = 0; d < 2; ++d) {
      moves[d] = {in[2].as<float>()[d], in[3].as<float>()[d]};
      if (!(moves[d].scale > 0)) {
        return absl::InvalidArgumentError("Scale must be greater than zero.");
      }
    }
    return moves;
  }

  // Returns for each of `size` original elements those that use it.
  static Taps Transposed(const Taps& taps, int64_t size) {
    Taps result(static_cast<size_t>(size));
    for (size_t to = 0; to < taps.size(); ++to) {
      for (const auto& [from, weight] : taps[to]) {
        result[static_cast<size_t>(from)].push_back(
            {static_cast<int64_t>(to), weight});
      }
    }
    return result;
  }

  // Resamples the rows of `x` and then the columns of the result, summing in R.
  template <class T, class R>
  static void Resample(const T* x, const Shape& from, const Taps (&taps)[2],
                       R* y, const Shape& to) {
    const int64_t depth = from.dim(3), columns = from.dim(2);
    std::vector<R> row(static_cast<size_t>(columns * depth));
    for (int64_t b = 0; b < from.dim(0);
         ++b, x += from.dim(1) * columns * depth) {
      for (int64_t r = 0; r < to.dim(1); ++r) {
        std::fill(row.begin(), row.end(), R(0));
        for (const auto& [at, weight] : taps[0][static_cast<size_t>(r)]) {
          const T* const source = x + at * columns * depth;
          for (size_t i = 0; i < row.size(); ++i) {
            row[i] += static_cast<R>(weight) * ir::Convert<R>(source[i]);
          }
        }
        for (const auto& column : taps[1]) {
          std::fill_n(y, depth, R(0));
          for (const auto& [at, weight] : column) {
            const R* const source = row.data() + at * depth;
            for (int64_t c = 0; c < depth; ++c) {
              y[c] += static_cast<R>(weight) * source[c];
            }
          }
          y += depth;
        }
      }
    }
  }

  bool is_gradient_ = false;
  ResampleRule rule_;
};

}  // namespace op_kernels_internal

inline void ResampleOps(const Registrar& registrar) {
  using op_kernels_internal::ResampleKernel;
  for (const char* op : {"ResizeBicubic", "ResizeArea"}) {
    registrar.Add<ResampleKernel>(KernelDef(op).HostMemory("size"), "T",
                                  kNumberTypes);
  }
  registrar.Add<ResampleKernel>(
      KernelDef("ResizeBicubicGrad"), "T",
      kernel::SetOf(DataType::kFloat, DataType::kDouble));
  registrar.Add<ResampleKernel>(KernelDef("ScaleAndTranslate")
                                    .HostMemory("size")
                                    .HostMemory("scale")
                                    .HostMemory("translation"),
                                "T", kNumberTypes);
  registrar.Add<ResampleKernel>(KernelDef("ScaleAndTranslateGrad")
                                    .HostMemory("scale")
                                    .HostMemory("translation"),
                                "T", kernel::SetOf(DataType::kFloat));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RESAMPLE_H_
