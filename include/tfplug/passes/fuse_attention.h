// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FUSE_ATTENTION_H_
#define TFPLUG_PASSES_FUSE_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/ops/array.h"
#include "tfplug/ops/linalg.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/fuse_activations.h"
#include "tfplug/passes/internal/shapes.h"
#include "tfplug/patterns/internal/const_value.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Fuses scaled dot-product attention,
//
//   softmax(scale q k^T, masked or with a bias) v
//
// into a TfplugAttention (passes/transformer_ops.h), if the plug-in has a kernel
// for it.
// Covers the layers MultiHeadAttention of Keras 2 and 3 and code with Einsum or
// BatchMatMul, also in training without dropout: the fused op then provides the
// probabilities that the gradient uses. If the gradient or another node uses
// any other intermediate value, nothing is fused. Results are the same except
// for rounding errors.
inline std::vector<patterns::Rule> FuseAttentionRules();

class FuseAttention : public patterns::RulesPass<FuseAttentionRules> {};

namespace passes_internal {

// Renames the labels of an Einsum's equation in the order of their first use:
// "BTNH,BSNH->BNTS" becomes "abcd,aecd->acbe".
inline std::string CanonicalEquation(absl::string_view equation) {
  std::string labels, canonical;
  for (const char c : equation) {
    if (c == ' ') continue;
    const bool is_label = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_label) {
      canonical += c;
      continue;
    }
    if (labels.find(c) == std::string::npos) labels += c;
    canonical += static_cast<char>('a' + labels.find(c));
  }
  return canonical;
}

// Matches an Einsum of this canonical equation.
template <class A, class B>
patterns::NodePattern<ops::Einsum> MatchEinsum(const A& a, const B& b,
                                               const std::string& canonical) {
  return patterns::Match<ops::Einsum>(a, b).WhereSatisfies(
      ops::Einsum::equation, "like " + canonical,
      [canonical](const std::string& equation) {
        return CanonicalEquation(equation) == canonical;
      });
}

// Builds the rules. Each one is for one layout of the operands.
class AttentionRules {
 public:
  // q, k, v: [batch, length, heads, size].
  patterns::Rule ForEinsum() const {
    using namespace patterns;  // NOLINT
    const auto q = OneOf(scaled_q_, q_);
    const auto scores =
        OneOf(MatchEinsum(q, k_, "abcd,aecd->acbe"),   // BTNH,BSNH->BNTS
              MatchEinsum(k_, q, "abcd,aecd->aceb"));  // BSNH,BTNH->BNTS
    const auto softmax = Softmax(scores);
    const auto root =
        OneOf(MatchEinsum(softmax, v_, "abcd,adbe->acbe"),   // BNTS,BSNH->BTNH
              MatchEinsum(v_, softmax, "abcd,aceb->aecd"));  // BSNH,BNTS->BTNH
    return Make("Attention by Einsum", root, softmax, q_, "BTNH");
  }
  // Does the same for q, k, v: [batch, heads, length, size].
  patterns::Rule ForEinsumOfHeads() const {
    using namespace patterns;  // NOLINT
    const auto q = OneOf(scaled_q_, q_);
    const auto softmax = Softmax(MatchEinsum(q, k_, "abcd,abed->abce"));
    return Make("Attention by Einsum, heads first",
                MatchEinsum(softmax, v_, "abcd,abde->abce"), softmax, q_,
                "BNTH");
  }
  patterns::Rule ForBatchMatMul() const {
    using namespace patterns;  // NOLINT
    const auto q = OneOf(scaled_q_, q_);
    const auto softmax = Softmax(MatMul(q, k_, false, true));
    return Make("Attention by BatchMatMul", MatMul(softmax, v_, false, false),
                softmax, q_, "BNTH");
  }
  // Returns the rule for the form into which Keras 3 lowers Einsum: the scores
  // are the transpose of k q^T, where q is [batch, length, heads, size].
  patterns::Rule ForTransposed() const {
    using namespace patterns;  // NOLINT
    const auto q =
        Match<ops::Transpose>(OneOf(scaled_q_, q_), MatchConst({0, 2, 3, 1}));
    const auto scores = Match<ops::Transpose>(MatMul(k_, q, false, false),
                                              MatchConst({0, 1, 3, 2}));
    const auto softmax = Softmax(scores);
    const auto heads_first = New<ops::Transpose>(
        q_, NewConst(Constant::Of(Shape{4}, std::vector<int>{0, 2, 1, 3})));
    return Make("Attention by transposed BatchMatMul",
                MatMul(softmax, v_, false, false), softmax,
                heads_first.RequireKernel(), "BNTH");
  }

 private:
  using Matched = patterns::Matched;
  using Pattern = patterns::Pattern;

  static patterns::NodePattern<> MatchScalar() {
    return patterns::MatchConst("a number", [](const Constant& c) {
      return c.num_elements() == 1 && patterns_internal::SplatOf(c).has_value();
    });
  }
  template <class A, class B>
  static patterns::NodePattern<ops::BatchMatMulV2> MatMul(const A& a,
                                                          const B& b,
                                                          bool adj_x,
                                                          bool adj_y) {
    using Op = ops::BatchMatMulV2;
    return patterns::Match<Op>(a, b)
        .Where(Op::adj_x, adj_x)
        .Where(Op::adj_y, adj_y);
  }
  // Matches softmax(scores), with an optional scale and a mask or bias.
  template <class Scores>
  patterns::NodePattern<ops::Softmax> Softmax(const Scores& scores) const {
    using namespace patterns;  // NOLINT
    const auto scaled = OneOf(Product(scores, factor_),
                              Match<ops::RealDiv>(scores, divisor_), scores);
    return Match<ops::Softmax>(
        OneOf(Match<ops::SelectV2>(mask_, scaled, masked_score_),
              Sum(scaled, bias_), scaled));
  }

  // `query`: the value that the fused op takes.
  patterns::Rule Make(const std::string& name, const Pattern& root,
                      const patterns::NodePattern<ops::Softmax>& softmax,
                      const patterns::Replacement& query,
                      const std::string& layout) const {
    using namespace patterns;  // NOLINT
    const auto number = [](const Matched& m, const Pattern& pattern) {
      const absl::StatusOr<Constant> value =
          m.context().ReadConstant(m.node(pattern));
      return value.ok() ? patterns_internal::SplatOf(*value).value_or(1) : 1;
    };
    const AttentionRules self = *this;
    const auto fused =
        New("TfplugAttention", query, k_, v_, mask_, bias_)
            .Set("layout", layout)
            .Set("num_masks",
                 [self](const Matched& m) { return m.has(self.mask_) ? 1 : 0; })
            .Set("num_biases",
                 [self](const Matched& m) { return m.has(self.bias_) ? 1 : 0; })
            .Set(
                "num_probabilities",
                [softmax](const Matched& m) {
                  return m.node(softmax).num_uses() > 1 ||
                                 m.context().IsPreserved(m.node(softmax).name())
                             ? 1
                             : 0;
                })
            .Set("scale",
                 [self, number](const Matched& m) {
                   double scale = 1;
                   if (m.has(self.q_factor_)) scale = number(m, self.q_factor_);
                   if (m.has(self.factor_)) scale *= number(m, self.factor_);
                   if (m.has(self.divisor_)) scale /= number(m, self.divisor_);
                   return scale;
                 })
            .Set("masked_score",
                 [self, number](const Matched& m) {
                   return m.has(self.mask_) ? number(m, self.masked_score_) : 0;
                 })
            .RequireKernel();
    return Rule(name, root)
        .OnlyIf("the operands have 4 dimensions",
                [self](const Matched& m) {
                  for (const Pattern& x : {self.q_, self.k_, self.v_}) {
                    if (ShapeOf(m, m[x]).rank() != 4) return false;
                  }
                  return true;
                })
        .OnlyIf("the mask or bias has at most the scores' 4 dimensions",
                [self](const Matched& m) {
                  for (const Pattern& x : {self.mask_, self.bias_}) {
                    if (!m.has(x)) continue;
                    const int rank = ShapeOf(m, m[x]).rank();
                    if (rank < 0 || rank > 4) return false;
                  }
                  return true;
                })
        .ReplaceBy(fused)
        .AlsoReplace(softmax, fused[1]);
  }

  const Pattern q_ = patterns::Any("query"), k_ = patterns::Any("key"),
                v_ = patterns::Any("value"), mask_ = patterns::Any("mask"),
                bias_ = patterns::Any("bias");
  const patterns::NodePattern<> factor_ = MatchScalar(),
                                divisor_ = MatchScalar(),
                                q_factor_ = MatchScalar(),
                                masked_score_ = MatchScalar();
  const patterns::NodePattern<ops::Mul> scaled_q_ = Product(q_, q_factor_);
};

}  // namespace passes_internal

inline std::vector<patterns::Rule> FuseAttentionRules() {
  const passes_internal::AttentionRules rules;
  return {rules.ForEinsum(), rules.ForEinsumOfHeads(), rules.ForBatchMatMul(),
          rules.ForTransposed()};
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FUSE_ATTENTION_H_
