// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this class has no public `static constexpr char kDeviceType[]`
#include <tfplug/graph_pass.h>

struct Optimizer : tfplug::GraphOptimizer<> {};
TFPLUG_REGISTER_GRAPH_OPTIMIZER(Optimizer);
