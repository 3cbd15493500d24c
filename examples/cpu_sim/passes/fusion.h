// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_PASSES_FUSION_H_
#define CPU_SIM_PASSES_FUSION_H_

#include <tfplug/graph_pass.h>

namespace cpu_sim {

// Applies all rules that tfplug ships in one run over the graph. The
// environment variable CPU_SIM_FUSE=0, read for each graph, disables it, so
// that results with and without it can be compared.
class Fusion : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_PASSES_FUSION_H_
