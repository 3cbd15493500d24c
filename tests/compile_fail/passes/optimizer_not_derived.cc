// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: TFPLUG_REGISTER_GRAPH_OPTIMIZER takes a class publicly derived from tfplug::GraphOptimizer
#include <tfplug/graph_pass.h>

struct Optimizer {
  static constexpr char kDeviceType[] = "MINIMAL";
};
TFPLUG_REGISTER_GRAPH_OPTIMIZER(Optimizer);
