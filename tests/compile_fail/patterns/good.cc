// SPDX-License-Identifier: Apache-2.0
// expect-success
#include <tfplug/ops/all.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;

tfplug::Rule MakeRule() {
  const auto x = tfplug::Any(), w = tfplug::Any();
  const auto product =
      tfplug::Match<ops::MatMul>(x, w).Where(ops::MatMul::transpose_a, false);
  const auto concat = tfplug::Match<ops::ConcatV2>(x, product, x, w);
  return tfplug::Rule("good", concat)
      .ReplaceBy(tfplug::New<ops::InternalFusedMatMul>(x, w, x, w)
                     .Copy(product, ops::InternalFusedMatMul::T_attr)
                     .Set(ops::InternalFusedMatMul::num_args, 2));
}
