// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_

#include <cstdint>

#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// Products with an epilogue, composed of the product and Map.
namespace tfplug::primitives_internal {

inline Value Activate(ActivationKind activation, Value x, Value alpha) {
  switch (activation) {
    case ActivationKind::kRelu:
      return Max(x, 0);
    case ActivationKind::kRelu6:
      return Min(Max(x, 0), 6);
    case ActivationKind::kLeakyRelu:
      return Select(x > 0, x, x * alpha);
    case ActivationKind::kElu:
      return Select(x < 0, Expm1(x), x);
    case ActivationKind::kTanh:
      return Tanh(x);
    case ActivationKind::kSigmoid:
      return Sigmoid(x);
    default:
      return x;
  }
}

// Returns the expression of an epilogue. Inputs: product, scale and shift if
// there are any, alpha.
inline absl::StatusOr<Expression> MakeEpilogue(const Epilogue& epilogue,
                                               DataType type) {
  ExpressionBuilder builder;
  Value y = builder.Input(type);
  if (epilogue.scale != nullptr) {
    y = y * Cast(builder.Input(epilogue.scale->type), y.type());
  }
  if (epilogue.shift != nullptr) {
    y = y + Cast(builder.Input(epilogue.shift->type), y.type());
  }
  const Value alpha = builder.Input(y.type());
  builder.Output(Activate(epilogue.activation, y, alpha), type);
  return std::move(builder).Build();
}

// Applies the epilogue to a product whose last dimension is the columns.
inline absl::Status ApplyEpilogue(Launcher& launcher, const Epilogue& epilogue,
                                  const Operand& product) {
  static primitives::Memo<Expression> memo;
  const auto type_of = [](const Operand* vector) {
    return vector == nullptr ? DataType(0) : vector->type;
  };
  const uint32_t key = primitives::KeyOf(product.type, type_of(epilogue.scale),
                                         type_of(epilogue.shift)) |
                       static_cast<uint32_t>(epilogue.activation) << 24;
  TFPLUG_ASSIGN_OR_RETURN(
      const Expression* const expression,
      memo.Get(key, [&] { return MakeEpilogue(epilogue, product.type); }));
  absl::InlinedVector<Operand, 4> inputs = {product};
  for (const Operand* vector : {epilogue.scale, epilogue.shift}) {
    if (vector == nullptr) continue;
    Operand repeated = ir::WithoutDims(*vector);
    for (int d = 0; d < product.rank; ++d) {
      repeated.AddDim(product.dim(d),
                      d + 1 < product.rank ? 0 : vector->stride(0));
    }
    inputs.push_back(repeated);
  }
  inputs.push_back(
      ir::ScalarOf(ComputeType(product.type), epilogue.alpha, product));
  Operand out = product;
  return launcher.Map(*expression, absl::MakeSpan(inputs),
                      absl::MakeSpan(&out, 1));
}

// Stores the product in an output of its type, if there is one.
inline absl::Status ComposeMatMulMap(Launcher& launcher, const Operand& a,
                                     const Operand& b,
                                     const Expression& expression,
                                     Operands inputs, Operands outputs) {
  Operand product;
  for (const Operand& output : outputs) {
    if (product.data == nullptr && output.type == a.type) product = output;
  }
  if (product.data == nullptr) {
    const absl::Span<const int64_t> dims(outputs[0].dims);
    TFPLUG_ASSIGN_OR_RETURN(
        product, launcher.Allocate(
                     a.type, dims.first(static_cast<size_t>(outputs[0].rank))));
  }
  TFPLUG_RETURN_IF_ERROR(launcher.MatMul(a, b, product));
  absl::InlinedVector<Operand, 8> in = {product};
  in.insert(in.end(), inputs.begin(), inputs.end());
  absl::InlinedVector<Operand, 4> out(outputs.begin(), outputs.end());
  return launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out));
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_FUSED_H_
