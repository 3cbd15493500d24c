// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_FUSED_OPS_H_
#define CPU_SIM_KERNELS_FUSED_OPS_H_

#include <tfplug/kernel/kernel_construction.h>
#include <tfplug/kernel/kernel_context.h>
#include <tfplug/kernel/tensor.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cpu_sim.h"
#include "kernels/simd.h"

namespace cpu_sim {

// The attribute fused_ops of _FusedConv2D, _FusedDepthwiseConv2dNative and
// _FusedMatMul: an optional BiasAdd or (inference) FusedBatchNorm, followed by
// an optional activation.
class FusedOps {
 public:
  // Returns UNIMPLEMENTED for other lists.
  absl::Status Init(const tfplug::KernelConstruction& construction);

  // The arguments of one run: device vectors of `depth` elements.
  struct Arguments {
    absl::Span<float> scale;  // empty if unused
    absl::Span<float> shift;
    tfplug::Tensor holder;  // owns their memory
  };
  // Reads the inputs from index `first`. Folds a normalization into scale and
  // shift on `stream`.
  absl::StatusOr<Arguments> Prepare(tfplug::KernelContext& context, int first,
                                    int64_t depth, Stream& stream) const;

  // Called on the device, with private addresses.
  Epilogue MakeEpilogue(const float* scale, const float* shift) const {
    return {scale, shift, activation_, alpha_};
  }

 private:
  bool has_bias_ = false;
  bool normalizes_ = false;
  Activation activation_ = Activation::kNone;
  float alpha_ = 0;
  float epsilon_ = 0;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_FUSED_OPS_H_
