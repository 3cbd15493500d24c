// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/kernel/variables.h>
#include <tfplug/ops/resource_variable.h>

#include <cstdint>
#include <string>

#include "kernels/combine.h"

// Updates slices of a variable in place, which needs functions that TensorFlow
// exports in 2.6 to 2.18. In other releases tfplug replaces most of these
// updates before they run; the kernels return an error that names the
// workaround.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

using Code = tfplug::VariableCode<Stream>;

absl::Status AddWorkaround(const absl::Status& lacking, const char* instead) {
  if (lacking.code() != absl::StatusCode::kUnimplemented) return lacking;
  return absl::UnimplementedError(std::string(lacking.message()) + "; use " +
                                  instead + " instead");
}

// Describes the slices that `indices` select in dimension 0 of the variable.
absl::StatusOr<IndexedSlices> SlicesOf(const tfplug::Tensor& variable,
                                       const tfplug::Tensor& indices) {
  tfplug::Shape one_by_one = indices.shape();
  one_by_one.add_dim(1);
  return MakeIndexedSlices(variable.shape(), one_by_one);
}

template <typename Combine, typename T, typename Index>
class ResourceScatter final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::ResourceScatterAdd;  // the others have the same arguments
    const auto lock =
        tfplug::LockVariables<Code>(context, {Op::resource},
                                    /*exclusive=*/true, /*sparse=*/true);
    if (!lock.ok()) {
      return AddWorkaround(lock.status(),
                           "v.assign(tf.tensor_scatter_nd_add(v, ...))");
    }
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor variable,
                            tfplug::GetVariableTensor<Code>(
                                context, Op::resource, /*lock_held=*/true,
                                /*is_variant=*/false, /*sparse=*/true));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(Op::indices));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor updates,
                            context.GetInput(Op::updates));
    TFPLUG_ASSIGN_OR_RETURN(const IndexedSlices slices,
                            SlicesOf(variable, indices));
    if (updates.shape() != slices.shape) {
      return absl::InvalidArgumentError("updates must have shape " +
                                        slices.shape.ToString() + ", not " +
                                        updates.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&ScatterSlices<Combine, T, Index>, variable.flat<T>(),
                          indices.flat<Index>(), updates.flat<T>(),
                          slices.count, slices.coordinates, slices.slice_size);
  }
};

template <class Op, typename Combine, typename... Index>
bool Register() {
  return (
      tfplug::RegisterKernel<ResourceScatter<Combine, float, Index>>(
          Op().template dtype<float>().template Tindices<Index>().HostMemory(
              Op::resource)) &&
      ...);
}

[[maybe_unused]] const bool kernels =
    Register<ops::ResourceScatterUpdate, CombineSet, int32_t, int64_t>() &&
    Register<ops::ResourceScatterAdd, CombineAdd, int32_t, int64_t>() &&
    Register<ops::ResourceScatterSub, CombineSub, int32_t, int64_t>() &&
    Register<ops::ResourceScatterMul, CombineMul, int32_t, int64_t>() &&
    Register<ops::ResourceScatterMax, CombineMax, int32_t, int64_t>() &&
    Register<ops::ResourceScatterMin, CombineMin, int32_t, int64_t>();

}  // namespace
}  // namespace cpu_sim
