// SPDX-License-Identifier: Apache-2.0
// expect-success
#include <cxxabi.h>
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;
using namespace tfplug::patterns;
using namespace tfplug;  // Must not make abi:: ambiguous.

const char* TypeName() { return abi::__cxa_current_exception_type()->name(); }

Rule MakeRule() {
  const auto x = Any(), w = Any();
  const auto product =
      Match<ops::MatMul>(x, w).Where(ops::MatMul::transpose_a, false);
  const auto concat = Match<ops::ConcatV2>(x, product, x, w);
  return Rule("good", concat)
      .ReplaceBy(New<ops::InternalFusedMatMul>(x, w, x, w)
                     .Copy(product, ops::InternalFusedMatMul::T_attr)
                     .Set(ops::InternalFusedMatMul::num_args, 2));
}

Rule MakeRuleOfLists() {
  const auto x = Any(), axis = Any();
  const auto relu = Match<ops::Relu>(Repeated(Match<ops::Identity>(x)));
  const auto either = OneOf(relu, Match<ops::Elu>(x))
                          .Where(ops::Relu::T_attr, DataType::kFloat);
  const auto concat = Match<ops::ConcatV2>(Each(either), axis);
  const auto mine = New("MyOp", Each(x)).Set("axis", 1).Copy(concat, "T");
  return Rule("lists", concat)
      .ReplaceBy(New<ops::ConcatV2>(x, mine[1], axis))
      .AlsoReplace(Match<ops::Add>(axis, MatchConst(0.5)), mine[2]);
}
