// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_CANCEL_TRANSPOSES_H_
#define TFPLUG_PASSES_CANCEL_TRANSPOSES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/graph/constant.h"
#include "tfplug/ops/array.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

namespace passes_internal {

// Returns the permutation in a Const, without negative axes; empty if the node
// is not a Const, or its value is not a permutation.
inline std::vector<int64_t> PermutationOf(const patterns::Matched& m,
                                          const patterns::Pattern& pattern) {
  const auto constant = m.context().ReadConstant(m.node(pattern));
  if (!constant.ok() || constant->shape().rank() != 1) return {};
  auto axes = constant->GetIntegers();
  if (!axes.ok()) return {};
  const auto rank = static_cast<int64_t>(axes->size());
  std::vector<bool> seen(axes->size());
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) return {};
    seen[static_cast<size_t>(axis)] = true;
  }
  return *std::move(axes);
}

}  // namespace passes_internal

// Replaces Transpose(Transpose(x)) with x if the constant permutations are
// inverses of each other, and Transpose(x) with x if the permutation is the
// identity.
inline std::vector<patterns::Rule> CancelTransposesRules() {
  using namespace patterns;
  const Pattern x = Any("x");
  const auto first_axes = Match<ops::Const>().MayHaveOtherUses();
  const auto first = Match<ops::Transpose>(x, first_axes).MayHaveOtherUses();
  const auto second_axes = Match<ops::Const>().MayHaveOtherUses();
  const auto second = Match<ops::Transpose>(first, second_axes);
  const auto are_inverse = [=](const Matched& m) {
    const auto a = passes_internal::PermutationOf(m, first_axes);
    const auto b = passes_internal::PermutationOf(m, second_axes);
    if (a.empty() || a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[static_cast<size_t>(b[i])] != static_cast<int64_t>(i)) return false;
    }
    return true;
  };

  const auto axes = Match<ops::Const>().MayHaveOtherUses();
  const auto transpose = Match<ops::Transpose>(x, axes);
  const auto is_identity = [=](const Matched& m) {
    const auto a = passes_internal::PermutationOf(m, axes);
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != static_cast<int64_t>(i)) return false;
    }
    return !a.empty();
  };

  std::vector<Rule> rules;
  rules.push_back(
      Rule("inverse transposes", second)
          .OnlyIf("the permutations are inverses of each other", are_inverse)
          .ReplaceBy(x));
  rules.push_back(Rule("identity transpose", transpose)
                      .OnlyIf("the permutation is the identity", is_identity)
                      .ReplaceBy(x));
  return rules;
}

class CancelTransposes : public patterns::RulesPass<CancelTransposesRules> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_CANCEL_TRANSPOSES_H_
