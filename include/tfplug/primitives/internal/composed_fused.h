// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives_internal {

// Computes a MatMulMap or ConvMap: stores the product, of `type`, with
// multiply(product), in an output of its type, if there is one, and applies the
// expression with Map.
template <class Multiply>
absl::Status ComposeProductMap(Launcher& launcher, DataType type,
                               const Expression& expression, Operands inputs,
                               Operands outputs, Multiply multiply) {
  Operand product;
  for (const Operand& output : outputs) {
    if (product.data == nullptr && output.type == type) product = output;
  }
  if (product.data == nullptr) {
    const absl::Span<const int64_t> dims(outputs[0].dims);
    TFPLUG_ASSIGN_OR_RETURN(
        product, launcher.Allocate(
                     type, dims.first(static_cast<size_t>(outputs[0].rank))));
  }
  TFPLUG_RETURN_IF_ERROR(multiply(product));
  absl::InlinedVector<Operand, 8> in = {product};
  in.insert(in.end(), inputs.begin(), inputs.end());
  absl::InlinedVector<Operand, 4> out(outputs.begin(), outputs.end());
  return launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out));
}

// Computes each step with MatMul and Map.
inline absl::Status ComposeRecur(Launcher& launcher, const Operand& a,
                                 const Operand& b, const Operand& c,
                                 const Expression& expression, Operands inputs,
                                 Operands outputs) {
  for (int64_t t = 0; t < a.dim(0); ++t) {
    TFPLUG_RETURN_IF_ERROR(launcher.MatMul(ir::AtIndex(a, t), b, c));
    absl::InlinedVector<Operand, 16> in, out;
    for (const Operand& view : inputs) in.push_back(ir::AtIndex(view, t));
    for (const Operand& view : outputs) out.push_back(ir::AtIndex(view, t));
    TFPLUG_RETURN_IF_ERROR(
        launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out)));
  }
  return absl::OkStatus();
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_
