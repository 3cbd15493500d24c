// SPDX-License-Identifier: Apache-2.0
#include "kernels/float_ops.h"

#include <tfplug/status_macros.h>

#include "cpu_sim.h"
#include "kernels/narrow.h"

namespace cpu_sim {

void DoBinary(const Loop<3>& loop, Binary op, float* y, const float* a,
              const float* b) {
  const auto binary = Simd().elementwise.binary;
  ForEachRow(loop, [&](const auto& at) {
    binary(op, loop.row_size(), a + at[1], loop.row_stride(1), b + at[2],
           loop.row_stride(2), y + at[0]);
  });
}

template <typename T>
absl::Status ComputeFloatOp(tfplug::KernelContext& context, Unary op) {
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, FloatInput<T>(context, 0, *stream));
  const tfplug::Shape shape = x.shape();
  const auto in = x.flat<float>();
  if (kIsFloat<T>) x = tfplug::Tensor();  // let go, for y to take over
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                          FloatOutput<T>(context, {0}, shape));
  TFPLUG_RETURN_IF_ERROR(stream->Launch(Simd().elementwise.unary, op,
                                        y.num_elements(), in, y.flat<float>()));
  return FinishFloat<T>(context, *stream, y);
}

template <typename T>
absl::Status ComputeFloatOp(tfplug::KernelContext& context, Binary op) {
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor a, FloatInput<T>(context, 0, *stream));
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor b, FloatInput<T>(context, 1, *stream));
  const tfplug::Shape a_shape = a.shape(), b_shape = b.shape();
  TFPLUG_ASSIGN_OR_RETURN(const Dims shape,
                          BroadcastShape(a_shape.dims(), b_shape.dims()));
  TFPLUG_ASSIGN_OR_RETURN(
      const auto loop,
      (MakeBroadcastLoop<3>(shape, {a_shape.dims(), b_shape.dims()})));
  const auto a_data = a.flat<float>(), b_data = b.flat<float>();
  if (kIsFloat<T>) {  // let go, for y to take over
    a = tfplug::Tensor();
    b = tfplug::Tensor();
  }
  TFPLUG_ASSIGN_OR_RETURN(
      tfplug::Tensor y, FloatOutput<T>(context, {0, 1}, tfplug::Shape(shape)));
  TFPLUG_RETURN_IF_ERROR(
      stream->Launch(&DoBinary, loop, op, y.flat<float>(), a_data, b_data));
  return FinishFloat<T>(context, *stream, y);
}

#define CPU_SIM_INSTANTIATE(T)                                            \
  template absl::Status ComputeFloatOp<T>(tfplug::KernelContext&, Unary); \
  template absl::Status ComputeFloatOp<T>(tfplug::KernelContext&, Binary);
CPU_SIM_INSTANTIATE(float)
CPU_SIM_INSTANTIATE(tfplug::Half)
CPU_SIM_INSTANTIATE(tfplug::BFloat16)
#undef CPU_SIM_INSTANTIATE

}  // namespace cpu_sim
