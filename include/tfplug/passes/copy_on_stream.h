// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_COPY_ON_STREAM_H_
#define TFPLUG_PASSES_COPY_ON_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/stream_copy_ops.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/runtime/node_ports.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Copies tensors between the CPU and the device on the stream of the kernels.
// TensorFlow copies a batch to the device on another stream, and starts the
// kernels that need it only when one of its threads has noticed the end of the
// copy; the same is true of a loss that the host reads. The pass puts an op of
// the device into each edge from a node on the CPU to a kernel of this library
// that reads device memory: the copy is enqueued before the kernel, and no
// thread waits for it. In the other direction, a task of the stream tells
// TensorFlow that the result has arrived.
//
// TensorFlow copies tensors without a fixed size of elements, and those that
// other kernels of TensorFlow's read or compute than Identity and the like. Up to
// TensorFlow 2.12, which lacks asynchronous kernels, it also copies those to the
// host. The pass does nothing in a library without StreamCopyOps
// (op_kernels/stream_copy.h).
class CopyOnStream : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasKernel(kToDeviceOp)) return absl::OkStatus();
    std::vector<Node> nodes;
    for (const Node node : graph.nodes()) {
      if (context.IsOnDevice(node.device())) nodes.push_back(node);
    }
    for (const Node node : nodes) {
      const runtime::NodePorts ports = PortsOf(node, context);
      TFPLUG_RETURN_IF_ERROR(CopyInputs(graph, node, ports.inputs));
      if (!context.HasKernel(kToHostOp)) continue;
      TFPLUG_RETURN_IF_ERROR(CopyOutputs(graph, node, ports.outputs));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the inputs and outputs of a node of this library, or of one of
  // TensorFlow's kernels that only pass a tensor on; none for others.
  static runtime::NodePorts PortsOf(Node node, const PassContext& context) {
    runtime::NodePorts none;
    const auto op = context.functions().GetSignature(node.op());
    if (op.ok()) {
      if (const auto* const kernel =
              runtime::FindOwnKernels(node, **op).selected) {
        return runtime::PortsOf(node, **op, kernel->def).value_or(none);
      }
    }
    for (const char* passes :
         {"ExpandDims", "Identity", "PreventGradient", "Reshape", "Snapshot",
          "Squeeze", "StopGradient"}) {
      if (node.op() != passes) continue;
      const auto type = node.GetAttr<DataType>("T");
      // TensorFlow keeps int32 in host memory.
      if (!type.ok() || *type == DataType::kInt32 || DataTypeSize(*type) == 0) {
        return none;
      }
      return {{{*type, /*on_host=*/false}}, {{*type, /*on_host=*/false}}};
    }
    return none;
  }

  absl::Status CopyInputs(Graph& graph, Node node,
                          const std::vector<runtime::Port>& ports) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output from = node.input(i);
      if (!from || !passes_internal::IsOnCpu(from.node)) continue;
      const auto index = static_cast<size_t>(i);
      if (index >= ports.size() || ports[index].on_host) continue;
      Node& copy =
          to_device_[{from.node.id(), from.port, std::string(node.device())}];
      if (!copy) {
        TFPLUG_ASSIGN_OR_RETURN(
            copy, AddCopy(graph, from, kToDeviceOp, ports[index].type,
                          node.device()));
      }
      TFPLUG_RETURN_IF_ERROR(node.SetInput(i, copy));
    }
    return absl::OkStatus();
  }

  static absl::Status CopyOutputs(Graph& graph, Node node,
                                  const std::vector<runtime::Port>& ports) {
    for (size_t port = 0; port < ports.size(); ++port) {
      if (ports[port].on_host) continue;
      std::vector<Use> uses;
      for (const Use& use : node.uses(static_cast<int>(port))) {
        if (passes_internal::IsOnCpu(use.node)) uses.push_back(use);
      }
      if (uses.empty()) continue;
      TFPLUG_ASSIGN_OR_RETURN(
          const Node copy, AddCopy(graph, {node, static_cast<int>(port)},
                                   kToHostOp, ports[port].type, node.device()));
      for (const Use& use : uses) {
        TFPLUG_RETURN_IF_ERROR(use.node.SetInput(use.input, copy));
      }
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<Node> AddCopy(Graph& graph, Output from, const char* op,
                                      DataType type, absl::string_view device) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Node copy,
        graph.AddNode(
            graph.UniqueName(absl::StrCat(
                from.node.name(), op == kToHostOp ? "/to_host" : "/to_device")),
            op));
    copy.SetDevice(device);
    copy.SetAttr("T", type);
    TFPLUG_RETURN_IF_ERROR(copy.AddInput(from));
    return copy;
  }

  // By node, port and device.
  std::map<std::tuple<uint32_t, int, std::string>, Node> to_device_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_COPY_ON_STREAM_H_
