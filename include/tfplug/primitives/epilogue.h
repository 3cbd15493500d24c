// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_EPILOGUE_H_
#define TFPLUG_PRIMITIVES_EPILOGUE_H_

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tfplug/ir/value.h"
#include "tfplug/ir/view.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/activation_kind.h"
#include "tfplug/primitives/memo.h"

#pragma GCC visibility push(hidden)

// The expressions of MatMulMap and ConvMap (backend.h) that libraries have
// functions for.
namespace tfplug {

// The computation activation(product * scale + shift) on each element of a
// product, with an element of the vectors for each column of a matrix or
// channel of an image.
struct Epilogue {
  std::optional<Operand> scale;  // none: 1
  std::optional<Operand> shift;  // none: 0
  ActivationKind activation = ActivationKind::kNone;
  double alpha = 0;  // the slope of kLeakyRelu below 0
};

// Returns the expression of an epilogue for products of `type` and vectors of
// these types, or DataType(0) without one. Its inputs are the product and the
// vectors.
inline absl::StatusOr<Expression> MakeEpilogue(DataType type, DataType scale,
                                               DataType shift,
                                               ActivationKind activation,
                                               double alpha);

// Returns a vector of a MatMulMap or ConvMap, repeated to the dimensions of the
// product.
inline Operand RepeatVector(const Operand& vector, const Operand& product) {
  Operand repeated = ir::WithoutDims(vector);
  for (int d = 0; d < product.rank; ++d) {
    repeated.AddDim(product.dim(d),
                    d + 1 < product.rank ? 0 : vector.stride(0));
  }
  return repeated;
}

// Returns the epilogue that the expression computes with the inputs of a
// MatMulMap or ConvMap, or none if it computes something else. It stores one
// output, of the type of the product.
inline std::optional<Epilogue> FindEpilogue(const Expression& expression,
                                            Operands inputs);

namespace primitives_internal {

inline Value Activate(ActivationKind activation, Value x, double alpha) {
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

// The parts of an epilogue without its vectors.
struct EpilogueParts {
  bool has_scale, has_shift;
  ActivationKind activation;
  double alpha;
};

// Builds epilogues of the expression's types until one is equal.
inline std::optional<EpilogueParts> FindParts(const Expression& expression) {
  const auto& types = expression.inputs();
  if (types.empty() || types.size() > 3) return std::nullopt;
  for (const DataType type : types) {
    if (!IsFloat(type)) return std::nullopt;
  }
  std::vector<double> slopes = {0};
  for (const Instruction& in : expression.instructions()) {
    if (in.opcode != Opcode::kConstant) continue;
    slopes.emplace_back();
    std::memcpy(&slopes.back(), &in.bits, sizeof(in.bits));
  }
  constexpr int kLast = static_cast<int>(ActivationKind::kSigmoid);
  for (int i = 0; i < 4 * (kLast + 1); ++i) {
    EpilogueParts parts{(i & 1) != 0, (i & 2) != 0,
                        static_cast<ActivationKind>(i / 4), 0};
    const size_t n = types.size();
    if (n != 1 + size_t{parts.has_scale} + size_t{parts.has_shift}) continue;
    const bool slopes_count = parts.activation == ActivationKind::kLeakyRelu;
    for (size_t k = 0; k < (slopes_count ? slopes.size() : 1); ++k) {
      parts.alpha = slopes[k];
      const auto made =
          MakeEpilogue(types[0], parts.has_scale ? types[1] : DataType(0),
                       parts.has_shift ? types[n - 1] : DataType(0),
                       parts.activation, parts.alpha);
      if (made.ok() && made->id() == expression.id()) return parts;
    }
  }
  return std::nullopt;
}

// Returns the vector that is repeated to the operand, if it is dense.
inline std::optional<Operand> VectorOf(const Operand& repeated) {
  const int last = repeated.rank - 1;
  for (int d = 0; d < last; ++d) {
    if (repeated.stride(d) != 0 && repeated.dim(d) != 1) return std::nullopt;
  }
  if (repeated.stride(last) != 1 && repeated.dim(last) != 1) {
    return std::nullopt;
  }
  Operand vector = ir::WithoutDims(repeated);
  vector.AddDim(repeated.dim(last), repeated.stride(last));
  return vector;
}

}  // namespace primitives_internal

inline absl::StatusOr<Expression> MakeEpilogue(DataType type, DataType scale,
                                               DataType shift,
                                               ActivationKind activation,
                                               double alpha) {
  ExpressionBuilder builder;
  Value y = builder.Input(type);
  std::optional<Value> a, b;  // inputs are added before they are used
  if (scale != DataType(0)) a = Cast(builder.Input(scale), y.type());
  if (shift != DataType(0)) b = Cast(builder.Input(shift), y.type());
  if (a.has_value()) y = y * *a;
  if (b.has_value()) y = y + *b;
  builder.Output(primitives_internal::Activate(activation, y, alpha), type);
  return std::move(builder).Build();
}

inline std::optional<Epilogue> FindEpilogue(const Expression& expression,
                                            Operands inputs) {
  // Expressions live as long as the process, and so do the parts.
  static primitives::Memo<std::optional<primitives_internal::EpilogueParts>>
      memo;
  using Parts = std::optional<primitives_internal::EpilogueParts>;
  const auto parts = memo.Get(expression.id(), [&]() -> absl::StatusOr<Parts> {
    return primitives_internal::FindParts(expression);
  });
  if (!parts.ok() || !(*parts)->has_value()) return std::nullopt;
  Epilogue epilogue;
  epilogue.activation = (**parts)->activation;
  epilogue.alpha = (**parts)->alpha;
  if ((**parts)->has_scale) {
    epilogue.scale = primitives_internal::VectorOf(inputs.front());
    if (!epilogue.scale.has_value()) return std::nullopt;
  }
  if ((**parts)->has_shift) {
    epilogue.shift = primitives_internal::VectorOf(inputs.back());
    if (!epilogue.shift.has_value()) return std::nullopt;
  }
  return epilogue;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_EPILOGUE_H_
