// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_CONSTANTS_H_
#define TFPLUG_PATTERNS_CONSTANTS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/internal/attr_codec.h"
#include "tfplug/patterns/internal/const_value.h"
#include "tfplug/patterns/internal/describe.h"
#include "tfplug/patterns/pattern.h"

#pragma GCC visibility push(hidden)

// Patterns of constants. Other nodes may use the constants, too.
namespace tfplug::patterns {

// Matches a constant for which predicate(const Constant&) is true.
// `description` completes the explanation "attribute value is 1, not ...".
template <class F>
NodePattern<> MatchConst(std::string description, F predicate) {
  NodePattern<> node({"Const"}, /*has_many_outputs=*/false);
  auto check = [predicate = std::move(predicate)](absl::string_view bytes) {
    const graph_internal::ParsedAttrValue value(bytes);
    if (value.field() != graph_internal::kAttrTensor) return false;
    const absl::StatusOr<Constant> constant = Constant::Parse(value.bytes());
    return constant.ok() && predicate(*constant);
  };
  return node
      .AddCondition({"", "value", std::move(description), std::move(check)})
      .MayHaveOtherUses();
}

// Matches any constant.
inline NodePattern<> MatchConst() { return Match("Const").MayHaveOtherUses(); }

// Matches a number, or a tensor of equal numbers. `tolerance` is relative to
// `value`. The rounding of `value` to the constant's type is also tolerated.
inline NodePattern<> MatchConst(double value, double tolerance = 1e-6) {
  return MatchConst(
      patterns_internal::DescribeNumber(value), [=](const Constant& constant) {
        return patterns_internal::IsSplatOf(constant, value, tolerance);
      });
}

// Matches integers, such as axes or a permutation: a vector with these
// elements, or a scalar where there is one.
inline NodePattern<> MatchConst(std::initializer_list<int64_t> elements) {
  const std::vector<int64_t> expected(elements);
  return MatchConst(patterns_internal::Describe(expected),
                    [expected](const Constant& constant) {
                      if (constant.shape().rank() > 1) return false;
                      const auto values = constant.GetIntegers();
                      return values.ok() && *values == expected;
                    });
}

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_CONSTANTS_H_
