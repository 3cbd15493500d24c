// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_PASSES_LIST_GRADIENTS_H_
#define CPU_SIM_PASSES_LIST_GRADIENTS_H_

#include <tfplug/graph_pass.h>

#include "absl/status/status.h"

namespace cpu_sim {

// Makes the gradients of loops over lists of tensors, such as those of Keras'
// recurrent layers, work on a device where core does not export what a kernel
// for them needs (2.19 to 2.21). The two ops that core has for no device but
// its own become ops that it has for every device:
//
//   ZerosLike(list) -> a list of as many elements without a value, which all
//                      ops read as zeros
//   AddN(list, zeros but for element i, which is x) -> list, but for element
//                      i, to which x is added
//
// The second is also faster: a loop of n steps adds n elements, not n * n.
class ListGradients final : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_PASSES_LIST_GRADIENTS_H_
