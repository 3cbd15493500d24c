// Rewrites of TensorFlow's graphs for the device.
#pragma once

#include "tfplug/graph_pass.h"

namespace my_device {

// Replaces Reciprocal(Sqrt(x)) by Rsqrt(x) where nothing else uses the Sqrt.
// TODO: your own passes and rules, and those that tfplug has in tfplug/passes/.
class FuseRsqrt : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override;
};

}  // namespace my_device
