// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSION_RULES_H_
#define TFPLUG_PASSES_FUSION_RULES_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/ops/array.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/internal/fused_products.h"
#include "tfplug/passes/internal/shapes.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Fuses up to three kernels into one:
//
//   MatMul, Conv2D (NHWC) or DepthwiseConv2dNative (NHWC)
//   + BiasAdd, or AddV2 with a bias vector; or, for convolutions, the
//     FusedBatchNormV3 of inference
//   + optionally Relu, Relu6, Elu, LeakyRelu, Tanh or Sigmoid
//
// The result is a _FusedMatMul, _FusedConv2D or _FusedDepthwiseConv2dNative, if
// the plug-in has a kernel for that op and type on the pass's device. Results
// are the same except for rounding errors within the kernel. A node whose
// output a gradient needs is not fused.
//
// The kernels must implement all combinations above, as given by the attribute
// fused_ops. If they lack some activations, pass only the implemented ones.
inline std::vector<patterns::Rule> FusionRules(
    const std::vector<std::string>& activations);
inline std::vector<patterns::Rule> FusionRules() {
  return FusionRules({"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"});
}

class Fusion : public patterns::RulesPass<FusionRules> {};

namespace passes_internal {

// Builds the rules for one product, described by MatMulFusion, Conv2DFusion or
// DepthwiseFusion.
template <class Kind>
class FusionRuleBuilder {
 public:
  using Fused = typename Kind::Fused;
  using Matched = patterns::Matched;
  using Pattern = patterns::Pattern;

  FusionRuleBuilder(std::vector<std::string> activations,
                    std::vector<patterns::Rule>& rules)
      : activations_(std::move(activations)), rules_(rules) {}

  // Adds a rule for product + BiasAdd.
  void AddBias() {
    using namespace patterns;  // NOLINT
    const auto biased = Match<ops::BiasAdd>(product_, b_)
                            .Where(ops::BiasAdd::data_format, "NHWC");
    const Pattern root = Activated(biased);
    Add("BiasAdd", root, Finish(New<Fused>(x_, w_, b_), {"BiasAdd"}, 1));
  }

  // Adds a rule for product + AddV2 with a bias vector, or with one reshaped to
  // a row, as in Keras' layers.
  void AddSum() {
    using namespace patterns;  // NOLINT
    const auto reshaped = Match<ops::Reshape>(b_, Any()).MayHaveOtherUses();
    const auto addend = OneOf(reshaped, b_);
    const auto sum =
        Match<ops::AddV2, ops::Add>(product_, addend).Commutative();
    const auto is_bias = [product = product_, addend,
                          b = b_](const Matched& m) {
      const int64_t depth = DepthOf(ShapeOf(m, m[product]));
      return IsVector(ShapeOf(m, m[b]), depth) &&
             IsRow(ShapeOf(m, m[addend]), depth) &&
             ShapeOf(m, m[addend]).rank() <= Kind::kRank;
    };
    const Pattern root = Activated(sum);
    Add("AddV2", root, Finish(New<Fused>(x_, w_, b_), {"BiasAdd"}, 1),
        "the addend is a vector with one element per column of the product",
        is_bias);
  }

  // Adds a rule for product + AddV2 with a constant row, which is a reshaped
  // bias that TensorFlow has folded.
  void AddConstant() {
    using namespace patterns;  // NOLINT
    const auto row = Match<ops::Const>().MayHaveOtherUses();
    const auto sum = Match<ops::AddV2, ops::Add>(product_, row).Commutative();
    const auto is_row = [product = product_, row](const Matched& m) {
      const PartialShape shape = ShapeOf(m, m[row]);
      return IsRow(shape, DepthOf(ShapeOf(m, m[product]))) &&
             shape.rank() <= Kind::kRank;
    };
    const auto vector = NewConst([row](const Matched& m) {
      absl::StatusOr<Constant> constant = m.context().ReadConstant(m.node(row));
      return constant.ok() ? constant->Reshaped({constant->num_elements()})
                           : std::move(constant);
    });
    const Pattern root = Activated(sum);
    Add("AddV2 of a constant", root,
        Finish(New<Fused>(x_, w_, vector), {"BiasAdd"}, 1),
        "the constant is one row with one element per column of the product",
        is_row);
  }

  // Adds a rule for product + FusedBatchNormV3.
  void AddNorm() {
    using namespace patterns;  // NOLINT
    const Pattern scale = Any(), offset = Any(), mean = Any(), variance = Any();
    using Norm = ops::FusedBatchNormV3;
    const auto norm = Match<Norm>(product_, scale, offset, mean, variance)
                          .Where(Norm::is_training, false)
                          .Where(Norm::data_format, "NHWC")
                          .Where(Norm::U_attr, DataType::kFloat)
                          .Where(Norm::T_attr, DataType::kFloat);
    const Pattern root = Activated(norm);
    Add("FusedBatchNormV3", root,
        Finish(New<Fused>(x_, w_, scale, offset, mean, variance)
                   .Copy(norm, Fused::epsilon),
               {"FusedBatchNorm"}, 4));
  }

 private:
  template <class... Inputs>
  static auto MatchActivation(const Inputs&... inputs) {
    return patterns::Match<ops::Relu, ops::Relu6, ops::Elu, ops::LeakyRelu,
                           ops::Tanh, ops::Sigmoid>(inputs...);
  }
  Pattern Activated(const Pattern& value) {
    activation_ = MatchActivation(value);
    return patterns::Optional(activation_);
  }

  patterns::NewNode<Fused> Finish(const patterns::NewNode<Fused>& node,
                                  const std::vector<std::string>& fused_ops,
                                  int num_args) {
    const auto activation = activation_;
    return Kind::CopyAttrs(product_, num_args, node)
        .Set(Fused::num_args, num_args)
        .Set(Fused::fused_ops,
             [activation, fused_ops](const Matched& m) {
               std::vector<std::string> all = fused_ops;
               if (m.has(activation)) all.emplace_back(m.node(activation).op());
               return all;
             })
        .Set(Fused::leakyrelu_alpha,
             [activation](const Matched& m) {
               // The op's default where there is no LeakyRelu.
               if (!m.has(activation)) return 0.2f;
               return m.node(activation)
                   .template GetAttr<float>("alpha")
                   .value_or(0.2f);
             })
        .RequireKernel();
  }

  void Add(const std::string& bias, const Pattern& root,
           const patterns::NewNode<Fused>& node, std::string description = "",
           std::function<bool(const Matched&)> predicate = nullptr) {
    const auto is_known = [activation = activation_,
                           known = activations_](const Matched& m) {
      return !m.has(activation) ||
             std::find(known.begin(), known.end(), m.node(activation).op()) !=
                 known.end();
    };
    patterns::Rule rule(
        std::string(Kind::Product::kName) + " + " + bias + " + activation",
        root);
    rule = std::move(rule).OnlyIf(
        "the plug-in's kernels implement the activation", is_known);
    if (predicate != nullptr) {
      rule =
          std::move(rule).OnlyIf(std::move(description), std::move(predicate));
    }
    rules_.push_back(std::move(rule).ReplaceBy(node));
  }

  const std::vector<std::string> activations_;
  std::vector<patterns::Rule>& rules_;
  const Pattern x_ = patterns::Any("x"), w_ = patterns::Any("weights"),
                b_ = patterns::Any("bias");
  const patterns::NodePattern<typename Kind::Product> product_ =
      Kind::Restrict(patterns::Match<typename Kind::Product>(x_, w_));
  decltype(MatchActivation()) activation_ = MatchActivation();
};

}  // namespace passes_internal

inline std::vector<patterns::Rule> FusionRules(
    const std::vector<std::string>& activations) {
  std::vector<patterns::Rule> rules;
  passes_internal::FusionRuleBuilder<passes_internal::MatMulFusion> matmul(
      activations, rules);
  matmul.AddBias();
  matmul.AddSum();
  matmul.AddConstant();
  passes_internal::FusionRuleBuilder<passes_internal::Conv2DFusion> conv(
      activations, rules);
  conv.AddBias();
  conv.AddSum();
  conv.AddConstant();
  conv.AddNorm();
  passes_internal::FusionRuleBuilder<passes_internal::DepthwiseFusion>
      depthwise(activations, rules);
  depthwise.AddBias();
  depthwise.AddSum();
  depthwise.AddConstant();
  depthwise.AddNorm();
  return rules;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FUSION_RULES_H_
