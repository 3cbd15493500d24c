// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/kernel/variables.h>
#include <tfplug/ops/array.h>
#include <tfplug/ops/resource_variable.h>

#include <cstdint>
#include <string>

#include "kernels/host_tensor.h"
#include "kernels/indexing.h"
#include "kernels/movement.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// ---- Gather: slices of `params` along one dimension -------------------------

// Treats the output as [batch, outer, count, slice], params as [batch, outer,
// size, slice] and indices as [batch, count]. An index out of range gives
// zeros, as on TensorFlow's GPUs, because a device cannot raise an error on the
// host.
template <typename Index>
void GatherSlices(char* y, const char* params, const Index* indices,
                  int64_t batch, int64_t outer, int64_t count, int64_t size,
                  int64_t slice_bytes) {
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i, y += slice_bytes) {
        CopySlice(y, params, indices[b * count + i], size, slice_bytes);
      }
      params += size * slice_bytes;
    }
  }
}

template <typename Index>
absl::Status GatherAlong(tfplug::KernelContext& context,
                         const tfplug::Tensor& params,
                         const tfplug::Tensor& indices, int axis,
                         int64_t batch_dims) {
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > axis) {
    return absl::InvalidArgumentError(
        "batch_dims must be between 0 and " +
        std::to_string(std::min(indices.rank(), axis)));
  }
  int64_t batch = 1, outer = 1, count = 1, slice = 1;
  tfplug::Shape shape;
  for (int d = 0; d < batch_dims; ++d) {
    if (params.dim(d) != indices.dim(d)) {
      return absl::InvalidArgumentError(
          "the first " + std::to_string(batch_dims) + " dimensions of " +
          params.shape().ToString() + " and " + indices.shape().ToString() +
          " differ");
    }
    batch *= params.dim(d);
    shape.add_dim(params.dim(d));
  }
  for (int d = static_cast<int>(batch_dims); d < axis; ++d) {
    outer *= params.dim(d);
    shape.add_dim(params.dim(d));
  }
  for (int d = static_cast<int>(batch_dims); d < indices.rank(); ++d) {
    count *= indices.dim(d);
    shape.add_dim(indices.dim(d));
  }
  for (int d = axis + 1; d < params.rank(); ++d) {
    slice *= params.dim(d);
    shape.add_dim(params.dim(d));
  }
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
  if (y.num_elements() == 0) return absl::OkStatus();
  const auto element = static_cast<int64_t>(tfplug::DataTypeSize(y.dtype()));
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  return stream->Launch(&GatherSlices<Index>, Bytes(y), Bytes(params),
                        indices.flat<Index>(), batch, outer, count,
                        params.dim(axis), slice * element);
}

template <typename Index>
class GatherV2 final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(batch_dims_,
                            construction.GetAttr(ops::GatherV2::batch_dims));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor params,
                            context.GetInput(ops::GatherV2::params));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(ops::GatherV2::indices));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(ops::GatherV2::axis));
    TFPLUG_ASSIGN_OR_RETURN(const int axis,
                            ReadAxis(axis_tensor, params.rank()));
    return GatherAlong<Index>(context, params, indices, axis, batch_dims_);
  }

 private:
  int64_t batch_dims_ = 0;
};

template <typename Index>
class Gather final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor params,
                            context.GetInput(ops::Gather::params));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(ops::Gather::indices));
    TFPLUG_RETURN_IF_ERROR(CheckAxis(0, params.rank()).status());
    return GatherAlong<Index>(context, params, indices, 0, 0);
  }
};

// Gathers from a variable, which needs functions that TensorFlow exports in 2.6
// to 2.18. In later releases the pass LowerVariableUpdates replaces this op
// with GatherV2 in functions.
template <typename Index>
class ResourceGather final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(
        batch_dims_, construction.GetAttr(ops::ResourceGather::batch_dims));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::ResourceGather;
    using Code = tfplug::VariableCode<Stream>;
    const auto lock = tfplug::LockVariables<Code>(
        context, {Op::resource}, /*exclusive=*/false, /*sparse=*/true);
    if (absl::IsUnimplemented(lock.status())) {
      return absl::UnimplementedError(
          std::string(lock.status().message()) +
          "; use tf.gather(v.read_value(), indices) instead");
    }
    if (!lock.ok()) return lock.status();
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor params,
                            tfplug::GetVariableTensor<Code>(
                                context, Op::resource, /*lock_held=*/true,
                                /*is_variant=*/false, /*sparse=*/true));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor indices,
                            context.GetInput(Op::indices));
    TFPLUG_RETURN_IF_ERROR(CheckAxis(batch_dims_, params.rank()).status());
    return GatherAlong<Index>(context, params, indices,
                              static_cast<int>(batch_dims_), batch_dims_);
  }

 private:
  int64_t batch_dims_ = 0;
};

// ---- GatherNd: slices by their indices in several dimensions ----------------

template <typename Index>
void GatherNdSlices(char* y, const char* params, const Index* indices,
                    int64_t count, Coordinates coordinates,
                    int64_t slice_bytes) {
  for (int64_t i = 0; i < count; ++i, y += slice_bytes) {
    const int64_t at = coordinates.Find(indices + i * coordinates.rank);
    CopySlice(y, params, at, coordinates.size, slice_bytes);
  }
}

template <typename Index>
class GatherNd final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor params,
                            context.GetInput(ops::GatherNd::params));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(ops::GatherNd::indices));
    TFPLUG_ASSIGN_OR_RETURN(const IndexedSlices slices,
                            MakeIndexedSlices(params.shape(), indices.shape()));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, slices.shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (params.num_elements() == 0) {
      return absl::InvalidArgumentError("cannot gather from the empty shape " +
                                        params.shape().ToString());
    }
    const auto element = static_cast<int64_t>(tfplug::DataTypeSize(y.dtype()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&GatherNdSlices<Index>, Bytes(y), Bytes(params),
                          indices.flat<Index>(), slices.count,
                          slices.coordinates, slices.slice_size * element);
  }
};

// int32 is gathered on the device too, as on TensorFlow's GPUs.
template <typename... Index>
bool Register() {
  return ((tfplug::RegisterKernel<GatherV2<Index>>(
               ops::GatherV2()
                   .Tparams<float, double, tfplug::Half, tfplug::BFloat16,
                            int32_t, int64_t, bool>()
                   .template Tindices<Index>()
                   .HostMemory(ops::GatherV2::axis)) &&
           tfplug::RegisterKernel<Gather<Index>>(
               ops::Gather()
                   .Tparams<float, double, tfplug::Half, tfplug::BFloat16,
                            int32_t, int64_t, bool>()
                   .template Tindices<Index>()) &&
           tfplug::RegisterKernel<ResourceGather<Index>>(
               ops::ResourceGather()
                   .dtype<float, double, tfplug::Half, tfplug::BFloat16,
                          int32_t, int64_t, bool>()
                   .template Tindices<Index>()
                   .HostMemory(ops::ResourceGather::resource)) &&
           tfplug::RegisterKernel<GatherNd<Index>>(
               ops::GatherNd()
                   .Tparams<float, double, tfplug::Half, tfplug::BFloat16,
                            int32_t, int64_t, bool>()
                   .template Tindices<Index>())) &&
          ...);
}
[[maybe_unused]] const bool kernels = Register<int32_t, int64_t>();

}  // namespace
}  // namespace cpu_sim
