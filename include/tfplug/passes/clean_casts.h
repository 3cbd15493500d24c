// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_CLEAN_CASTS_H_
#define TFPLUG_PASSES_CLEAN_CASTS_H_

#include <utility>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/ops/math.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Returns whether every value of type `from` is also a value of type `to`, so
// that casts to `to` and back change nothing. False for types that are not
// plain numbers.
constexpr bool IsLosslessCast(DataType from, DataType to) {
  struct Range {
    int bits;      // All integers below 2^bits are exact; 0: no plain number.
    int exponent;  // The number of bits in the exponent; 0: an integer type.
    bool has_sign;
  };
  const auto range_of = [](DataType type) -> Range {
    switch (type) {
      case DataType::kUint8:
        return {8, 0, false};
      case DataType::kUint16:
        return {16, 0, false};
      case DataType::kUint32:
        return {32, 0, false};
      case DataType::kUint64:
        return {64, 0, false};
      case DataType::kInt8:
        return {7, 0, true};
      case DataType::kInt16:
        return {15, 0, true};
      case DataType::kInt32:
        return {31, 0, true};
      case DataType::kInt64:
        return {63, 0, true};
      case DataType::kBfloat16:
        return {8, 8, true};
      case DataType::kHalf:
        return {11, 5, true};
      case DataType::kFloat:
        return {24, 8, true};
      case DataType::kDouble:
        return {53, 11, true};
      default:
        return {0, 0, false};
    }
  };
  const Range a = range_of(from), b = range_of(to);
  if (a.bits == 0 || b.bits == 0) return false;
  if (a.exponent > 0 && b.exponent == 0) return false;
  if (a.has_sign && !b.has_sign) return false;
  // All integers below 2^bits are exact, and so is -2^bits, because it is a
  // power of two. The range of half ends at 2^16, far above its 11 bits.
  return a.bits <= b.bits && a.exponent <= b.exponent;
}

// Removes casts to the type that the value already has, and pairs of casts to a
// type that holds every value of the first type, and back.
inline std::vector<patterns::Rule> CleanCastsRules() {
  using namespace patterns;
  using Op = ops::Cast;
  const Pattern x = Any("x");
  const auto type_of = [](const Matched& m, const Pattern& cast,
                          const char* attr) {
    const auto type = m.node(cast).GetAttr<DataType>(attr);
    return type.ok() ? *type : DataType{};
  };

  const auto same = Match<Op>(x);
  const auto first = Match<Op>(x).Where(Op::Truncate, false).MayHaveOtherUses();
  const auto second = Match<Op>(first).Where(Op::Truncate, false);

  std::vector<Rule> rules;
  rules.push_back(Rule("cast to the same type", same)
                      .OnlyIf("the types are the same",
                              [=](const Matched& m) {
                                const DataType from = type_of(m, same, "SrcT");
                                return from != DataType{} &&
                                       from == type_of(m, same, "DstT");
                              })
                      .ReplaceBy(x));
  rules.push_back(
      Rule("cast and back", second)
          .OnlyIf("the second cast restores the original type, and the type "
                  "in between holds all its values",
                  [=](const Matched& m) {
                    const DataType from = type_of(m, first, "SrcT");
                    return from == type_of(m, second, "DstT") &&
                           IsLosslessCast(from, type_of(m, first, "DstT"));
                  })
          .ReplaceBy(x));
  return rules;
}

class CleanCasts : public patterns::RulesPass<CleanCastsRules> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_CLEAN_CASTS_H_
