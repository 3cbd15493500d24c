// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion.h"

#include <tfplug/passes/cancel_transposes.h>
#include <tfplug/passes/clean_casts.h>
#include <tfplug/passes/fold_batch_norm.h>
#include <tfplug/passes/fold_pads.h>
#include <tfplug/passes/fuse_activations.h>
#include <tfplug/passes/fuse_attention.h>
#include <tfplug/passes/fuse_layer_norm.h>
#include <tfplug/passes/fusion_rules.h>
#include <tfplug/patterns/rules.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace cpu_sim {
namespace {

using tfplug::patterns::Rule;

std::vector<Rule> AllRules() {
  std::vector<Rule> all;
  for (std::vector<Rule>& rules : std::vector<std::vector<Rule>>{
           tfplug::FusionRules(), tfplug::FoldPadsRules(),
           tfplug::FoldBatchNormRules(), tfplug::CancelTransposesRules(),
           tfplug::CleanCastsRules(), tfplug::FuseActivationsRules(),
           tfplug::FuseLayerNormRules(), tfplug::FuseAttentionRules()}) {
    for (Rule& rule : rules) all.push_back(std::move(rule));
  }
  return all;
}

}  // namespace

absl::Status Fusion::Run(tfplug::Graph& graph,
                         const tfplug::PassContext& context) {
  const char* fuse = std::getenv("CPU_SIM_FUSE");
  if (fuse != nullptr && std::string(fuse) == "0") return absl::OkStatus();
  static const tfplug::patterns::Rules rules(AllRules());
  return rules.Run(graph, context).status();
}

}  // namespace cpu_sim
