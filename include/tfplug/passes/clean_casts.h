// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_CLEAN_CASTS_H_
#define TFPLUG_PASSES_CLEAN_CASTS_H_

#include <utility>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/ops/math.h"
#include "tfplug/patterns/rules.h"

namespace tfplug {

// Whether each value of `from` is a value of `to` too, so that the way there
// and back changes nothing. False for what is not a plain number.
constexpr bool IsLosslessCast(DataType from, DataType to) {
  // Bits of whole numbers that fit, a sign left out; 0: no number.
  struct Range {
    int bits;
    int exponent;  // Of floating-point numbers; 0: a whole number.
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
  // Whole numbers up to 2^bits; -2^bits of the signed ones is a power of two.
  // In half, whole numbers end at 2^16, far above its 11 bits.
  return a.bits <= b.bits && a.exponent <= b.exponent;
}

// Cast to the type that a value has already is the value; so is a cast to a
// type that holds every one of its values, and back.
inline std::vector<Rule> CleanCastsRules() {
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
  rules.push_back(Rule("a cast to the same type", same)
                      .OnlyIf("the types are the same",
                              [=](const Matched& m) {
                                const DataType from = type_of(m, same, "SrcT");
                                return from != DataType{} &&
                                       from == type_of(m, same, "DstT");
                              })
                      .ReplaceBy(x));
  rules.push_back(
      Rule("a cast and back", second)
          .OnlyIf("it ends with the type that it began with, and no value is "
                  "lost on the way",
                  [=](const Matched& m) {
                    const DataType from = type_of(m, first, "SrcT");
                    return from == type_of(m, second, "DstT") &&
                           IsLosslessCast(from, type_of(m, first, "DstT"));
                  })
          .ReplaceBy(x));
  return rules;
}

class CleanCasts : public RulesPass {
 public:
  CleanCasts() : RulesPass(TheRules()) {}

 private:
  static const Rules& TheRules() {
    static const Rules rules(CleanCastsRules());
    return rules;
  }
};

}  // namespace tfplug

#endif  // TFPLUG_PASSES_CLEAN_CASTS_H_
