// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSE_ACTIVATIONS_H_
#define TFPLUG_PASSES_FUSE_ACTIVATIONS_H_

#include <string>
#include <vector>

#include "tfplug/ops/math.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Fuses activation functions that TensorFlow and Keras compute with several
// ops, if the plug-in has a kernel for the fused op (passes/transformer_ops.h)
// and type:
//
//   GELU, exact:       TfplugGelu
//   GELU with a tanh:  TfplugGeluTanh
//   x sigmoid(x):      TfplugSilu
//   silu(gate) * x:    TfplugSwiglu
//
// Covers the forms that keras.activations.gelu and silu of Keras 2 and 3,
// tf.nn.gelu and tf.nn.silu have after TensorFlow's own rewriting. Results are
// the same except for rounding errors. If other nodes use an intermediate value
// (in a training step, the gradient of GELU does), the function is not fused.
// The gradient of SiLU does not use any.
inline std::vector<patterns::Rule> FuseActivationsRules();

class FuseActivations : public patterns::RulesPass<FuseActivationsRules> {};

namespace passes_internal {

// Matches a * b, in either order.
template <class A, class B>
patterns::NodePattern<ops::Mul> Product(const A& a, const B& b) {
  return patterns::Match<ops::Mul>(a, b).Commutative();
}
template <class A, class B>
patterns::NodePattern<ops::AddV2, ops::Add> Sum(const A& a, const B& b) {
  return patterns::Match<ops::AddV2, ops::Add>(a, b).Commutative();
}

// Adds the rule for 0.5 x f, in each order of the two multiplications.
template <class Pattern>
void AddGelu(const std::string& name, const std::string& op,
             const patterns::Pattern& x, const Pattern& f,
             std::vector<patterns::Rule>& rules) {
  using namespace patterns;  // NOLINT
  const auto half = MatchConst(0.5);
  const auto root =
      OneOf(Product(x, Product(f, half)), Product(Product(x, half), f),
            Product(Product(x, f), half));
  rules.push_back(Rule(name, root).ReplaceBy(New(op, x).RequireKernel()));
}

}  // namespace passes_internal

inline std::vector<patterns::Rule> FuseActivationsRules() {
  using namespace patterns;  // NOLINT
  using passes_internal::Product, passes_internal::Sum;
  std::vector<Rule> rules;
  {
    const Pattern x = Any("x");
    const auto one = MatchConst(1);
    // 1 + erf(x / sqrt(2)), or erfc(-x / sqrt(2)), which is the same.
    const auto scaled =
        OneOf(Product(x, MatchConst(0.7071067811865476)),
              Match<ops::RealDiv>(x, MatchConst(1.4142135623730951)));
    const auto erf = Sum(Match<ops::Erf>(scaled), one);
    const auto negative =
        OneOf(Product(Match<ops::Neg>(x), MatchConst(0.7071067811865476)),
              Match<ops::Neg>(Product(x, MatchConst(0.7071067811865476))),
              Product(x, MatchConst(-0.7071067811865476)));
    const auto erfc = Match<ops::Erfc>(negative);
    passes_internal::AddGelu("GELU", "TfplugGelu", x, OneOf(erf, erfc), rules);
  }
  {
    const Pattern x = Any("x");
    const auto cube = OneOf(Match<ops::Pow>(x, MatchConst(3)),
                            Product(x, Match<ops::Square>(x)),
                            Product(x, Match<ops::Mul>(x, x)));
    const auto inner = Sum(x, Product(cube, MatchConst(0.044715)));
    const auto tanh =
        Match<ops::Tanh>(Product(inner, MatchConst(0.7978845608028654)));
    passes_internal::AddGelu("GELU with tanh", "TfplugGeluTanh", x,
                             Sum(tanh, MatchConst(1)), rules);
  }
  const Pattern gate = Any("gate"), x = Any("x");
  const auto silu = Product(gate, Match<ops::Sigmoid>(gate));
  rules.push_back(
      Rule("SiLU", silu).ReplaceBy(New("TfplugSilu", gate).RequireKernel()));
  rules.push_back(Rule("SwiGLU", Product(silu, x))
                      .ReplaceBy(New("TfplugSwiglu", gate, x).RequireKernel()));
  // Matches the product after another rule has replaced it by a TfplugSilu.
  const auto fused = Match("TfplugSilu", gate);
  rules.push_back(Rule("SwiGLU of SiLU", Product(fused, x))
                      .ReplaceBy(New("TfplugSwiglu", gate, x).RequireKernel()));
  return rules;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FUSE_ACTIVATIONS_H_
