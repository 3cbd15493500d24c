// SPDX-License-Identifier: Apache-2.0
// Mistakes with lists, alternatives, and ops that are given by their names:
//
// expect: tfplug: only one input of a pattern can be an Each(...)
// expect: tfplug: Each(...) stands for an input that is a list, but this op has
// none expect: tfplug: OneOf takes patterns expect: tfplug: this attribute does
// not belong to an op of the pattern; for an op that is given by its name
// expect: tfplug: this attribute does not belong to the new op; for an op that
// is given by its name expect: tfplug: this output does not belong to the new
// op expect: tfplug: inputs must be matched patterns, New(...) or NewConst(...)
// expect: tfplug: New takes a typed op
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;
using namespace tfplug::patterns;

void Lists() {
  const auto x = Any();
  Match<ops::AddN>(Each(x), Each(x));
  Match<ops::Relu>(Each(x));
  OneOf(x, Each(x));
}

void Names() {
  const auto x = Any();
  Match("MyOp", x).Where(ops::MatMul::transpose_a, true);
  New("MyOp", x).Set(ops::MatMul::transpose_a, true);
  New<ops::MatMul>(x, x)[ops::FusedBatchNormV3::y];
  New("MyOp", 2);
  New<int>(x);
}
