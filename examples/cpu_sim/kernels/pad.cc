// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/loop.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Pad, and PadV2, whose third argument is the padding value.
template <typename T>
class Pad final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::PadV2;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor paddings,
                            context.GetInput(Op::paddings));
    T value{};
    if (context.num_inputs() > Op::constant_values) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor values,
                              context.GetInput(Op::constant_values));
      if (values.num_elements() != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("constant_values must be a scalar, not ",
                         values.shape().ToString()));
      }
      value = values.scalar<T>();
    }
    const tfplug::Shape shape = x.shape();
    TFPLUG_ASSIGN_OR_RETURN(const Dims pads, ReadPaddings(paddings, shape));
    for (const int64_t pad : pads) {
      if (pad < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("paddings must be non-negative: ", pad));
      }
    }
    tfplug::Shape padded;
    for (int d = 0; d < shape.rank(); ++d) {
      padded.add_dim(pads[2 * d] + shape.dim(d) + pads[2 * d + 1]);
    }
    const Dims y_strides = DenseStrides(padded.dims());
    int64_t first = 0;  // offset of x in y, in elements
    for (int d = 0; d < shape.rank(); ++d) first += pads[2 * d] * y_strides[d];
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(shape.dims(), {y_strides, DenseStrides(shape.dims())})));

    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(Op::output, padded));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_RETURN_IF_ERROR(stream->Launch(
        [](T* y, int64_t size, T value) { std::fill_n(y, size, value); },
        y.flat<T>(), y.num_elements(), value));
    return Move<Place::kDevice>(context, loop, y, first, x, 0);
  }
};

template <typename... Types>
bool Register() {
  return ((tfplug::RegisterKernel<Pad<Types>>(
               ops::Pad().T<Types>().HostMemory(ops::Pad::paddings)) &&
           tfplug::RegisterKernel<Pad<Types>>(
               ops::PadV2()
                   .T<Types>()
                   .HostMemory(ops::PadV2::paddings)
                   .HostMemory(ops::PadV2::constant_values))) &&
          ...);
}
[[maybe_unused]] const bool kernels =
    Register<float, double, int64_t, bool, tfplug::Half, tfplug::BFloat16>();

}  // namespace
}  // namespace cpu_sim
