// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/math.h>

#include <cstdint>
#include <utility>

#include "cpu_sim.h"
#include "kernels/batch_gemm.h"
#include "kernels/loop.h"
#include "kernels/narrow.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Multiplies matrices for each index of the dimensions before the last two.
// BatchMatMul requires equal batch dimensions; V2 and V3 broadcast them.
template <typename T>
class BatchMatMul final : public tfplug::Kernel {
 public:
  using Op = ops::BatchMatMulV2;  // the others have the same arguments

  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(adj_x_, construction.GetAttr(Op::adj_x));
    TFPLUG_ASSIGN_OR_RETURN(adj_y_, construction.GetAttr(Op::adj_y));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x,
                            FloatInput<T>(context, Op::x, *stream));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            FloatInput<T>(context, Op::y, *stream));
    const tfplug::Shape x_shape = x.shape(), y_shape = y.shape();
    const DimsView x_dims = x_shape.dims(), y_dims = y_shape.dims();
    if (x_dims.size() < 2 || y_dims.size() < 2) {
      return absl::InvalidArgumentError("operands must be matrices, not " +
                                        x_shape.ToString() + " and " +
                                        y_shape.ToString());
    }
    const DimsView x_matrix = x_dims.last(2), y_matrix = y_dims.last(2);
    BatchGemm gemm;
    gemm.m = x_matrix[adj_x_ ? 1 : 0];
    gemm.k = x_matrix[adj_x_ ? 0 : 1];
    gemm.n = y_matrix[adj_y_ ? 0 : 1];
    gemm.a = {x_matrix[1], adj_x_};
    gemm.b = {y_matrix[1], adj_y_};
    if (y_matrix[adj_y_ ? 1 : 0] != gemm.k) {
      return absl::InvalidArgumentError(
          "Matrix size-incompatible: In[0]: " + x_shape.ToString() +
          ", In[1]: " + y_shape.ToString());
    }
    const DimsView x_batch = x_dims.first(x_dims.size() - 2);
    const DimsView y_batch = y_dims.first(y_dims.size() - 2);
    TFPLUG_ASSIGN_OR_RETURN(Dims shape, BroadcastShape(x_batch, y_batch));
    gemm.c_stride = gemm.n;
    TFPLUG_ASSIGN_OR_RETURN(Dims x_strides, BroadcastStrides(x_batch, shape));
    TFPLUG_ASSIGN_OR_RETURN(Dims y_strides, BroadcastStrides(y_batch, shape));
    TFPLUG_ASSIGN_OR_RETURN(
        gemm.batch,
        (MakeLoop<3>(shape, {Times(gemm.m * gemm.n, DenseStrides(shape)),
                             Times(gemm.m * gemm.k, std::move(x_strides)),
                             Times(gemm.k * gemm.n, std::move(y_strides))})));
    shape.push_back(gemm.m);
    shape.push_back(gemm.n);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor product,
                            FloatOutput<T>(context, {}, tfplug::Shape(shape)));
    if (product.num_elements() > 0) {
      TFPLUG_RETURN_IF_ERROR(stream->Launch(&MultiplyBatch, gemm,
                                            product.flat<float>(),
                                            x.flat<float>(), y.flat<float>()));
    }
    return FinishFloat<T>(context, *stream, product);
  }

 private:
  // Converts strides in matrices to strides in elements.
  static Dims Times(int64_t matrix_size, Dims strides) {
    for (int64_t& stride : strides) stride *= matrix_size;
    return strides;
  }

  bool adj_x_ = false;
  bool adj_y_ = false;
};

template <typename... Types>
bool Register() {
  return ((tfplug::RegisterKernel<BatchMatMul<Types>>(
               ops::BatchMatMul().T<Types>()) &&
           tfplug::RegisterKernel<BatchMatMul<Types>>(
               ops::BatchMatMulV2().T<Types>())) &&
          ...);
}
[[maybe_unused]] const bool kernels =
    Register<float, tfplug::Half, tfplug::BFloat16>();
TFPLUG_REGISTER_KERNEL(
    BatchMatMul<float>,
    ops::BatchMatMulV3().Ta<float>().Tb<float>().Tout<float>());

}  // namespace
}  // namespace cpu_sim
