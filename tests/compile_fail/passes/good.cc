// SPDX-License-Identifier: Apache-2.0
// expect-success
#include <tfplug/graph_pass.h>

struct Pass : tfplug::GraphPass {
  absl::Status Run(tfplug::Graph&, const tfplug::PassContext&) override {
    return absl::OkStatus();
  }
};
struct Platform {
  static constexpr char kType[] = "MINIMAL";
};
TFPLUG_REGISTER_GRAPH_PASSES(Platform::kType, Pass);
