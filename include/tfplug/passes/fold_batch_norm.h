// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FOLD_BATCH_NORM_H_
#define TFPLUG_PASSES_FOLD_BATCH_NORM_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/constant.h"
#include "tfplug/ops/array.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/internal/shapes.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

namespace passes_internal {

// Returns the number of output channels of a convolution with this filter; 0 if
// the filter is malformed.
template <class Conv>
size_t FilterDepth(const Constant& filter) {
  const Shape& shape = filter.shape();
  if (shape.rank() != 4) return 0;
  // [rows, columns, in, out], or for depthwise convolutions
  // [rows, columns, in, multiplier].
  const bool is_depthwise = std::is_same_v<Conv, ops::DepthwiseConv2dNative>;
  return static_cast<size_t>(shape.dim(3) * (is_depthwise ? shape.dim(2) : 1));
}

// Builds the rule for one kind of convolution with a constant filter.
template <class Conv>
class FoldBatchNormRule {
 public:
  template <class CopyAttrs>
  patterns::Rule Make(const CopyAttrs& copy_attrs) const {
    using namespace patterns;
    const FoldBatchNormRule self = *this;
    const auto filter =
        NewConst([self](const Matched& m) { return self.FoldedFilter(m); });
    const auto bias =
        NewConst([self](const Matched& m) { return self.FoldedBias(m); });
    const auto conv = copy_attrs(New<Conv>(x_, filter), conv_)
                          .Copy(conv_, Conv::T_attr)
                          .Copy(conv_, Conv::strides)
                          .Copy(conv_, Conv::padding)
                          .Copy(conv_, Conv::explicit_paddings)
                          .Copy(conv_, Conv::data_format)
                          .Copy(conv_, Conv::dilations);
    return Rule(std::string(Conv::kName) + " + FusedBatchNormV3", norm_)
        .OnlyIf(
            "the nodes have the same data_format",
            [self](const Matched& m) {
              const auto format = [&m](const Pattern& node) {
                return m.node(node)
                    .template GetAttr<std::string>("data_format")
                    .value_or("");
              };
              const std::string norm = format(self.norm_);
              return format(self.conv_) == norm &&
                     (!m.has(self.bias_add_) || format(self.bias_add_) == norm);
            })
        .Priority(2)
        .ReplaceBy(New<ops::BiasAdd>(conv, bias)
                       .Copy(norm_, ops::BiasAdd::T_attr)
                       .Copy(norm_, ops::BiasAdd::data_format)
                       .RequireKernel());
  }

 private:
  using Norm = ops::FusedBatchNormV3;
  using Matched = patterns::Matched;
  using ConstPattern = patterns::NodePattern<ops::Const>;

  static ConstPattern MatchConst() {
    return patterns::Match<ops::Const>().MayHaveOtherUses();
  }
  static absl::StatusOr<std::vector<float>> Read(const Matched& m,
                                                 const ConstPattern& pattern,
                                                 size_t size) {
    TFPLUG_ASSIGN_OR_RETURN(const Constant constant,
                            m.context().ReadConstant(m.node(pattern)));
    TFPLUG_ASSIGN_OR_RETURN(std::vector<float> elements,
                            constant.GetElements<float>());
    if (constant.shape().rank() != 1 || elements.size() != size) {
      return absl::InvalidArgumentError(
          "node '" + std::string(m.node(pattern).name()) +
          "' (Const) has shape " + constant.shape().ToString() +
          ", but there are " + std::to_string(size) + " channels");
    }
    return elements;
  }

  // Returns the factor by which the normalization scales each channel.
  absl::StatusOr<std::vector<double>> Factors(const Matched& m,
                                              size_t depth) const {
    TFPLUG_ASSIGN_OR_RETURN(const auto scale, Read(m, scale_, depth));
    TFPLUG_ASSIGN_OR_RETURN(const auto variance, Read(m, variance_, depth));
    TFPLUG_ASSIGN_OR_RETURN(const float epsilon,
                            m.node(norm_).GetAttr<float>("epsilon"));
    std::vector<double> factors(depth);
    for (size_t i = 0; i < depth; ++i) {
      factors[i] = scale[i] / std::sqrt(double{variance[i]} + epsilon);
    }
    return factors;
  }

  absl::StatusOr<Constant> FoldedFilter(const Matched& m) const {
    TFPLUG_ASSIGN_OR_RETURN(const Constant filter,
                            m.context().ReadConstant(m.node(filter_)));
    TFPLUG_ASSIGN_OR_RETURN(std::vector<float> weights,
                            filter.GetElements<float>());
    const size_t depth = FilterDepth<Conv>(filter);
    TFPLUG_ASSIGN_OR_RETURN(const auto factors, Factors(m, depth));
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(weights[i] * factors[i % depth]);
    }
    return Constant::Of(filter.shape(), weights);
  }

  absl::StatusOr<Constant> FoldedBias(const Matched& m) const {
    TFPLUG_ASSIGN_OR_RETURN(const Constant filter,
                            m.context().ReadConstant(m.node(filter_)));
    const size_t depth = FilterDepth<Conv>(filter);
    TFPLUG_ASSIGN_OR_RETURN(const auto factors, Factors(m, depth));
    TFPLUG_ASSIGN_OR_RETURN(const auto offset, Read(m, offset_, depth));
    TFPLUG_ASSIGN_OR_RETURN(const auto mean, Read(m, mean_, depth));
    std::vector<float> before(depth);
    if (m.has(bias_)) {
      TFPLUG_ASSIGN_OR_RETURN(before, Read(m, bias_, depth));
    }
    std::vector<float> bias(depth);
    for (size_t i = 0; i < depth; ++i) {
      bias[i] = static_cast<float>(offset[i] +
                                   (double{before[i]} - mean[i]) * factors[i]);
    }
    return Constant::Of(Shape{static_cast<int64_t>(depth)}, bias);
  }

  const patterns::Pattern x_ = patterns::Any("x");
  const ConstPattern filter_ = MatchConst(), bias_ = MatchConst(),
                     scale_ = MatchConst(), offset_ = MatchConst(),
                     mean_ = MatchConst(), variance_ = MatchConst();
  const patterns::NodePattern<Conv> conv_ =
      patterns::Match<Conv>(x_, filter_).Where(Conv::T_attr, DataType::kFloat);
  const patterns::NodePattern<ops::BiasAdd> bias_add_ =
      patterns::Match<ops::BiasAdd>(conv_, bias_);
  const patterns::NodePattern<Norm> norm_ =
      patterns::Match<Norm>(patterns::Optional(bias_add_), scale_, offset_,
                            mean_, variance_)
          .Where(Norm::is_training, false)
          .Where(Norm::T_attr, DataType::kFloat)
          .Where(Norm::U_attr, DataType::kFloat);
};

// TensorFlow's own rewriters may turn such a normalization into a product with
// a constant row, and a sum. This rule folds the product into the filter.
template <class Conv, class CopyAttrs>
patterns::Rule FoldScaleRule(const CopyAttrs& copy_attrs) {
  using namespace patterns;
  const Pattern x = Any("x");
  const auto filter = Match<ops::Const>().MayHaveOtherUses();
  const auto scale = Match<ops::Const>().MayHaveOtherUses();
  const auto conv = Match<Conv>(x, filter)
                        .Where(Conv::T_attr, DataType::kFloat)
                        .Where(Conv::data_format, "NHWC");
  const auto root = Match<ops::Mul>(conv, scale).Commutative();
  const auto folded =
      NewConst([=](const Matched& m) -> absl::StatusOr<Constant> {
        TFPLUG_ASSIGN_OR_RETURN(const Constant old,
                                m.context().ReadConstant(m.node(filter)));
        TFPLUG_ASSIGN_OR_RETURN(const Constant row,
                                m.context().ReadConstant(m.node(scale)));
        TFPLUG_ASSIGN_OR_RETURN(std::vector<float> weights,
                                old.GetElements<float>());
        TFPLUG_ASSIGN_OR_RETURN(const auto factors, row.GetElements<float>());
        const size_t depth = FilterDepth<Conv>(old);
        if (!IsRow(PartialShape(row.shape()), static_cast<int64_t>(depth)) ||
            row.shape().rank() > 4) {
          return absl::InvalidArgumentError(
              "node '" + std::string(m.node(scale).name()) +
              "' (Const) does not hold one factor per channel");
        }
        for (size_t i = 0; i < weights.size(); ++i) {
          weights[i] *= factors[i % depth];
        }
        return Constant::Of(old.shape(), weights);
      });
  return Rule(std::string(Conv::kName) + " * constant", root)
      .Priority(2)
      .ReplaceBy(copy_attrs(New<Conv>(x, folded), conv)
                     .Copy(conv, Conv::T_attr)
                     .Copy(conv, Conv::strides)
                     .Copy(conv, Conv::padding)
                     .Copy(conv, Conv::explicit_paddings)
                     .Copy(conv, Conv::data_format)
                     .Copy(conv, Conv::dilations));
}

}  // namespace passes_internal

// Folds, for inference, a FusedBatchNormV3 with constant statistics, after a
// Conv2D or DepthwiseConv2dNative with a constant filter, into the filter and a
// BiasAdd. Also folds a product with one constant per channel into the filter.
// Results may differ by rounding errors.
inline std::vector<patterns::Rule> FoldBatchNormRules() {
  const auto copy_conv = [](const auto& node, const auto& conv) {
    return node.Copy(conv, ops::Conv2D::use_cudnn_on_gpu);
  };
  const auto copy_none = [](const auto& node, const auto&) { return node; };
  using Depthwise = ops::DepthwiseConv2dNative;
  std::vector<patterns::Rule> rules;
  rules.push_back(
      passes_internal::FoldBatchNormRule<ops::Conv2D>().Make(copy_conv));
  rules.push_back(
      passes_internal::FoldBatchNormRule<Depthwise>().Make(copy_none));
  rules.push_back(passes_internal::FoldScaleRule<ops::Conv2D>(copy_conv));
  rules.push_back(passes_internal::FoldScaleRule<Depthwise>(copy_none));
  return rules;
}

class FoldBatchNorm : public patterns::RulesPass<FoldBatchNormRules> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FOLD_BATCH_NORM_H_
