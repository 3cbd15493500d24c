// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSE_LAYER_NORM_H_
#define TFPLUG_PASSES_FUSE_LAYER_NORM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/graph/constant.h"
#include "tfplug/ops/array.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/fuse_activations.h"
#include "tfplug/passes/internal/shapes.h"
#include "tfplug/patterns/internal/const_value.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Fuses layer normalization over the last dimension into a TfplugLayerNorm
// (passes/transformer_ops.h), if the plug-in has a kernel for it. Covers
// keras.layers.LayerNormalization of Keras 3, also in training: the fused op
// provides the mean and the reciprocal standard deviation that the gradient
// uses, and the nodes between that and the output are kept if the gradient
// uses them. The variance is that of tf.nn.moments, whose formula differs
// before and since TensorFlow 2.22. Covers Keras 2 in inference, where the layer is a
// FusedBatchNormV3 between reshapes. Results are the same except for rounding
// errors. The shapes must be known, except for the batch.
inline std::vector<patterns::Rule> FuseLayerNormRules();

class FuseLayerNorm : public patterns::RulesPass<FuseLayerNormRules> {};

namespace passes_internal {

// Builds the rules. gamma and beta are vectors, or vectors reshaped to rows.
class LayerNormRules {
 public:
  // x s - mean s + beta, where s = rstd gamma, or (x - mean) s + beta in Keras
  // 3.16.
  patterns::Rule ForMoments() const {
    using namespace patterns;  // NOLINT
    const auto negative = Match<ops::Neg>(mean_).MayHaveOtherUses();
    const auto scale = Product(rstd_, row_gamma_).MayHaveOtherUses();
    const auto scaled = Product(x_, scale), offset = Product(negative, scale);
    // TensorFlow's rewriters may change the order of the sum.
    const auto root =
        OneOf(Sum(OneOf(Match<ops::AddN>(scaled, offset).Commutative(),
                        Sum(scaled, offset)),
                  row_beta_),
              Sum(scaled, Sum(offset, row_beta_)),
              Sum(Product(Centered(mean_), scale), row_beta_));
    const auto norm = Fused().Set("epsilon", [*this](const Matched& m) {
      return static_cast<float>(NumberOf(m, epsilon_));
    });
    return Rule("LayerNormalization", root)
        .OnlyIf("the last dimension is normalized",
                [*this](const Matched& m) {
                  const PartialShape x = ShapeOf(m, m[x_]);
                  return IsLastAxis(m, mean_axis_, x.rank()) &&
                         IsLastAxis(m, variance_axis_, x.rank()) &&
                         (!m.has(centered_axis_) ||
                          IsLastAxis(m, centered_axis_, x.rank()));
                })
        .OnlyIf(kVectors, [*this](const Matched& m) { return FitRows(m); })
        .ReplaceBy(norm)
        .AlsoReplace(mean_, norm[1])
        .AlsoReplace(rstd_, norm[2])
        .AlsoReplace(mean_of_centered_, New<ops::ZerosLike>(norm[1]))
        .AlsoReplace(raw_variance_, VarianceOf(norm[2]));
  }

  // A training batch normalization, without scale and offset, of x as [1, rows,
  // depth, 1], whose channels are the rows.
  patterns::Rule ForBatchNorm() const {
    using namespace patterns;  // NOLINT
    using Norm = ops::FusedBatchNormV3;
    const auto flat = Match<ops::Reshape>(x_, MatchConst());
    const auto norm = Match<Norm>(flat, MatchConst(1), MatchConst(0),
                                  Any("mean"), Any("variance"))
                          .Where(Norm::is_training, true)
                          .Where(Norm::data_format, "NCHW");
    const auto shaped = Match<ops::Reshape>(norm, MatchConst());
    const auto root = Sum(Product(shaped, row_gamma_), row_beta_);
    return Rule("LayerNormalization by FusedBatchNormV3", root)
        .OnlyIf("each row is a channel",
                [*this, flat, shaped](const Matched& m) {
                  const PartialShape rows = ShapeOf(m, m[flat]);
                  const PartialShape x = ShapeOf(m, m[x_]);
                  return rows.rank() == 4 && rows.dim(0) == 1 &&
                         rows.dim(3) == 1 && DepthOf(x) > 0 &&
                         rows.dim(2) == DepthOf(x) &&
                         x.rank() == ShapeOf(m, m[shaped]).rank() &&
                         DepthOf(ShapeOf(m, m[shaped])) == DepthOf(x);
                })
        .OnlyIf(kVectors, [*this](const Matched& m) { return FitRows(m); })
        .ReplaceBy(Fused().Copy(norm, "epsilon", "epsilon"));
  }

 private:
  using Matched = patterns::Matched;
  using Pattern = patterns::Pattern;
  using Row = patterns::ChoicePattern<ops::Reshape>;

  static constexpr char kVectors[] =
      "gamma and beta are vectors with one element per element of a row";

  // Matches `vector`, or its Reshape.
  static Row RowOf(const Pattern& vector) {
    using namespace patterns;  // NOLINT
    return OneOf(Match<ops::Reshape>(vector, Any()).MayHaveOtherUses(), vector);
  }
  // Matches x - mean, which the gradient uses.
  patterns::NodePattern<ops::Sub> Centered(const Pattern& mean) const {
    return patterns::Match<ops::Sub>(x_, mean).MayHaveOtherUses();
  }
  // Returns 1 / rstd^2 - epsilon, which rounding must not make negative: for a
  // negative variance, tf.nn.moments has no gradient.
  patterns::Replacement VarianceOf(const patterns::Replacement& rstd) const {
    using namespace patterns;  // NOLINT
    return New<ops::Maximum>(
        New<ops::Sub>(New<ops::Reciprocal>(New<ops::Square>(rstd)), epsilon_),
        zero_);
  }
  patterns::NewNode<> Fused() const {
    return patterns::New("TfplugLayerNorm", x_, gamma_, beta_).RequireKernel();
  }
  static double NumberOf(const Matched& m, const Pattern& constant) {
    const absl::StatusOr<Constant> value =
        m.context().ReadConstant(m.node(constant));
    return value.ok() ? patterns_internal::SplatOf(*value).value_or(0) : 0;
  }
  static bool IsLastAxis(const Matched& m, const Pattern& axis, int rank) {
    const absl::StatusOr<Constant> value =
        m.context().ReadConstant(m.node(axis));
    if (!value.ok() || rank < 1) return false;
    const auto axes = value->GetIntegers();
    return axes.ok() && axes->size() == 1 &&
           ((*axes)[0] == -1 || (*axes)[0] == rank - 1);
  }
  // Returns whether gamma and beta are vectors that are added along the last
  // dimension.
  bool FitRows(const Matched& m) const {
    const PartialShape x = ShapeOf(m, m[x_]);
    const int64_t depth = DepthOf(x);
    for (const auto& [vector, row] :
         {std::make_pair(&gamma_, Pattern(row_gamma_)),
          std::make_pair(&beta_, Pattern(row_beta_))}) {
      const PartialShape shape = ShapeOf(m, m[row]);
      if (!IsVector(ShapeOf(m, m[*vector]), depth) || !IsRow(shape, depth) ||
          shape.rank() > x.rank()) {
        return false;
      }
    }
    return true;
  }
  const Pattern x_ = patterns::Any("x"), gamma_ = patterns::Any("gamma"),
                beta_ = patterns::Any("beta");
  const patterns::NodePattern<> mean_axis_ = patterns::MatchConst(),
                                variance_axis_ = patterns::MatchConst(),
                                centered_axis_ = patterns::MatchConst();
  const patterns::NodePattern<> epsilon_ =
      patterns::MatchConst("a number", [](const Constant& c) {
        return patterns_internal::SplatOf(c).has_value();
      });
  const Row row_gamma_ = RowOf(gamma_), row_beta_ = RowOf(beta_);
  const patterns::NodePattern<ops::Mean> mean_ =
      patterns::Match<ops::Mean>(x_, mean_axis_)
          .Where(ops::Mean::keep_dims, true);
  const patterns::Pattern maybe_stopped_mean_ = patterns::Optional(
      patterns::Match<ops::StopGradient>(mean_).MayHaveOtherUses());
  // E[(x - mean)^2], until 2.21.
  const patterns::NodePattern<ops::Mean> plain_variance_ =
      patterns::Match<ops::Mean>(
          patterns::Match<ops::SquaredDifference>(x_, maybe_stopped_mean_)
              .Commutative(),
          variance_axis_)
          .Where(ops::Mean::keep_dims, true);
  // max(E[c^2] - E[c]^2, 0), where c = x - mean, since 2.22.
  const patterns::NodePattern<ops::Sub> centered_ =
      Centered(maybe_stopped_mean_);
  const patterns::NodePattern<ops::Mean> mean_of_centered_ =
      patterns::Match<ops::Mean>(centered_, centered_axis_)
          .Where(ops::Mean::keep_dims, true);
  const patterns::NodePattern<ops::Sub> raw_variance_ =
      patterns::Match<ops::Sub>(
          patterns::Match<ops::Mean>(patterns::Match<ops::Square>(centered_),
                                     variance_axis_)
              .Where(ops::Mean::keep_dims, true),
          patterns::Match<ops::Square>(mean_of_centered_));
  const patterns::NodePattern<> zero_ = patterns::MatchConst(0);
  const patterns::NodePattern<ops::Rsqrt> rstd_ = patterns::Match<ops::Rsqrt>(
      Sum(patterns::OneOf(plain_variance_,
                          patterns::Match<ops::Maximum>(raw_variance_, zero_)
                              .Commutative()),
          epsilon_));
};

}  // namespace passes_internal

inline std::vector<patterns::Rule> FuseLayerNormRules() {
  const passes_internal::LayerNormRules rules;
  return {rules.ForMoments(), rules.ForBatchNorm()};
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FUSE_LAYER_NORM_H_
