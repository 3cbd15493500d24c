// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_BATCH_NORM_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_BATCH_NORM_H_

#include <cstdint>

#include "tfplug/base/separate.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// Batch normalization composed of Map and Reduce.
namespace tfplug::primitives_internal {

constexpr DataType kStatistic = DataType::kFloat;

// Returns an image [..., channels] as [channels, ...].
inline Operand ByChannel(const Operand& image) {
  const int last = image.rank - 1;
  Operand view = image;
  view.rank = last;
  return ir::WithDim(view, 0, image.dim(last), image.stride(last));
}
// Returns a vector repeated as `by_channel`.
inline Operand Repeated(const Operand& vector, const Operand& by_channel) {
  Operand view = vector;
  for (int d = 1; d < by_channel.rank; ++d) view.AddDim(by_channel.dim(d), 0);
  return view;
}
inline Operand StatisticOf(double value, const Operand& like) {
  return ir::ScalarOf(kStatistic, value, like);
}
// Returns the number of elements of a channel.
inline double CountOfChannel(const Operand& image) {
  return static_cast<double>(ir::CountOf(image, 0, image.rank - 1));
}

// The computations for images of one type.
struct BatchNormCode {
  // Inputs of x and of the channel's mean; the finish divides by a count.
  Reduction mean, variance;
  // (x - mean) / sqrt(variance + epsilon) * scale + offset. Inputs: x, scale,
  // offset, mean, variance, epsilon.
  Expression normalize;
  // A moving statistic. Inputs: the statistic, the old moving one, factor,
  // correction.
  Expression move;

  static absl::StatusOr<BatchNormCode> Make(DataType type) {
    constexpr DataType s = kStatistic;
    BatchNormCode code;
    TFPLUG_ASSIGN_OR_RETURN(code.mean.map, CastExpression(type, s));
    TFPLUG_ASSIGN_OR_RETURN(
        code.mean.finish,
        MakeExpression({s, s}, {s},
                       [](Value sum, Value count) { return sum / count; }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.variance.map,
        MakeExpression({type, s}, {s},
                       [](Value x, Value mean) { return Square(x - mean); }));
    code.variance.finish = code.mean.finish;
    TFPLUG_ASSIGN_OR_RETURN(
        code.normalize,
        MakeExpression(
            {type, s, s, s, s, s}, {type},
            [](Value x, Value scale, Value offset, Value mean, Value variance,
               Value epsilon) {
              return (x - mean) * (Rsqrt(variance + epsilon) * scale) + offset;
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.move,
        MakeExpression(
            {s, s, s, s}, {s},
            [](Value value, Value old, Value factor, Value correction) {
              const Value corrected = value * correction;
              return Select(factor == 1, corrected,
                            (1 - factor) * old + factor * corrected);
            }));
    return code;
  }
};

inline absl::StatusOr<const BatchNormCode*> BatchNormCodeOf(DataType type) {
  static primitives::Memo<BatchNormCode> memo;
  return memo.Get(primitives::KeyOf(type),
                  [&] { return BatchNormCode::Make(type); });
}

inline absl::Status Normalize(Launcher& launcher, const BatchNormCode& code,
                              double epsilon,
                              const BatchNormInferenceOperands& n) {
  const Operand x = ByChannel(n.x);
  return launcher.Map(
      code.normalize,
      {x, Repeated(n.scale, x), Repeated(n.offset, x), Repeated(n.mean, x),
       Repeated(n.variance, x), StatisticOf(epsilon, x)},
      {ByChannel(n.y)});
}

TFPLUG_SEPARABLE absl::Status ComposeBatchNormTraining(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormTrainingOperands& n) {
  TFPLUG_ASSIGN_OR_RETURN(const BatchNormCode* const code,
                          BatchNormCodeOf(n.x.type));
  const Operand x = ByChannel(n.x);
  const double count = CountOfChannel(n.x);
  const Operand counts = StatisticOf(count, x);
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(code->mean, {x, counts}, {n.mean}));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      code->variance, {x, Repeated(n.mean, x), counts}, {n.variance}));
  const double factor = norm.average_factor;
  const auto move = [&](const Operand& value, const Operand& old,
                        double correction, const Operand& to) {
    return launcher.Map(code->move,
                        {value, factor == 1 ? value : old,
                         StatisticOf(factor, to), StatisticOf(correction, to)},
                        {to});
  };
  TFPLUG_RETURN_IF_ERROR(move(n.mean, n.old_mean, 1, n.new_mean));
  TFPLUG_RETURN_IF_ERROR(move(n.variance, n.old_variance,
                              count > 1 ? count / (count - 1) : count,
                              n.new_variance));
  return Normalize(launcher, *code, norm.epsilon,
                   {n.x, n.scale, n.offset, n.mean, n.variance, n.y});
}

TFPLUG_SEPARABLE absl::Status ComposeBatchNormInference(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormInferenceOperands& n) {
  TFPLUG_ASSIGN_OR_RETURN(const BatchNormCode* const code,
                          BatchNormCodeOf(n.x.type));
  return Normalize(launcher, *code, norm.epsilon, n);
}

// The computations of the gradients for images of one type.
struct BatchNormGradientCode {
  Reduction offset, scale;
  Expression training, inference;

  static absl::StatusOr<BatchNormGradientCode> Make(DataType type) {
    constexpr DataType s = kStatistic;
    BatchNormGradientCode code;
    TFPLUG_ASSIGN_OR_RETURN(code.offset, primitives::MakeReduction(
                                             ReduceKind::kSum, {type}, s,
                                             [](Value dy) { return dy; }, s));
    TFPLUG_ASSIGN_OR_RETURN(
        code.scale.map,
        MakeExpression({type, type, s}, {s}, [](Value dy, Value x, Value mean) {
          return dy * (x - mean);
        }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.scale.finish,
        MakeExpression({s, s, s}, {s},
                       [](Value sum, Value variance, Value epsilon) {
                         return sum * Rsqrt(variance + epsilon);
                       }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.training,
        MakeExpression(
            {type, type, s, s, s, s, s, s, s}, {type},
            [](Value dy, Value x, Value scale, Value mean, Value variance,
               Value epsilon, Value dscale, Value doffset, Value count) {
              const Value deviation = Rsqrt(variance + epsilon);
              const Value rest =
                  doffset / count + (x - mean) * (deviation * dscale / count);
              return (dy - rest) * (scale * deviation);
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        code.inference,
        MakeExpression(
            {type, s, s, s}, {type},
            [](Value dy, Value scale, Value variance, Value epsilon) {
              return dy * (scale * Rsqrt(variance + epsilon));
            }));
    return code;
  }
};

TFPLUG_SEPARABLE absl::Status ComposeBatchNormGradient(
    Launcher& launcher, const BatchNormalization& norm,
    const BatchNormGradientOperands& n) {
  static primitives::Memo<BatchNormGradientCode> memo;
  TFPLUG_ASSIGN_OR_RETURN(const BatchNormGradientCode* const code,
                          memo.Get(primitives::KeyOf(n.x.type), [&] {
                            return BatchNormGradientCode::Make(n.x.type);
                          }));
  const Operand dy = ByChannel(n.y_gradient), x = ByChannel(n.x);
  const Operand means = Repeated(n.mean, x);
  const Operand variances = Repeated(n.variance, x);
  const Operand epsilon = StatisticOf(norm.epsilon, x);
  TFPLUG_RETURN_IF_ERROR(
      launcher.Reduce(code->offset, {dy}, {n.offset_gradient}));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      code->scale, {dy, x, means, variances, epsilon}, {n.scale_gradient}));
  const Operand scales = Repeated(n.scale, x);
  if (!norm.is_training) {
    return launcher.Map(code->inference, {dy, scales, variances, epsilon},
                        {ByChannel(n.x_gradient)});
  }
  return launcher.Map(
      code->training,
      {dy, x, scales, means, variances, epsilon, Repeated(n.scale_gradient, x),
       Repeated(n.offset_gradient, x), StatisticOf(CountOfChannel(n.x), x)},
      {ByChannel(n.x_gradient)});
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_BATCH_NORM_H_
