// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_QUANTIZE_H_
#define TFPLUG_OP_KERNELS_QUANTIZE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Simulated quantization: numbers are rounded to those that an integer of a few
// bits can represent, for quantization-aware training.
namespace tfplug {
namespace op_kernels_internal {

// FakeQuantWithMinMaxArgs, -Vars and -VarsPerChannel, and their gradients. The
// range is moved a little so that zero is a multiple of the step.
class FakeQuantKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    const auto has = [&](const char* text) { return op.find(text) != op.npos; };
    is_gradient_ = has("Gradient");
    is_per_channel_ = has("PerChannel");
    has_args_ = has("Args");
    TFPLUG_ASSIGN_OR_RETURN(const int64_t bits,
                            construction.GetAttr<int32_t>("num_bits"));
    TFPLUG_ASSIGN_OR_RETURN(const bool is_narrow,
                            construction.GetAttr<bool>("narrow_range"));
    if (bits < 2 || bits > 16) {
      return absl::InvalidArgumentError(
          "num_bits must be between 2 and 16, not " + std::to_string(bits));
    }
    if (has_args_) {
      TFPLUG_ASSIGN_OR_RETURN(min_, construction.GetAttr<float>("min"));
      TFPLUG_ASSIGN_OR_RETURN(max_, construction.GetAttr<float>("max"));
      if (min_ >= max_) {
        return absl::InvalidArgumentError(
            "min has to be smaller than max: " + std::to_string(min_) +
            " >= " + std::to_string(max_));
      }
    }
    const double low = is_narrow ? 1 : 0;
    const double high = static_cast<double>((int64_t{1} << bits) - 1);
    const auto define = [&](Value (*result)(Value, Value, const Nudged&)) {
      return MakeExpression({kFloat, kFloat, kFloat, kFloat}, {kFloat},
                            [&](Value x, Value g, Value min, Value max) {
                              return result(x, g, Nudge(min, max, low, high));
                            });
    };
    if (!is_gradient_) {
      TFPLUG_ASSIGN_OR_RETURN(main_, define(&Quantized));
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(main_, define(&InputGradient));
    TFPLUG_ASSIGN_OR_RETURN(of_min_.map, define(&MinGradient));
    TFPLUG_ASSIGN_OR_RETURN(of_max_.map, define(&MaxGradient));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand first, GetView(run, 0));
    Operand second = first;
    if (is_gradient_) TFPLUG_ASSIGN_OR_RETURN(second, GetView(run, 1));
    if (ShapeOf(first) != ShapeOf(second)) {
      return absl::InvalidArgumentError(
          "gradient and input must be the same size: " +
          ShapeOf(first).ToString() + " and " + ShapeOf(second).ToString());
    }
    if (is_per_channel_ && first.rank < 1) {
      return absl::InvalidArgumentError("inputs must have a channel dimension");
    }
    const int64_t n = first.num_elements();
    const int64_t depth = is_per_channel_ ? first.dim(first.rank - 1) : 1;
    // [depth, elements of a channel]
    const auto by_channel = [&](const Operand& x) {
      return ir::Transposed(
          Operand::Dense(x.data, x.type, {depth == 0 ? 0 : n / depth, depth}));
    };
    const Operand x = by_channel(is_gradient_ ? second : first);
    const Operand g = by_channel(first);
    std::array<Operand, 2> bounds = {ir::ScalarOf(kFloat, min_, x),
                                     ir::ScalarOf(kFloat, max_, x)};
    for (int i = 0; i < 2 && !has_args_; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand bound,
                              GetView(run, (is_gradient_ ? 2 : 1) + i));
      const std::string name = i == 0 ? "min" : "max";
      if (bound.rank != BoundShape(depth).rank()) {
        return absl::InvalidArgumentError(
            "`" + name + "` must be rank " + (is_per_channel_ ? "1" : "0") +
            " but is rank " + std::to_string(bound.rank));
      }
      if (bound.num_elements() != depth) {
        return absl::InvalidArgumentError(
            name + " has incorrect size, expected " + std::to_string(depth) +
            " was " + std::to_string(bound.num_elements()));
      }
      bounds[static_cast<size_t>(i)] =
          Operand::Dense(bound.data, bound.type, {depth}).AddDim(x.dim(1), 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(first)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        main_, {x, g, bounds[0], bounds[1]}, {by_channel(y)}));
    for (int i = 1; i < run.context().num_outputs(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand sum,
                              run.AllocateOutput(i, BoundShape(depth)));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
          i == 1 ? of_min_ : of_max_, {x, g, bounds[0], bounds[1]},
          {Operand::Dense(sum.data, sum.type, {depth})}));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr DataType kFloat = DataType::kFloat;

  struct Nudged {
    Value min, max, scale, is_empty;
  };
  static Nudged Nudge(Value min, Value max, double low, double high) {
    const Value scale = (max - min) / (high - low);
    const Value zero = low - min / scale;
    const Value down = Floor(zero);
    const Value rounded = down + Cast(zero - down >= .5, kFloat);
    const Value nudged = Max(Min(rounded, high), low);
    return {(low - nudged) * scale, (high - nudged) * scale, scale,
            (min == 0) & (max == 0)};
  }
  static Value Quantized(Value x, Value /*g*/, const Nudged& r) {
    const Value inverse = 1 / r.scale;
    const Value zero = Floor(-r.min * inverse + .5);
    const Value clamped = Max(Min(x, r.max), r.min);
    return Select(r.is_empty, 0,
                  Floor((clamped - r.min) * inverse - zero + .5) * r.scale);
  }
  static Value InputGradient(Value x, Value g, const Nudged& r) {
    return g * Cast(r.is_empty | ((x >= r.min) & (x <= r.max)), kFloat);
  }
  static Value MinGradient(Value x, Value g, const Nudged& r) {
    return g * Cast((!r.is_empty) & (x < r.min), kFloat);
  }
  static Value MaxGradient(Value x, Value g, const Nudged& r) {
    return g * Cast((!r.is_empty) & (x > r.max), kFloat);
  }
  Shape BoundShape(int64_t depth) const {
    return is_per_channel_ ? Shape{depth} : Shape{};
  }

  bool is_gradient_ = false, is_per_channel_ = false, has_args_ = false;
  float min_ = 0, max_ = 0;
  Expression main_;
  Reduction of_min_, of_max_;
};

// QuantizeAndDequantizeV2, V3 and V4: integers of num_bits, of which 0 is 0.
// The range is that of the input unless it is given.
class QuantizeAndDequantizeKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(is_signed_,
                            construction.GetAttr<bool>("signed_input"));
    TFPLUG_ASSIGN_OR_RETURN(is_given_,
                            construction.GetAttr<bool>("range_given"));
    TFPLUG_ASSIGN_OR_RETURN(is_narrow_,
                            construction.GetAttr<bool>("narrow_range"));
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int32_t>("axis"));
    bool rounds_up = false;
    if (construction.HasAttr("num_bits")) {
      TFPLUG_ASSIGN_OR_RETURN(bits_, construction.GetAttr<int32_t>("num_bits"));
      TFPLUG_RETURN_IF_ERROR(CheckBits(bits_));
    }
    if (construction.HasAttr("round_mode")) {
      TFPLUG_ASSIGN_OR_RETURN(const auto mode,
                              construction.GetAttr<std::string>("round_mode"));
      rounds_up = mode == "HALF_UP";
    }
    const DataType computed = ComputeType(type);
    const double largest = type == DataType::kDouble
                               ? std::numeric_limits<double>::max()
                               : double{std::numeric_limits<float>::max()};
    const bool clamps = is_given_;
    TFPLUG_ASSIGN_OR_RETURN(
        quantize_,
        MakeExpression(
            {type, type, type, computed, computed}, {type},
            [&](Value x, Value min, Value max, Value low, Value high) {
              const Value by_min = Select(low * min > 0, low / min, largest);
              const Value by_max = Select(high * max > 0, high / max, largest);
              const Value min_rules = by_min < by_max;
              const Value scale = Select(min_rules, by_min, by_max);
              const Value inverse = Select(min_rules, min / low, max / high);
              if (clamps) {
                x = Max(Min(x, Select(min_rules, high * inverse, max)),
                        Select(min_rules, min, low * inverse));
              }
              const Value scaled = x * scale;
              return (rounds_up ? Floor(scaled + .5) : Rint(scaled)) * inverse;
            }));
    for (Reduction* reduction : {&smallest_, &largest_}) {
      TFPLUG_ASSIGN_OR_RETURN(
          *reduction,
          primitives::MakeReduction(
              reduction == &smallest_ ? ReduceKind::kMin : ReduceKind::kMax,
              {type}, computed, [&](Value x) { return Cast(x, computed); },
              type));
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    int64_t bits = bits_;
    if (run.context().num_inputs() > 3) {
      TFPLUG_ASSIGN_OR_RETURN(
          bits, run.GetScalar(3,
                              "Invalid shape. The `num_bits` tensor should be "
                              "a scalar. Got: "));
      TFPLUG_RETURN_IF_ERROR(CheckBits(bits));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ByChannel(input, axis_));
    const int64_t depth = x.dim(0);
    std::array<Operand, 2> bounds;
    for (int i = 0; i < 2 && is_given_; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(bounds[static_cast<size_t>(i)],
                              GetBound(run, 1, i, axis_, depth));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(input)));
    if (x.num_elements() == 0) return absl::OkStatus();
    for (int i = 0; i < 2; ++i) {
      Operand& bound = bounds[static_cast<size_t>(i)];
      if (!is_given_) {
        TFPLUG_ASSIGN_OR_RETURN(bound,
                                run.launcher().Allocate(x.type, {depth}));
        TFPLUG_RETURN_IF_ERROR(
            run.launcher().Reduce(i == 0 ? smallest_ : largest_, {x}, {bound}));
      }
      bound.AddDim(x.dim(1), 0).AddDim(x.dim(2), 0);
    }
    const double high =
        static_cast<double>((int64_t{1} << (bits - (is_signed_ ? 1 : 0))) - 1);
    const double low = is_signed_ ? -high - (is_narrow_ ? 0 : 1) : 0;
    const DataType computed = ComputeType(x.type);
    TFPLUG_ASSIGN_OR_RETURN(const Operand out, ByChannel(y, axis_));
    return run.launcher().Map(
        quantize_,
        {x, bounds[0], bounds[1], ir::ScalarOf(computed, low, x),
         ir::ScalarOf(computed, high, x)},
        {out});
  }

  // Returns a dense view as [channel, before, after]; without an axis there is
  // one channel.
  static absl::StatusOr<Operand> ByChannel(const Operand& x, int64_t axis) {
    if (axis < -1) {
      return absl::InvalidArgumentError("Axis must be at least -1, not " +
                                        std::to_string(axis));
    }
    if (axis >= x.rank) return RankError(axis, x.rank);
    if (axis == -1) {
      return Operand::Dense(x.data, x.type, {1, 1, x.num_elements()});
    }
    const auto d = static_cast<int>(axis);
    Operand view = Operand::Dense(
        x.data, x.type,
        {ir::CountOf(x, 0, d), x.dim(d), ir::CountOf(x, d + 1, x.rank)});
    std::swap(view.dim(0), view.dim(1));
    std::swap(view.stride(0), view.stride(1));
    return view;
  }
  // Returns input_min (`i` is 0) or input_max, a scalar, or with an axis a
  // vector, as a vector. `first` is the index of input_min.
  static absl::StatusOr<Operand> GetBound(OpRun& run, int first, int i,
                                          int64_t axis, int64_t depth) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand bound, GetView(run, first + i));
    // TensorFlow's CPU accepts a scalar of any rank for V3, the op with four
    // inputs and one output.
    const bool is_v3 =
        run.context().num_inputs() == 4 && run.context().num_outputs() == 1;
    const std::string name = i == 0 ? "input_min" : "input_max";
    const std::string shape = ". It has shape " + ShapeOf(bound).ToString();
    if (axis == -1 && (is_v3 ? bound.num_elements() != 1 : bound.rank != 0)) {
      return absl::InvalidArgumentError(name + " must be a scalar" + shape);
    }
    if (axis != -1 && bound.rank != 1) {
      return absl::InvalidArgumentError("Shape must be rank 1 for " + name +
                                        "_tensor when the axis is specified" +
                                        shape);
    }
    if (bound.num_elements() != depth) {
      return absl::InvalidArgumentError(
          name + "_tensor has incorrect size, was " +
          std::to_string(bound.num_elements()) + " expected " +
          std::to_string(depth) + " to match dim " + std::to_string(axis) +
          " of the input");
    }
    return Operand::Dense(bound.data, bound.type, {depth});
  }

 private:
  absl::Status CheckBits(int64_t bits) const {
    if (bits > 0 && bits < (is_signed_ ? 62 : 63)) return absl::OkStatus();
    return absl::InvalidArgumentError("num_bits is out of range: " +
                                      std::to_string(bits));
  }

  bool is_signed_ = true, is_given_ = false, is_narrow_ = false;
  int64_t bits_ = 8, axis_ = -1;
  Expression quantize_;
  Reduction smallest_, largest_;
};

// QuantizeAndDequantizeV4Grad: the gradient within the range, and 0 outside.
class QuantizeGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int32_t>("axis"));
    TFPLUG_ASSIGN_OR_RETURN(
        gradient_, MakeExpression({type, type, type, type}, {type},
                                  [](Value g, Value x, Value min, Value max) {
                                    return g * Cast((x >= min) & (x <= max),
                                                    g.type());
                                  }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 1));
    if (ShapeOf(gradient) != ShapeOf(input)) {
      return absl::InvalidArgumentError(
          "gradient and input must be the same size: " +
          ShapeOf(gradient).ToString() + " and " + ShapeOf(input).ToString());
    }
    using Quantize = QuantizeAndDequantizeKernel;
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, Quantize::ByChannel(input, axis_));
    TFPLUG_ASSIGN_OR_RETURN(const Operand g,
                            Quantize::ByChannel(gradient, axis_));
    std::array<Operand, 2> bounds;
    for (int i = 0; i < 2; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(Operand bound,
                              Quantize::GetBound(run, 2, i, axis_, x.dim(0)));
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand none,
          run.AllocateOutput(i + 1, axis_ == -1 ? Shape{} : ShapeOf(bound)));
      TFPLUG_RETURN_IF_ERROR(Fill(run, none, 0));
      bounds[static_cast<size_t>(i)] =
          bound.AddDim(x.dim(1), 0).AddDim(x.dim(2), 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(input)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand out, Quantize::ByChannel(y, axis_));
    return run.launcher().Map(gradient_, {g, x, bounds[0], bounds[1]}, {out});
  }

 private:
  int64_t axis_ = -1;
  Expression gradient_;
};

}  // namespace op_kernels_internal

inline void QuantizeOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  // The former have no attribute T.
  if (!registrar.Supported(kernel::SetOf(DataType::kFloat)).empty()) {
    for (const std::string kind : {"Args", "Vars", "VarsPerChannel"}) {
      registrar.Add<FakeQuantKernel>(KernelDef("FakeQuantWithMinMax" + kind));
      registrar.Add<FakeQuantKernel>(
          KernelDef("FakeQuantWithMinMax" + kind + "Gradient"));
    }
  }
  for (const char* op :
       {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    registrar.Add<QuantizeAndDequantizeKernel>(KernelDef(op), "T", kFloatTypes);
  }
  registrar.Add<QuantizeAndDequantizeKernel>(
      KernelDef("QuantizeAndDequantizeV3").HostMemory("num_bits"), "T",
      kFloatTypes);
  registrar.Add<QuantizeGradKernel>(KernelDef("QuantizeAndDequantizeV4Grad"),
                                    "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_QUANTIZE_H_
