// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESIZE_RULE_H_
#define TFPLUG_OP_KERNELS_RESIZE_RULE_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/value.h"
#include "tfplug/kernel/kernel_construction.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The attributes with which ops for resizing images map sizes.
struct ResizeScale {
  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(align_corners,
                            construction.GetAttr<bool>("align_corners"));
    if (construction.HasAttr("half_pixel_centers")) {
      TFPLUG_ASSIGN_OR_RETURN(half_pixel_centers,
                              construction.GetAttr<bool>("half_pixel_centers"));
    }
    if (align_corners && half_pixel_centers) {
      return absl::InvalidArgumentError(
          "If half_pixel_centers is True, align_corners must be False.");
    }
    return absl::OkStatus();
  }
  float operator()(int64_t in, int64_t out) const {
    return align_corners && out > 1
               ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
               : static_cast<float>(in) / static_cast<float>(out);
  }

  bool align_corners = false, half_pixel_centers = false;
};

// Finds the source of each element along one dimension of a resized image.
// Computes in float, as TensorFlow does.
class ResizeRule {
 public:
  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_bilinear_ = op.rfind("ResizeBilinear", 0) == 0;
    return scale_.Init(construction);
  }

  bool is_bilinear() const { return is_bilinear_; }

  float Scale(int64_t in, int64_t out) const { return scale_(in, out); }

  // The two elements from which an element is interpolated, the second one with
  // the weight `fraction`. They are equal for the nearest neighbor.
  struct Source {
    Value lower, upper;  // int64
    Value fraction;      // float
  };
  // `to` is an int64 index in the resized dimension, `size` the original size.
  Source SourceOf(Value to, Value scale, Value size) const {
    constexpr DataType kInt64 = DataType::kInt64;
    const Value index = Cast(to, DataType::kFloat);
    if (is_bilinear_) {
      const Value at = scale_.half_pixel_centers ? (index + 0.5) * scale - 0.5
                                                 : index * scale;
      const Value floor = Floor(at);
      return {Max(Cast(floor, kInt64), 0),
              Min(Cast(Ceil(at), kInt64), size - 1), at - floor};
    }
    const Value at =
        scale_.half_pixel_centers ? (index + 0.5) * scale : index * scale;
    const Value floor = Floor(at);
    const Value rounded = scale_.align_corners
                              ? Select(at - floor >= 0.5, floor + 1, floor)
                              : floor;
    const Value nearest = Min(Cast(rounded, kInt64), size - 1);
    return {nearest, nearest, index.Like(0)};
  }

  // The elements of the resized dimension that use element `i` of the original
  // one are among the `count` elements from floor((i + shift) * ratio - half).
  struct Uses {
    int64_t count;
    double shift, ratio, half;
  };
  Uses UsesOf(int64_t in, int64_t out) const {
    const double scale = Scale(in, out);
    const double count = scale > 0 ? std::ceil(2 / scale) + 2 : INFINITY;
    if (count >= static_cast<double>(out)) return {out, 0, 0, 0};
    const double half = scale_.half_pixel_centers ? 0.5 : 0;
    return {static_cast<int64_t>(count), is_bilinear_ ? half - 1 : -1,
            1 / scale, half};
  }

 private:
  bool is_bilinear_ = false;
  ResizeScale scale_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RESIZE_RULE_H_
