// SPDX-License-Identifier: Apache-2.0
// Each mistake has its own message, so one file can contain all of them:
//
// expect: tfplug: Match<Op>(...) has more or fewer patterns than the op has inputs
// expect: tfplug: New<Op>(...) has more or fewer values than the op has inputs
// expect: tfplug: this attribute does not belong to an op of the pattern
// expect: tfplug: this is an input or output of the op
// expect: transpose_c
// expect: tfplug: this output does not belong to an op of the pattern
// expect: tfplug: the inputs of a pattern must be patterns, such as Any()
// expect: tfplug: this attribute does not belong to the new op
// expect: tfplug: the value does not have the type of the attribute
// expect: tfplug: Where takes a value of the attribute's type
// expect: tfplug: the function does not return the type of the attribute
// expect: tfplug: Copy takes an attribute of the new op
#include <tfplug/ops/internal.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;
using namespace tfplug::patterns;

void MatchWrongly() {
  Match<ops::MatMul>(Any());
  Match<ops::Relu>("x");
  const auto relu = Match<ops::Relu>(Any());
  relu.Where(ops::MatMul::transpose_a, true);
  relu[ops::MatMul::product];
  const auto product = Match<ops::MatMul>(Any(), Any());
  product.Where(ops::MatMul::a, true);
  product.Where(ops::MatMul::transpose_c, true);
  product.Where(ops::MatMul::transpose_a, "true");
}

void ReplaceWrongly() {
  New<ops::InternalFusedMatMul>(Any());
  const auto relu = Match<ops::Relu>(Any());
  const auto product = New<ops::MatMul>(Any(), Any());
  product.Set(ops::Relu::T_attr, tfplug::DataType::kFloat);
  product.Set(ops::MatMul::transpose_a, "true");
  product.Set(ops::MatMul::transpose_b, [](const Matched&) { return "true"; });
  product.Copy(relu, ops::Relu::T_attr);
}
