// SPDX-License-Identifier: Apache-2.0
//
// The kernels of kernels_by_hand.cc as C++ classes.
#include "framework.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/register_kernel.h"

namespace framework {

using tfplug::KernelContext, tfplug::KernelDef, tfplug::Tensor;

// y = alpha x
class Scale : public tfplug::Kernel {
 public:
  Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(alpha_, construction.GetAttr<float>("alpha"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream* const stream, context.GetStream<Stream>());
    const auto in = x.flat<float>();
    return ToStatus(drv_scale_async(stream->handle(), y.flat<float>().data(),
                                    in.data(), alpha_,
                                    static_cast<int64_t>(in.size())));
  }

 private:
  float alpha_ = 0;
};
TFPLUG_REGISTER_KERNEL(Scale, KernelDef("Scale").TypeConstraint<float>("T"));

// These construct errors in cold functions, as Failure does for driver errors.
[[gnu::cold, gnu::noinline]] Status ShapesDiffer() {
  return absl::InvalidArgumentError("the shapes differ");
}

// z = x + y
class Add : public tfplug::Kernel {
 public:
  Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, context.GetInput(1));
    const tfplug::Shape shape = x.shape();
    if (ABSL_PREDICT_FALSE(shape != y.shape())) return ShapesDiffer();
    TFPLUG_ASSIGN_OR_RETURN(const Tensor z, context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream* const stream, context.GetStream<Stream>());
    const auto in = x.flat<float>();
    return ToStatus(drv_add_async(stream->handle(), z.flat<float>().data(),
                                  in.data(), y.flat<float>().data(),
                                  static_cast<int64_t>(in.size())));
  }
};
TFPLUG_REGISTER_KERNEL(Add, KernelDef("Add").TypeConstraint<float>("T"));

// Fills a tensor; the shape is in host memory.
class Fill : public tfplug::Kernel {
 public:
  Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor dims, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor value, context.GetInput(1));
    tfplug::Shape shape;
    for (const int32_t dim : dims.flat<int32_t>()) shape.add_dim(dim);
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream* const stream, context.GetStream<Stream>());
    const auto out = y.flat<float>();
    return ToStatus(drv_spread_async(stream->handle(), out.data(),
                                     value.flat<float>().data(),
                                     static_cast<int64_t>(out.size())));
  }
};
TFPLUG_REGISTER_KERNEL(
    Fill, KernelDef("Fill").TypeConstraint<float>("T").HostMemory("dims"));

// Copies asynchronously and completes when the stream has executed the copy.
class AsyncCopy : public tfplug::AsyncKernel {
 public:
  Status ComputeAsync(tfplug::AsyncRun& run) override {
    KernelContext& context = run.context();
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream* const stream, context.GetStream<Stream>());
    const int result =
        drv_copy_async(stream->handle(), y.data(), x.data(), x.byte_size());
    if (ABSL_PREDICT_FALSE(result != DRV_OK)) return Failure{result};
    void* const released = run.Release();
    const int queued = drv_host_task(stream->handle(), Done, released);
    if (ABSL_PREDICT_TRUE(queued == DRV_OK)) return absl::OkStatus();
    run = tfplug::AsyncRun::Adopt(released);
    return Failure{queued};
  }

 private:
  static int Done(void* released) {
    tfplug::AsyncRun::Adopt(released).Finish(absl::OkStatus());
    return DRV_OK;
  }
};
TFPLUG_REGISTER_KERNEL(AsyncCopy,
                       KernelDef("AsyncCopy").TypeConstraint<float>("T"));

}  // namespace framework
