// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_PASSES_FUSION_H_
#define CPU_SIM_PASSES_FUSION_H_

#include <tfplug/graph_pass.h>

namespace cpu_sim {

// All that tfplug can fuse, fold and cancel, in one sweep over the graph. Not
// with CPU_SIM_FUSE=0, which is looked at for each graph: what a function
// computes can be compared with and without.
class Fusion : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_PASSES_FUSION_H_
