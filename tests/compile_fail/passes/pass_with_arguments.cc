// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a graph pass needs a public constructor without arguments
#include <tfplug/graph_pass.h>

struct Pass : tfplug::GraphPass {
  explicit Pass(int) {}
  absl::Status Run(tfplug::Graph&, const tfplug::PassContext&) override {
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_GRAPH_PASSES("MINIMAL", Pass);
