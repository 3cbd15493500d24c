// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <cstdint>

#include "kernels/combine.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Enqueues an update of y, whose buffer no other tensor shares.
template <typename Combine, typename T, typename Index>
absl::Status Scatter(tfplug::KernelContext& context, const tfplug::Tensor& y,
                     const tfplug::Tensor& indices,
                     const tfplug::Tensor& updates) {
  TFPLUG_ASSIGN_OR_RETURN(const IndexedSlices slices,
                          MakeIndexedSlices(y.shape(), indices.shape()));
  if (updates.shape() != slices.shape) {
    return absl::InvalidArgumentError(
        "indices of shape " + indices.shape().ToString() +
        " for a tensor of shape " + y.shape().ToString() +
        " need updates of shape " + slices.shape.ToString() + ", not " +
        updates.shape().ToString());
  }
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  return stream->Launch(&ScatterSlices<Combine, T, Index>, y.flat<T>(),
                        indices.flat<Index>(), updates.flat<T>(), slices.count,
                        slices.coordinates, slices.slice_size);
}

// Scatters into zeros and adds updates with equal indices.
template <typename T, typename Index>
class ScatterNd final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(ops::ScatterNd::indices));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor updates,
                            context.GetInput(ops::ScatterNd::updates));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor shape_tensor,
                            context.GetInput(ops::ScatterNd::shape));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(shape_tensor));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_RETURN_IF_ERROR(stream->MemZero(y.memory(), y.byte_size()));
    return Scatter<CombineAdd, T, Index>(context, y, indices, updates);
  }
};

// Scatters into a copy of a tensor.
template <typename Combine, typename T, typename Index>
class TensorScatter final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::TensorScatterUpdate;  // the others have the same arguments
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::tensor));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(Op::indices));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor updates,
                            context.GetInput(Op::updates));
    const tfplug::Shape shape = x.shape();
    const tfplug::DeviceMemory from = x.memory();
    const uint64_t bytes = x.byte_size();
    x = tfplug::Tensor();  // released so that y can reuse its buffer
    int forwarded = -1;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.ForwardOrAllocateOutput(
                                Op::output, {Op::tensor}, shape, &forwarded));
    if (forwarded < 0) {
      TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
      TFPLUG_RETURN_IF_ERROR(
          stream->CopyDeviceToDevice(y.memory(), from, bytes));
    }
    return Scatter<Combine, T, Index>(context, y, indices, updates);
  }
};

template <class Op, typename Combine, typename T>
bool RegisterTensorScatter() {
  return tfplug::RegisterKernel<TensorScatter<Combine, T, int32_t>>(
             Op().template T<T>().template Tindices<int32_t>()) &&
         tfplug::RegisterKernel<TensorScatter<Combine, T, int64_t>>(
             Op().template T<T>().template Tindices<int64_t>());
}

template <typename T>
bool Register() {
  return tfplug::RegisterKernel<ScatterNd<T, int32_t>>(
             ops::ScatterNd().T<T>().template Tindices<int32_t>().HostMemory(
                 ops::ScatterNd::shape)) &&
         tfplug::RegisterKernel<ScatterNd<T, int64_t>>(
             ops::ScatterNd().T<T>().template Tindices<int64_t>().HostMemory(
                 ops::ScatterNd::shape)) &&
         RegisterTensorScatter<ops::TensorScatterUpdate, CombineSet, T>() &&
         RegisterTensorScatter<ops::TensorScatterAdd, CombineAdd, T>() &&
         RegisterTensorScatter<ops::TensorScatterSub, CombineSub, T>() &&
         RegisterTensorScatter<ops::TensorScatterMax, CombineMax, T>() &&
         RegisterTensorScatter<ops::TensorScatterMin, CombineMin, T>();
}
[[maybe_unused]] const bool kernels = Register<float>() && Register<int64_t>();

}  // namespace
}  // namespace cpu_sim
