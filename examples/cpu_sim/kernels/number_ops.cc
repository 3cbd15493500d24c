// SPDX-License-Identifier: Apache-2.0
#include "kernels/number_ops.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu_sim.h"
#include "kernels/narrow.h"

namespace cpu_sim {
namespace {

// ---- On the device: the int64 counterpart of ElementwiseCode ----------------

// Sums and products wrap around, as in TensorFlow.
int64_t Wrap(uint64_t value) { return static_cast<int64_t>(value); }

void IntegerUnary(Unary op, int64_t size, const int64_t* x, int64_t* y) {
  const auto each = [=](auto f) { std::transform(x, x + size, y, f); };
  switch (op) {
    case Unary::kNeg:
      return each([](uint64_t v) { return Wrap(0 - v); });
    case Unary::kAbs:
      return each([](int64_t v) {
        const auto u = static_cast<uint64_t>(v);
        return Wrap(v < 0 ? 0 - u : u);
      });
    case Unary::kSquare:
      return each([](uint64_t v) { return Wrap(v * v); });
    default:  // see IsOfIntegers
      return;
  }
}

void IntegerBinary(Binary op, int64_t size, const int64_t* a, int64_t a_step,
                   const int64_t* b, int64_t b_step, int64_t* y) {
  const auto each = [=](auto f) {
    for (int64_t i = 0; i < size; ++i) y[i] = f(a[i * a_step], b[i * b_step]);
  };
  switch (op) {
    case Binary::kAdd:
      return each([](uint64_t u, uint64_t v) { return Wrap(u + v); });
    case Binary::kSub:
      return each([](uint64_t u, uint64_t v) { return Wrap(u - v); });
    case Binary::kMul:
      return each([](uint64_t u, uint64_t v) { return Wrap(u * v); });
    case Binary::kSquaredDifference:
      return each(
          [](uint64_t u, uint64_t v) { return Wrap((u - v) * (u - v)); });
    case Binary::kMaximum:
      return each([](int64_t u, int64_t v) { return std::max(u, v); });
    case Binary::kMinimum:
      return each([](int64_t u, int64_t v) { return std::min(u, v); });
    default:  // see IsOfIntegers
      return;
  }
}

auto UnaryOf(float) { return Simd().elementwise.unary; }
auto UnaryOf(int64_t) { return &IntegerUnary; }
auto BinaryOf(float) { return Simd().elementwise.binary; }
auto BinaryOf(int64_t) { return &IntegerBinary; }

template <typename T>
void DoBinaryOf(const Loop<3>& loop, Binary op, T* y, const T* a, const T* b) {
  const auto binary = BinaryOf(T());
  ForEachRow(loop, [&](const auto& at) {
    binary(op, loop.row_size(), a + at[1], loop.row_stride(1), b + at[2],
           loop.row_stride(2), y + at[0]);
  });
}

// ---- On the host -----------------------------------------------------------

// The type in which T is computed.
template <typename T>
using Wide = std::conditional_t<kIsNarrow<T>, float, T>;

template <typename T>
absl::Status ComputeOf(tfplug::KernelContext& context, Unary op) {
  using W = Wide<T>;
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, FloatInput<T>(context, 0, *stream));
  const tfplug::Shape shape = x.shape();
  const auto in = x.flat<W>();
  if (!kIsNarrow<T>) x = tfplug::Tensor();  // released for y to reuse
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                          FloatOutput<T>(context, {0}, shape));
  TFPLUG_RETURN_IF_ERROR(
      stream->Launch(UnaryOf(W()), op, y.num_elements(), in, y.flat<W>()));
  return FinishFloat<T>(context, *stream, y);
}

template <typename T>
absl::Status ComputeOf(tfplug::KernelContext& context, Binary op) {
  using W = Wide<T>;
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, FloatInput<T>(context, 0, *stream));
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, FloatInput<T>(context, 1, *stream));
  const tfplug::Shape a_shape = a.shape(), b_shape = b.shape();
  TFPLUG_ASSIGN_OR_RETURN(const Broadcast<2> all,
                          BroadcastAll<2>({a_shape.dims(), b_shape.dims()}));
  const auto a_data = a.flat<W>(), b_data = b.flat<W>();
  if (!kIsNarrow<T>) {  // released for y to reuse
    a = tfplug::Tensor();
    b = tfplug::Tensor();
  }
  TFPLUG_ASSIGN_OR_RETURN(
      tfplug::Tensor y,
      FloatOutput<T>(context, {0, 1}, tfplug::Shape(all.shape)));
  TFPLUG_RETURN_IF_ERROR(stream->Launch(&DoBinaryOf<W>, all.loop, op,
                                        y.flat<W>(), a_data, b_data));
  return FinishFloat<T>(context, *stream, y);
}

template <typename Op>
absl::Status ComputeAny(tfplug::KernelContext& context, tfplug::DataType type,
                        Op op) {
  switch (type) {
    case tfplug::DataType::kHalf:
      return ComputeOf<tfplug::Half>(context, op);
    case tfplug::DataType::kBfloat16:
      return ComputeOf<tfplug::BFloat16>(context, op);
    case tfplug::DataType::kInt64:
      return ComputeOf<int64_t>(context, op);
    default:
      return ComputeOf<float>(context, op);
  }
}

}  // namespace

void DoBinary(const Loop<3>& loop, Binary op, float* y, const float* a,
              const float* b) {
  DoBinaryOf(loop, op, y, a, b);
}

absl::Status Compute(tfplug::KernelContext& context, tfplug::DataType type,
                     Unary op) {
  return ComputeAny(context, type, op);
}
absl::Status Compute(tfplug::KernelContext& context, tfplug::DataType type,
                     Binary op) {
  return ComputeAny(context, type, op);
}

}  // namespace cpu_sim
