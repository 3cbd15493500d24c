// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/simd.h"
#include "kernels/window.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

class PoolKernel : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    return window_.Init(construction);
  }

 protected:
  SlidingWindow window_;
};

enum class Kind { kMax, kAverage };

template <Kind kind>
class Pool final : public PoolKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Pool2D pool, window_.OverImages(x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, OutputShape(pool)));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    const PoolCode& code = Simd().pool;
    return stream->Launch(kind == Kind::kMax ? code.max : code.average, pool,
                          x.flat<float>(), y.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(Pool<Kind::kMax>, ops::MaxPool().T<float>());
TFPLUG_REGISTER_KERNEL(Pool<Kind::kAverage>, ops::AvgPool().T<float>());

class MaxGradient final : public PoolKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::MaxPoolGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::orig_input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.GetInput(Op::orig_output));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.GetInput(Op::grad));
    TFPLUG_ASSIGN_OR_RETURN(const Pool2D pool, window_.OverImages(x.shape()));
    const tfplug::Shape pooled = OutputShape(pool);
    TFPLUG_RETURN_IF_ERROR(CheckShape("orig_output", y.shape(), pooled));
    TFPLUG_RETURN_IF_ERROR(CheckShape("grad", dy.shape(), pooled));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::output, x.shape()));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor work,
        context.AllocateTemp(tfplug::DataType::kFloat, {pool.depth}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().pool.max_gradient, pool, x.flat<float>(),
                          y.flat<float>(), dy.flat<float>(), dx.flat<float>(),
                          work.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(MaxGradient, ops::MaxPoolGrad().T<float>());

class AverageGradient final : public PoolKernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::AvgPoolGrad;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sizes,
                            context.GetInput(Op::orig_input_shape));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dy, context.GetInput(Op::grad));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(sizes));
    TFPLUG_ASSIGN_OR_RETURN(const Pool2D pool, window_.OverImages(shape));
    TFPLUG_RETURN_IF_ERROR(CheckShape("grad", dy.shape(), OutputShape(pool)));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dx,
                            context.AllocateOutput(Op::output, shape));
    if (dx.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Simd().pool.average_gradient, pool, dy.flat<float>(),
                          dx.flat<float>());
  }
};
TFPLUG_REGISTER_KERNEL(AverageGradient,
                       ops::AvgPoolGrad().T<float>().HostMemory(
                           ops::AvgPoolGrad::orig_input_shape));

}  // namespace
}  // namespace cpu_sim
