// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// ---- TopKV2: the largest of each row in order; the first of equals wins -----

template <typename T, typename Index>
void FindTop(T* values, Index* indices, const T* x, int64_t rows, int64_t size,
             int64_t k) {
  std::vector<Index> order(static_cast<size_t>(size));
  for (int64_t r = 0; r < rows; ++r, x += size, values += k, indices += k) {
    std::iota(order.begin(), order.end(), Index{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [x](Index a, Index b) {
                        return x[a] > x[b] || (x[a] == x[b] && a < b);
                      });
    for (int64_t i = 0; i < k; ++i) {
      indices[i] = order[static_cast<size_t>(i)];
      values[i] = x[indices[i]];
    }
  }
}

template <typename T, typename Index>
class TopK final : public tfplug::Kernel {
 public:
  using Op = ops::TopKV2;

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor k_tensor, context.GetInput(Op::k));
    TFPLUG_ASSIGN_OR_RETURN(const Dims k, ReadDims(k_tensor));
    const int last = x.rank() - 1;
    if (last < 0 || k.size() != 1 || k[0] < 0 || k[0] > x.dim(last)) {
      return absl::InvalidArgumentError(
          "input must have at least k columns; its shape is " +
          x.shape().ToString() + " and k is " + tfplug::Shape(k).ToString());
    }
    tfplug::Shape shape = x.shape();
    shape.set_dim(last, k[0]);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor values,
                            context.AllocateOutput(Op::values, shape));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.AllocateOutput(Op::indices, shape));
    if (values.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&FindTop<T, Index>, values.flat<T>(),
                          indices.flat<Index>(), x.flat<T>(),
                          values.num_elements() / k[0], x.dim(last), k[0]);
  }
};

template <typename T, typename... Index>
bool RegisterTopK() {
  return (
      tfplug::RegisterKernel<TopK<T, Index>>(
          ops::TopKV2().template T<T>().template index_type<Index>().HostMemory(
              ops::TopKV2::k)) &&
      ...);
}
[[maybe_unused]] const bool top_k = RegisterTopK<float, int32_t, int64_t>();

// ---- InTopKV2: whether fewer than k classes exceed the target ---------------

// A target out of range, or a prediction that is not finite, gives false.
template <typename Index>
void LookForTargets(bool* in, const float* predictions, const Index* targets,
                    const Index* k, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r, predictions += classes) {
    const bool is_class = targets[r] >= 0 && targets[r] < classes;
    bool is_valid = is_class && std::isfinite(predictions[targets[r]]);
    int64_t better = 0;
    for (int64_t c = 0; is_valid && c < classes; ++c) {
      is_valid = std::isfinite(predictions[c]);
      if (predictions[c] > predictions[targets[r]]) ++better;
    }
    in[r] = is_valid && better < *k;
  }
}

template <typename Index>
class InTopK final : public tfplug::Kernel {
 public:
  using Op = ops::InTopKV2;

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor predictions,
                            context.GetInput(Op::predictions));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor targets,
                            context.GetInput(Op::targets));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor k, context.GetInput(Op::k));
    if (predictions.rank() != 2 || targets.rank() != 1 ||
        targets.dim(0) != predictions.dim(0) || k.num_elements() != 1) {
      return absl::InvalidArgumentError(
          "predictions must be a matrix, targets a vector with an element per "
          "row, and k a scalar, not " +
          predictions.shape().ToString() + ", " + targets.shape().ToString() +
          " and " + k.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor in,
        context.AllocateOutput(Op::precision, targets.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&LookForTargets<Index>, in.flat<bool>(),
                          predictions.flat<float>(), targets.flat<Index>(),
                          k.flat<Index>(), predictions.dim(0),
                          predictions.dim(1));
  }
};

template <typename... Index>
bool RegisterInTopK() {
  return (tfplug::RegisterKernel<InTopK<Index>>(
              ops::InTopKV2().template T<Index>()) &&
          ...);
}
[[maybe_unused]] const bool in_top_k = RegisterInTopK<int32_t, int64_t>();

}  // namespace
}  // namespace cpu_sim
