#include "passes.h"

#include "tfplug/base/status_macros.h"

namespace my_device {

absl::Status FuseRsqrt::Run(tfplug::Graph& graph,
                            const tfplug::PassContext& context) {
  if (!graph.has_op("Reciprocal")) return absl::OkStatus();
  for (tfplug::Node node : graph.nodes("Reciprocal")) {
    const tfplug::Node sqrt = node.input(0).node;
    if (!sqrt || sqrt.op() != "Sqrt" || sqrt.num_uses() != 1 ||
        sqrt.device() != node.device() || sqrt.num_controls() != 0 ||
        !context.IsOnDevice(node.device()) ||
        context.IsPreserved(sqrt.name())) {
      continue;
    }
    node.SetOp("Rsqrt");
    TFPLUG_RETURN_IF_ERROR(node.SetInput(0, sqrt.input(0)));
    TFPLUG_RETURN_IF_ERROR(graph.RemoveNode(sqrt));
  }
  return absl::OkStatus();
}

}  // namespace my_device

TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", my_device::FuseRsqrt);
