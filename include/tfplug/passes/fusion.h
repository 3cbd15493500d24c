// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSION_H_
#define TFPLUG_PASSES_FUSION_H_

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

namespace tfplug {

// Puts one kernel in the place of three:
//
//   MatMul, Conv2D (NHWC) or DepthwiseConv2dNative (NHWC)
//   + BiasAdd, or an AddV2 of what is a bias; or for convolutions a
//     FusedBatchNormV3 of inference
//   + Relu, Relu6, Elu, LeakyRelu, Tanh or Sigmoid, or nothing
//
// become _FusedMatMul, _FusedConv2D or _FusedDepthwiseConv2dNative, where the
// plug-in has a kernel for that op and type on the pass's device. Results are
// the same but for rounding within the kernel. A gradient that needs what is in
// between keeps it from being fused.
//
// The plug-in's kernels must be able to do all of the above, by their attribute
// fused_ops; otherwise make a RulesPass of FusionRules with the activations
// that they know.
std::vector<Rule> FusionRules(std::vector<std::string> activations = {
                                  "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh",
                                  "Sigmoid"});

class Fusion : public RulesPass {
 public:
  Fusion() : RulesPass(TheRules()) {}

 private:
  static const Rules& TheRules() {
    static const Rules rules(FusionRules());
    return rules;
  }
};

// ---- Implementation ----
namespace internal {

// The rules for one kind of product: FusedMatMul, FusedConv2D, FusedDepthwise.
template <class Kind>
class FusionRulesOf {
 public:
  using Fused = typename Kind::Fused;

  FusionRulesOf(std::vector<std::string> activations, std::vector<Rule>& rules)
      : activations_(std::move(activations)), rules_(rules) {}

  void AddBias() {
    const auto biased = Match<ops::BiasAdd>(product_, b_)
                            .Where(ops::BiasAdd::data_format, "NHWC");
    const Pattern root = Activated(biased);
    Add("BiasAdd", root, Finish(New<Fused>(x_, w_, b_), {"BiasAdd"}, 1));
  }

  // The sum of a product and what BiasAdd would take, or a reshaped one: Keras'
  // layers do it so.
  void AddSum() {
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
        "what is added is a vector, as long as the product is deep", is_bias);
  }

  // The same reshaped beforehand, to a constant.
  void AddConstant() {
    const auto row = Match<ops::Const>().MayHaveOtherUses();
    const auto sum = Match<ops::AddV2, ops::Add>(product_, row).Commutative();
    const auto is_row = [product = product_, row](const Matched& m) {
      const PartialShape shape = ShapeOf(m, m[row]);
      return IsRow(shape, DepthOf(ShapeOf(m, m[product]))) &&
             shape.rank() <= Kind::kRank;
    };
    const auto vector = NewConst([row](const Matched& m) {
      absl::StatusOr<Constant> constant = Constant::Read(m.node(row));
      return constant.ok() ? constant->Reshaped({constant->num_elements()})
                           : std::move(constant);
    });
    const Pattern root = Activated(sum);
    Add("AddV2 of a constant", root,
        Finish(New<Fused>(x_, w_, vector), {"BiasAdd"}, 1),
        "the constant is one row, as long as the product is deep", is_row);
  }

  void AddNorm() {
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
  Pattern Activated(const Pattern& value) {
    activation_ = Match<ops::Relu, ops::Relu6, ops::Elu, ops::LeakyRelu,
                        ops::Tanh, ops::Sigmoid>(value);
    return Optional(activation_);
  }

  NewNode<Fused> Finish(const NewNode<Fused>& node,
                        std::vector<std::string> fused_ops, int num_args) {
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
               // The op's default, unless it is used.
               if (!m.has(activation)) return 0.2f;
               return m.node(activation)
                   .template GetAttr<float>("alpha")
                   .value_or(0.2f);
             })
        .RequireKernel();
  }

  void Add(const std::string& bias, const Pattern& root,
           const NewNode<Fused>& node, std::string words = "",
           std::function<bool(const Matched&)> holds = nullptr) {
    const auto is_known = [activation = activation_,
                           known = activations_](const Matched& m) {
      return !m.has(activation) ||
             std::find(known.begin(), known.end(), m.node(activation).op()) !=
                 known.end();
    };
    Rule rule(
        std::string(Kind::Product::kName) + " + " + bias + " + activation",
        root);
    rule = std::move(rule).OnlyIf(
        "the activation is one that the plug-in's kernels know", is_known);
    if (holds != nullptr) {
      rule = std::move(rule).OnlyIf(std::move(words), std::move(holds));
    }
    rules_.push_back(std::move(rule).ReplaceBy(node));
  }

  const std::vector<std::string> activations_;
  std::vector<Rule>& rules_;
  const Pattern x_ = Any("x"), w_ = Any("weights"), b_ = Any("bias");
  const NodePattern<typename Kind::Product> product_ =
      Kind::Restrict(Match<typename Kind::Product>(x_, w_));
  NodePattern<ops::Relu, ops::Relu6, ops::Elu, ops::LeakyRelu, ops::Tanh,
              ops::Sigmoid>
      activation_ = Match<ops::Relu, ops::Relu6, ops::Elu, ops::LeakyRelu,
                          ops::Tanh, ops::Sigmoid>();
};

}  // namespace internal

inline std::vector<Rule> FusionRules(std::vector<std::string> activations) {
  std::vector<Rule> rules;
  internal::FusionRulesOf<internal::FusedMatMul> matmul(activations, rules);
  matmul.AddBias();
  matmul.AddSum();
  matmul.AddConstant();
  internal::FusionRulesOf<internal::FusedConv2D> conv(activations, rules);
  conv.AddBias();
  conv.AddSum();
  conv.AddConstant();
  conv.AddNorm();
  internal::FusionRulesOf<internal::FusedDepthwise> depthwise(activations,
                                                              rules);
  depthwise.AddBias();
  depthwise.AddSum();
  depthwise.AddConstant();
  depthwise.AddNorm();
  return rules;
}

}  // namespace tfplug

#endif  // TFPLUG_PASSES_FUSION_H_
