// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_PASSES_LIST_GRADIENTS_H_
#define CPU_SIM_PASSES_LIST_GRADIENTS_H_

#include <tfplug/graph_pass.h>

#include "absl/status/status.h"

namespace cpu_sim {

// Makes gradients of loops over lists of tensors, as in Keras' recurrent
// layers, work on a device in releases that do not export the C functions which
// kernels for them need (2.19 to 2.21). The two ops that have kernels only on
// TensorFlow's own devices become ops that TensorFlow has for every device:
//
//   ZerosLike(list) -> a list of the same length whose elements have no value,
//                      which all ops read as zeros
//   AddN(list, a list of zeros except element i, which is x)
//                   -> list with x added to element i
//
// The second is also faster: a loop of n steps adds n elements, not n * n.
class ListGradients final : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_PASSES_LIST_GRADIENTS_H_
