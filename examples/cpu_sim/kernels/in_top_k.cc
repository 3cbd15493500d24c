// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cmath>
#include <cstdint>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Whether fewer than k classes exceed the target.

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
