// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_WARP_H_
#define TFPLUG_OP_KERNELS_WARP_H_

#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Images that are sampled at computed places.
namespace tfplug {
namespace op_kernels_internal {

// Moves a coordinate that is out of range to the place in the image that
// fill_mode gives it. `size` is a float.
inline Value CoordinateInside(const std::string& mode, Value at, Value size) {
  if (mode == "CONSTANT") return at;
  const Value last = size - 1;
  const auto whole = [](Value x) {
    return Cast(Cast(x, DataType::kInt32), x.type());
  };
  Value inside = at;
  if (mode == "REFLECT") {
    const Value twice = 2 * size;
    const Value low = Select(at < twice, twice * whole(-at / twice) + at, at);
    const Value below = Select(low < -size, low + twice, -low - 1);
    const Value high = at - twice * whole(at / twice);
    const Value above = Select(high >= size, twice - high - 1, high);
    inside = Select(at < 0, below, Select(at > last, above, at));
    inside = Select((size <= 1) & ((at < 0) | (at > last)), 0, inside);
  } else if (mode == "WRAP") {
    const Value below = at + size * (whole(-at / last) + 1);
    const Value above = at - size * whole(at / last);
    inside = Select(at < 0, below, Select(at > last, above, at));
    inside = Select((size <= 1) & ((at < 0) | (at > last)), 0, inside);
  }
  return Max(Min(inside, last), 0);
}

// ImageProjectiveTransformV2 and V3.
class ProjectiveTransformKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string interpolation,
                            construction.GetAttr<std::string>("interpolation"));
    TFPLUG_ASSIGN_OR_RETURN(const std::string mode,
                            construction.GetAttr<std::string>("fill_mode"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("dtype"));
    if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
      return absl::InvalidArgumentError("Invalid interpolation " +
                                        interpolation);
    }
    constexpr DataType kFloat = DataType::kFloat, kInt64 = DataType::kInt64;
    ExpressionBuilder builder;
    const int image = builder.AxisInput(type);
    std::vector<Value> t;
    for (int i = 0; i < kParameters; ++i) t.push_back(builder.Input(kFloat));
    const Value x = Cast(builder.Input(kInt64), kFloat);
    const Value y = Cast(builder.Input(kInt64), kFloat);
    const Value height = builder.Input(kFloat), width = builder.Input(kFloat);
    const Value fill = Cast(builder.Input(kFloat), type);
    const Value scale = t[6] * x + t[7] * y + 1;
    const Value column =
        CoordinateInside(mode, (t[0] * x + t[1] * y + t[2]) / scale, width);
    const Value row =
        CoordinateInside(mode, (t[3] * x + t[4] * y + t[5]) / scale, height);
    // The pixel, or the fill value outside of the image.
    const auto read = [&](Value at_y, Value at_x) {
      const Value inside =
          (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width);
      const Value index =
          Cast(at_y, kInt64) * Cast(width, kInt64) + Cast(at_x, kInt64);
      return Select(inside, builder.Element(image, index), fill);
    };
    Value result = fill;
    if (interpolation == "NEAREST") {
      const auto round = [](Value v) {  // half away from 0
        return Select(v < 0, -Floor(0.5 - v), Floor(v + 0.5));
      };
      result = read(round(row), round(column));
    } else {
      const Value top = Floor(row), left = Floor(column);
      const auto mix = [&](Value at_y) {
        return (left + 1 - column) * Cast(read(at_y, left), kFloat) +
               (column - left) * Cast(read(at_y, left + 1), kFloat);
      };
      result =
          Cast((top + 1 - row) * mix(top) + (row - top) * mix(top + 1), type);
    }
    builder.Output(Select(scale == 0, fill, result), type);
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand transforms, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(2));
    if (x.rank != 4 || transforms.rank != 2 ||
        transforms.dim(1) != kParameters ||
        (transforms.dim(0) != 1 && transforms.dim(0) != x.dim(0)) ||
        size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
      return absl::InvalidArgumentError(
          "images must have rank 4, transforms the shape [1 or images, 8], and "
          "the size of the output two positive numbers: " +
          ShapeOf(x).ToString() + ", " + ShapeOf(transforms).ToString());
    }
    double fill = 0;
    if (run.context().num_inputs() > 3) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor value, run.GetInput(3));
      if (value.rank() != 0) {
        return absl::InvalidArgumentError("fill_value must be a scalar");
      }
      fill = static_cast<double>(value.scalar<float>());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        Operand y,
        run.AllocateOutput(0, {x.dim(0), size[0], size[1], x.dim(3)}));
    // The pixels are an axis of the view [image, row, column, channel].
    Operand pixels = y;
    pixels.data = x.data;
    pixels.stride(0) = x.stride(0);
    pixels.stride(1) = pixels.stride(2) = 0;
    pixels.stride(3) = 1;
    pixels.axis_size = x.dim(1) * x.dim(2);
    pixels.axis_stride = x.stride(2);
    absl::InlinedVector<Operand, 16> inputs = {pixels};
    for (int64_t i = 0; i < kParameters; ++i) {
      Operand parameter = y;
      parameter.type = DataType::kFloat;
      parameter.data = transforms.data;
      parameter.Advance(i);
      parameter.stride(0) = transforms.dim(0) == 1 ? 0 : kParameters;
      for (int d = 1; d < 4; ++d) parameter.stride(d) = 0;
      inputs.push_back(parameter);
    }
    inputs.push_back(ir::IndexOf(y, 2));
    inputs.push_back(ir::IndexOf(y, 1));
    for (const double value :
         {static_cast<double>(x.dim(1)), static_cast<double>(x.dim(2)), fill}) {
      inputs.push_back(ir::ScalarOf(DataType::kFloat, value, y));
    }
    return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                              absl::MakeSpan(&y, 1));
  }

 private:
  static constexpr int kParameters = 8;
  Expression expression_;
};

}  // namespace op_kernels_internal

inline void WarpOps(const Registrar& registrar) {
  using op_kernels_internal::ProjectiveTransformKernel;
  constexpr uint64_t kImages =
      kernel::SetOf(DataType::kUint8, DataType::kInt32, DataType::kInt64,
                    DataType::kHalf, DataType::kFloat, DataType::kDouble);
  registrar.Add<ProjectiveTransformKernel>(
      KernelDef("ImageProjectiveTransformV2").HostMemory("output_shape"),
      "dtype", kImages);
  registrar.Add<ProjectiveTransformKernel>(
      KernelDef("ImageProjectiveTransformV3")
          .HostMemory("output_shape")
          .HostMemory("fill_value"),
      "dtype", kImages);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_WARP_H_
