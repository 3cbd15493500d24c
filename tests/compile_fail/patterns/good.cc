// SPDX-License-Identifier: Apache-2.0
// expect-success
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;
using namespace tfplug::patterns;

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
