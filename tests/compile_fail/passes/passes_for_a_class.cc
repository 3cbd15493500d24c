// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: the first argument of TFPLUG_REGISTER_GRAPH_PASSES is a device type, not a class: write Platform::kType
#include <tfplug/graph_pass.h>

struct Platform {
  static constexpr char kType[] = "MINIMAL";
};
TFPLUG_REGISTER_GRAPH_PASSES(Platform);
