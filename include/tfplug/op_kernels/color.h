// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COLOR_H_
#define TFPLUG_OP_KERNELS_COLOR_H_

#include <array>
#include <string>
#include <utility>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops on the colors of images, whose last dimension has red, green and blue.
namespace tfplug {
namespace op_kernels_internal {

using Color = std::array<Value, 3>;

// Returns hue, saturation and value of red, green and blue: numbers in [0, 1].
inline Color ToHsv(Value red, Value green, Value blue) {
  const Value value = Max(Max(red, green), blue);
  const Value range = value - Min(Min(red, green), blue);
  const Value saturation = Select(value > 0, range / value, 0);
  const Value norm = 1.0 / (6.0 * range);
  Value hue = Select(red == value, norm * (green - blue),
                     Select(green == value, norm * (blue - red) + 2.0 / 6.0,
                            norm * (red - green) + 4.0 / 6.0));
  hue = Select(range > 0, hue, 0);
  return {Select(hue < 0, hue + 1.0, hue), saturation, value};
}

// Returns the color whose channels are in [value - range, value].
inline Color ToRgb(Value hue, Value range, Value value) {
  const Value h = hue * 6.0;
  const auto channel = [&](Value distance) {
    const Value part = Min(Max(distance, 0), 1);
    return value - range + range * part;
  };
  return {channel(Abs(h - 3.0) - 1.0), channel(2.0 - Abs(h - 2.0)),
          channel(2.0 - Abs(h - 4.0))};
}

// RGBToHSV, HSVToRGB, AdjustHue and AdjustSaturation.
class ColorKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    is_adjusted_ = op == "AdjustHue" || op == "AdjustSaturation";
    ExpressionBuilder builder;
    const Value a = builder.Input(type), b = builder.Input(type),
                c = builder.Input(type);
    Color result = {a, b, c};
    if (!is_adjusted_) {
      result = op == "RGBToHSV" ? ToHsv(a, b, c) : ToRgb(a, b * c, c);
    } else {
      const Value amount = builder.Input(DataType::kFloat);
      const auto [hue, saturation, value] = ToHsv(a, b, c);
      if (op == "AdjustHue") {
        const Value turned = hue + amount;
        result =
            ToRgb(turned - Floor(turned), value - Min(Min(a, b), c), value);
      } else {
        result = ToRgb(hue, Min(Max(saturation * amount, 0), 1) * value, value);
      }
    }
    for (const Value& channel : result) builder.Output(channel, type);
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const int last = x.rank - 1;
    const int least = is_adjusted_ ? 3 : 1;
    if (x.rank < least) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input must be at least ", least, "-D, not ", ShapeOf(x).ToString()));
    }
    if (x.dim(last) != 3) {
      const std::string problem =
          "input must have 3 channels, not " + std::to_string(x.dim(last));
      return is_adjusted_ ? absl::InvalidArgumentError(problem)
                          : absl::FailedPreconditionError(problem);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    absl::InlinedVector<Operand, 4> inputs, outputs;
    for (int64_t channel = 0; channel < 3; ++channel) {
      inputs.push_back(ir::Range(x, last, channel, channel + 1));
      outputs.push_back(ir::Range(y, last, channel, channel + 1));
    }
    if (is_adjusted_) {
      TFPLUG_ASSIGN_OR_RETURN(Operand amount, GetView(run, 1));
      if (amount.rank != 0) {
        return absl::InvalidArgumentError(
            "the second input must be a scalar, not " +
            ShapeOf(amount).ToString());
      }
      for (int d = 0; d < x.rank; ++d) amount.AddDim(inputs[0].dim(d), 0);
      inputs.push_back(amount);
    }
    return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                              absl::MakeSpan(outputs));
  }

 private:
  bool is_adjusted_ = false;
  Expression expression_;
};

// AdjustContrastv2: moves each channel away from its mean in the image.
class AdjustContrastKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    constexpr DataType kFloat = DataType::kFloat;
    TFPLUG_ASSIGN_OR_RETURN(
        mean_.map, MakeExpression({type}, {kFloat}, [](Value x) { return x; }));
    TFPLUG_ASSIGN_OR_RETURN(
        mean_.finish,
        MakeExpression({kFloat, kFloat}, {kFloat},
                       [](Value sum, Value count) { return sum / count; }));
    TFPLUG_ASSIGN_OR_RETURN(
        adjust_, MakeExpression({type, kFloat, kFloat}, {type},
                                [](Value x, Value mean, Value factor) {
                                  return (x - mean) * factor + mean;
                                }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(Operand factor, GetView(run, 1));
    if (x.rank < 3 || factor.rank != 0) {
      return absl::InvalidArgumentError(
          "input must be at least 3-D and contrast_factor a scalar, not " +
          ShapeOf(x).ToString() + " and " + ShapeOf(factor).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    const int64_t channels = x.dim(x.rank - 1);
    const int64_t pixels = x.dim(x.rank - 2) * x.dim(x.rank - 3);
    if (x.num_elements() == 0) return absl::OkStatus();
    const int64_t images = x.num_elements() / (channels * pixels);
    const auto as_images = [&](const Operand& view) {
      return ir::WithDimLast(
          Operand::Dense(view.data, view.type, {images, pixels, channels}), 1);
    };
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand mean,
        run.launcher().Allocate(DataType::kFloat, {images, channels}));
    const Operand from = as_images(x);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        mean_,
        {from,
         ir::ScalarOf(DataType::kFloat, static_cast<double>(pixels), from)},
        {mean}));
    for (int d = 0; d < 3; ++d) factor.AddDim(from.dim(d), 0);
    return run.launcher().Map(
        adjust_, {from, ir::WithDim(mean, 2, pixels), factor}, {as_images(y)});
  }

 private:
  Reduction mean_;
  Expression adjust_;
};

}  // namespace op_kernels_internal

inline void ColorOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"RGBToHSV", "HSVToRGB"}) {
    registrar.Add<ColorKernel>(
        KernelDef(op), "T", kernel::SetOf(DataType::kFloat, DataType::kDouble));
  }
  constexpr uint64_t kImages = kernel::SetOf(DataType::kFloat, DataType::kHalf);
  for (const char* op : {"AdjustHue", "AdjustSaturation"}) {
    registrar.Add<ColorKernel>(KernelDef(op), "T", kImages);
  }
  registrar.Add<AdjustContrastKernel>(KernelDef("AdjustContrastv2"), "T",
                                      kImages);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COLOR_H_
