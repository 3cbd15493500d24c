// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MATH_H_
#define TFPLUG_OP_KERNELS_MATH_H_

#include "tfplug/kernel/memory_labels.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/ops/array.h"
#include "tfplug/ops/math.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Return the quotient rounded down, its remainder, and the quotient rounded to
// 0. TensorFlow rounds a quotient of 16 bits before it makes it an integer.
inline Value FloorDivide(Value x, Value y) {
  if (IsFloat(x.type())) return Floor(Cast(x / y, x.stored_type()));
  const Value rest = x % y;
  return x / y - Cast((rest != 0) & ((rest < 0) != (y < 0)), x.type());
}
inline Value FloorRemainder(Value x, Value y) {
  const Value rest = x % y;
  return Select((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest);
}

inline Value TruncateDivide(Value x, Value y) {
  if (!IsFloat(x.type())) return x / y;
  const Value quotient = Cast(x / y, x.stored_type());
  return Select(quotient < 0, Ceil(quotient), Floor(quotient));
}

// Limits a shift to the number of bits of x, less one.
inline Value ShiftOf(Value x, Value shift) {
  const int bits = 8 * static_cast<int>(DataTypeSize(x.stored_type()));
  return Min(Max(shift, 0), bits - 1);
}

// Returns the gradient of 1 / x where y is the result; in the order of
// TensorFlow's CPU, which decides where a product of extremes overflows.
inline Value ReciprocalGradient(Value y, Value dy) {
  return Select(dy == 0, 0, -(y * y) * dy);
}

inline Value RoundToEven(Value x) { return IsFloat(x.type()) ? Rint(x) : x; }

}  // namespace op_kernels_internal

// Returns arithmetic, functions, comparisons, logic and bits: MathOps registers
// them.
inline std::vector<ElementwiseOp> MathTable() {
  using V = Value;
  return {
      // ---- Arithmetic ------------------------------------------------------
      Elementwise<ops::Add>([](V x, V y) { return x + y; }),
      Elementwise<ops::AddV2>([](V x, V y) { return x + y; }),
      Elementwise<ops::Sub>([](V x, V y) { return x - y; }),
      Elementwise<ops::Mul>([](V x, V y) { return x * y; }),
      Elementwise<ops::MulNoNan>(
          [](V x, V y) { return Select(y == 0, y, x * y); }),
      Elementwise<ops::Div>([](V x, V y) { return x / y; }),
      Elementwise<ops::RealDiv>([](V x, V y) { return x / y; }),
      Elementwise<ops::TruncateDiv>(op_kernels_internal::TruncateDivide),
      Elementwise<ops::DivNoNan>(
          [](V x, V y) { return Select(y == 0, y, x / y); }),
      Elementwise<ops::FloorDiv>(op_kernels_internal::FloorDivide),
      Elementwise<ops::FloorMod>(op_kernels_internal::FloorRemainder),
      Elementwise<ops::Mod>([](V x, V y) { return x % y; }),
      Elementwise<ops::TruncateMod>([](V x, V y) { return x % y; }),
      Elementwise<ops::Maximum>([](V x, V y) { return Max(x, y); }),
      Elementwise<ops::Minimum>([](V x, V y) { return Min(x, y); }),
      Elementwise<ops::ClipByValue>(
          [](V x, V low, V high) {
            // A bound that is NaN has no effect.
            const V below = Select(high < x, high, x);
            return Select(below < low, low, below);
          },
          Shapes::kEqualOrScalars),
      Elementwise<ops::SquaredDifference>(
          [](V x, V y) { return Square(x - y); }),
      Elementwise<ops::Pow>([](V x, V y) { return Pow(x, y); }),
      Elementwise<ops::Abs>([](V x) { return Abs(x); }),
      Elementwise<ops::Neg>([](V x) { return -x; }),
      Elementwise<ops::Sign>([](V x) { return Sign(x); }),
      Elementwise<ops::Square>([](V x) { return Square(x); }),
      Elementwise<ops::Reciprocal>([](V x) { return Reciprocal(x); }),
      Elementwise<ops::Inv>([](V x) { return Reciprocal(x); }),
      Elementwise<ops::ReciprocalGrad>(op_kernels_internal::ReciprocalGradient,
                                       Shapes::kEqualSizes),
      Elementwise<ops::InvGrad>(op_kernels_internal::ReciprocalGradient,
                                Shapes::kEqualSizes),
      // ---- Functions -------------------------------------------------------
      Elementwise<ops::Sqrt>([](V x) { return Sqrt(x); }),
      Elementwise<ops::SqrtGrad>(
          [](V y, V dy) { return Select(dy == 0, 0, dy * 0.5 / y); },
          Shapes::kEqualSizes),
      Elementwise<ops::Rsqrt>([](V x) { return Rsqrt(x); }),
      // No gradient stays 0 where y or its cube is infinite.
      Elementwise<ops::RsqrtGrad>(
          [](V y, V dy) {
            return Select(dy == 0, 0, -0.5 * (dy * y) * (y * y));
          },
          Shapes::kEqualSizes),
      Elementwise<ops::Exp>([](V x) { return Exp(x); }),
      Elementwise<ops::Expm1>([](V x) { return Expm1(x); }),
      Elementwise<ops::Log>([](V x) { return Log(x); }),
      Elementwise<ops::Log1p>([](V x) { return Log1p(x); }),
      Elementwise<ops::Sin>([](V x) { return Sin(x); }),
      Elementwise<ops::Cos>([](V x) { return Cos(x); }),
      Elementwise<ops::Tan>([](V x) { return Tan(x); }),
      Elementwise<ops::Asin>([](V x) { return Asin(x); }),
      Elementwise<ops::Acos>([](V x) { return Acos(x); }),
      Elementwise<ops::Atan>([](V x) { return Atan(x); }),
      Elementwise<ops::Atan2>([](V y, V x) { return Atan2(y, x); }),
      Elementwise<ops::Sinh>([](V x) { return Sinh(x); }),
      Elementwise<ops::Cosh>([](V x) { return Cosh(x); }),
      Elementwise<ops::Tanh>([](V x) { return Tanh(x); }),
      Elementwise<ops::TanhGrad>([](V y, V dy) { return dy * (1 - y * y); },
                                 Shapes::kEqualSizes),
      Elementwise<ops::Asinh>([](V x) { return Asinh(x); }),
      Elementwise<ops::Acosh>([](V x) { return Acosh(x); }),
      Elementwise<ops::Atanh>([](V x) { return Atanh(x); }),
      Elementwise<ops::Erf>([](V x) { return Erf(x); }),
      Elementwise<ops::Erfc>([](V x) { return Erfc(x); }),
      Elementwise<ops::Lgamma>([](V x) { return Lgamma(x); }),
      Elementwise<ops::Sigmoid>([](V x) { return Sigmoid(x); }),
      Elementwise<ops::SigmoidGrad>([](V y, V dy) { return dy * y * (1 - y); },
                                    Shapes::kEqualSizes),
      Elementwise<ops::Xdivy>(
          [](V x, V y) { return Select(x == 0, x, x / y); }),
      Elementwise<ops::Xlogy>(
          [](V x, V y) { return Select(x == 0, x, x * Log(y)); }),
      Elementwise<ops::Xlog1py>(
          [](V x, V y) { return Select(x == 0, x, x * Log1p(y)); }),
      Elementwise<ops::Floor>([](V x) { return Floor(x); }),
      Elementwise<ops::Ceil>([](V x) { return Ceil(x); }),
      Elementwise<ops::Rint>([](V x) { return Rint(x); }),
      Elementwise<ops::Round>(op_kernels_internal::RoundToEven),
      // ---- Comparisons and selection ----
      Elementwise<ops::Equal>([](V x, V y) { return x == y; }),
      Elementwise<ops::NotEqual>([](V x, V y) { return x != y; }),
      Elementwise<ops::Less>([](V x, V y) { return x < y; }),
      Elementwise<ops::LessEqual>([](V x, V y) { return x <= y; }),
      Elementwise<ops::Greater>([](V x, V y) { return x > y; }),
      Elementwise<ops::GreaterEqual>([](V x, V y) { return x >= y; }),
      Elementwise<ops::ApproximateEqual>(
          [](V x, V y, double tolerance) {
            return Abs(x - y) < x.Like(tolerance);
          },
          "tolerance", Shapes::kEqual),
      Elementwise<ops::IsNan>([](V x) { return IsNan(x); }),
      Elementwise<ops::IsInf>([](V x) { return Abs(x) == Infinity(x); }),
      Elementwise<ops::IsFinite>([](V x) { return Abs(x) < Infinity(x); }),
      Elementwise<ops::SelectV2>(
          [](V condition, V x, V y) { return Select(condition, x, y); }),
      // ---- Logic and bits --------------------------------------------------
      Elementwise<ops::LogicalAnd>([](V x, V y) { return x & y; }),
      Elementwise<ops::LogicalOr>([](V x, V y) { return x | y; }),
      Elementwise<ops::LogicalNot>([](V x) { return !x; }),
      Elementwise<ops::BitwiseAnd>([](V x, V y) { return x & y; }),
      Elementwise<ops::BitwiseOr>([](V x, V y) { return x | y; }),
      Elementwise<ops::BitwiseXor>([](V x, V y) { return x ^ y; }),
      Elementwise<ops::Invert>([](V x) { return ~x; }),
      Elementwise<ops::LeftShift>(
          [](V x, V y) { return x << op_kernels_internal::ShiftOf(x, y); }),
      Elementwise<ops::RightShift>(
          [](V x, V y) { return x >> op_kernels_internal::ShiftOf(x, y); }),
      // ---- Constants -------------------------------------------------------
      Elementwise<ops::ZerosLike>([](V x) { return x.Like(0); }),
      Elementwise<ops::OnesLike>([](V x) { return x.Like(1); }),
  };
}

inline void MathOps(const Registrar& registrar) {
  AddElementwiseOps(registrar, MathTable());
  // TensorFlow's kernels for int32 expect x in device memory, where other
  // kernels do not leave it.
  op_kernels_internal::UseHostBackend();
  for (const char* op : {"ZerosLike", "OnesLike"}) {
    registrar.Add<OnHost<op_kernels_internal::ElementwiseKernel>>(
        KernelDef(op).HostMemory("x").HostMemory("y"), "T", kInt32Type);
  }
  // For conditions of loops (passes/keep_conditions_on_host.h).
  using Logic = OnHost<op_kernels_internal::ElementwiseKernel>;
  for (const char* op : {"LogicalAnd", "LogicalOr"}) {
    registrar.Add<Logic>(
        KernelDef(op).HostMemory("x").HostMemory("y").HostMemory("z").Label(
            kOnHostLabel));
  }
  registrar.Add<Logic>(KernelDef("LogicalNot")
                           .HostMemory("x")
                           .HostMemory("y")
                           .Label(kOnHostLabel));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_MATH_H_
