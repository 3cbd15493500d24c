// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_PASSES_BOOL_LISTS_H_
#define CPU_SIM_PASSES_BOOL_LISTS_H_

#include <tfplug/graph_pass.h>

#include "absl/status/status.h"

namespace cpu_sim {

// Makes lists of bool tensors, such as the masks of Keras' recurrent layers,
// work on a device: TensorFlow has kernels for lists of numbers on every
// device, but none for lists of bool. The lists become lists of half, with the
// values 0 and 1; tensors are cast on their way in and out.
class BoolLists final : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_PASSES_BOOL_LISTS_H_
