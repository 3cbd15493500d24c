// SPDX-License-Identifier: Apache-2.0
// Each mistake has words of its own, so that one file will do for all:
//
// expect: tfplug: this is not the number of inputs that the op takes
// expect: tfplug: this is not the number of inputs that the new op takes
// expect: tfplug: this attribute belongs to another op than the pattern is for
// expect: tfplug: this is an input or output of the op
// expect: transpose_c
// expect: tfplug: this output belongs to another op than the pattern is for
// expect: tfplug: the inputs of a pattern are patterns, such as Any()
// expect: tfplug: this attribute belongs to another op than the new node's
// expect: tfplug: the attribute is of another type
// expect: tfplug: the attribute is of another type than the function returns
// expect: tfplug: Copy takes an attribute of the new op
#include <tfplug/ops/internal.h>
#include <tfplug/ops/math.h>
#include <tfplug/ops/nn.h>
#include <tfplug/patterns/rules.h>

namespace ops = tfplug::ops;
using tfplug::Any, tfplug::Match, tfplug::New;

void MatchWrongly() {
  Match<ops::MatMul>(Any());
  Match<ops::Relu>("x");
  const auto relu = Match<ops::Relu>(Any());
  relu.Where(ops::MatMul::transpose_a, true);
  relu[ops::MatMul::product];
  const auto product = Match<ops::MatMul>(Any(), Any());
  product.Where(ops::MatMul::a, true);
  product.Where(ops::MatMul::transpose_c, true);
}

void ReplaceWrongly() {
  New<ops::InternalFusedMatMul>(Any());
  const auto relu = Match<ops::Relu>(Any());
  const auto product = New<ops::MatMul>(Any(), Any());
  product.Set(ops::Relu::T_attr, tfplug::DataType::kFloat);
  product.Set(ops::MatMul::transpose_a, "true");
  product.Set(ops::MatMul::transpose_b,
              [](const tfplug::Matched&) { return "true"; });
  product.Copy(relu, ops::Relu::T_attr);
}
