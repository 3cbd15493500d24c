// SPDX-License-Identifier: Apache-2.0
// Kernels of float, each with one mistake that tools/op-sweep has to find; those
// of Neg and WrongNot have none.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"

namespace small {
namespace {

using tfplug::KernelContext, tfplug::Shape, tfplug::Tensor;

// Applies a function to each element.
template <float (*kFunction)(float)>
class Unary : public tfplug::Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
    const auto in = x.flat<float>(), out = y.flat<float>();
    for (size_t i = 0; i < in.size(); ++i) {
      OnDevice(out.data())[i] = kFunction(OnDevice(in.data())[i]);
    }
    return absl::OkStatus();
  }
};

float Negate(float x) { return -x; }
float ReluWithoutNan(float x) { return x > 0 ? x : 0; }
TFPLUG_REGISTER_KERNEL(Unary<Negate>, tfplug::ops::Neg().T<float>());
TFPLUG_REGISTER_KERNEL(Unary<ReluWithoutNan>, tfplug::ops::Relu().T<float>());

// There is no device of this type.
TFPLUG_REGISTER_KERNEL(Unary<Negate>, tfplug::KernelDef("Neg").Device("OTHER"));

// Crashes if there is no element.
class Abs : public Unary<std::fabs> {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    if (x.flat<float>().size() == 0) std::abort();
    return Unary::Compute(context);
  }
};
TFPLUG_REGISTER_KERNEL(Abs, tfplug::ops::Abs().T<float>());

// Overwrites its input.
class Square : public tfplug::Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
    const auto in = x.flat<float>(), out = y.flat<float>();
    for (size_t i = 0; i < in.size(); ++i) {
      float* value = const_cast<float*>(OnDevice(in.data() + i));
      *value *= *value;
      OnDevice(out.data())[i] = *value;
    }
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Square, tfplug::ops::Square().T<float>());

// Accepts gradients and features of different shapes.
class ReluGrad : public tfplug::Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor gradients, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor features, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y,
                            context.AllocateOutput(0, gradients.shape()));
    const auto dy = gradients.flat<float>(), x = features.flat<float>();
    const auto out = y.flat<float>();
    for (size_t i = 0; i < dy.size() && i < x.size(); ++i) {
      OnDevice(out.data())[i] =
          OnDevice(x.data())[i] > 0 ? OnDevice(dy.data())[i] : 0;
    }
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(ReluGrad, tfplug::ops::ReluGrad().T<float>());

// Gives an empty result the shape of x instead of the broadcast shape; accepts
// inputs of one shape, or with a scalar, only.
class Maximum : public tfplug::Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, context.GetInput(1));
    const auto a = x.flat<float>(), b = y.flat<float>();
    const bool larger = y.shape().rank() > x.shape().rank() && a.size() != 0;
    TFPLUG_ASSIGN_OR_RETURN(
        Tensor z, context.AllocateOutput(0, (larger ? y : x).shape()));
    const auto out = z.flat<float>();
    for (size_t i = 0; i < out.size() && a.size() * b.size() != 0; ++i) {
      const float p = OnDevice(a.data())[i % a.size()];
      const float q = OnDevice(b.data())[i % b.size()];
      OnDevice(out.data())[i] = p < q || std::isnan(q) ? q : p;
    }
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Maximum, tfplug::ops::Maximum().T<float>());

// The plug-in has no pass that fuses.
TFPLUG_REGISTER_OP(tfplug::FusedMapOp());
TFPLUG_REGISTER_KERNEL(Unary<Negate>, tfplug::KernelDef(tfplug::kFusedMapOp));

// Ops of which TensorFlow has no kernel for the CPU. The shape function of each
// gives the vector of three elements.
tfplug::OpDef Own(const char* name) {
  return tfplug::OpDef(name)
      .Input("x: float")
      .Output("y: float")
      .SetShapeFn([](tfplug::ShapeInference& s) -> absl::Status {
        TFPLUG_ASSIGN_OR_RETURN(const auto y, s.MakeVector(3));
        return s.SetOutput(0, y);
      });
}

enum class Mistake { kNone, kCrash, kNoOutput, kShape };

template <Mistake kMistake>
class WrongKernel : public tfplug::Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    if (kMistake == Mistake::kCrash) std::abort();
    if (kMistake == Mistake::kNoOutput) return absl::OkStatus();
    const int64_t size = kMistake == Mistake::kShape ? 7 : 3;
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, {size}));
    std::fill_n(OnDevice(y.flat<float>().data()), size, 0.f);
    return absl::OkStatus();
  }
};

TFPLUG_REGISTER_OP(Own("WrongNot"));
TFPLUG_REGISTER_OP(Own("WrongCrash"));
TFPLUG_REGISTER_OP(Own("WrongOutput"));
TFPLUG_REGISTER_OP(Own("WrongShape"));
TFPLUG_REGISTER_KERNEL(WrongKernel<Mistake::kNone>,
                       tfplug::KernelDef("WrongNot"));
TFPLUG_REGISTER_KERNEL(WrongKernel<Mistake::kCrash>,
                       tfplug::KernelDef("WrongCrash"));
TFPLUG_REGISTER_KERNEL(WrongKernel<Mistake::kNoOutput>,
                       tfplug::KernelDef("WrongOutput"));
TFPLUG_REGISTER_KERNEL(WrongKernel<Mistake::kShape>,
                       tfplug::KernelDef("WrongShape"));

}  // namespace
}  // namespace small
