// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_COPY_ON_STREAM_H_
#define TFPLUG_PASSES_COPY_ON_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/default_kernels.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/kernel/kernel_def.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/kernel/stream_copy_ops.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/passes/keep_conditions_on_host.h"
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
// TensorFlow also computes most of int32 in host memory on every device, and
// copies the results to kernels that need them in device memory. Its stream for
// copies then waits for all kernels that are enqueued, and TensorFlow for the
// copy: these edges get the same op, also those to a Switch. In TensorFlow 2.17 they do not: see
// KeepConditionsOnHost. A Reshape, ExpandDims or Squeeze between two kernels that
// have int32 in device memory gets the label kOnDeviceLabel, if the library has
// such a kernel (op_kernels/reshape.h).
//
// For a control edge from the CPU, TensorFlow copies an output of the node. Such
// an edge begins at the node's copy instead, if it has one.
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
      if (!context.IsOnDevice(node.device())) continue;
      nodes.push_back(node);
      ports_[node.id()] = PortsOf(node, context);
    }
    for (const Node node : nodes) {
      if (ReshapesOnDevice(node, context)) {
        node.SetAttr("_kernel", kOnDeviceLabel);
        ports_[node.id()] = PortsOf(node, context);
      }
    }
    for (const Node node : nodes) {
      const runtime::NodePorts& ports = ports_[node.id()];
      TFPLUG_RETURN_IF_ERROR(CopyInputs(graph, node, ports.inputs));
      if (!context.HasKernel(kToHostOp)) continue;
      TFPLUG_RETURN_IF_ERROR(CopyOutputs(graph, node, ports.outputs));
    }
    for (const Node node : nodes) {
      TFPLUG_RETURN_IF_ERROR(MoveControls(node));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the inputs and outputs of a node of this library, of one of
  // TensorFlow's kernels that only pass a tensor on, or of one that computes in
  // host memory; none for others.
  static runtime::NodePorts PortsOf(Node node, const PassContext& context) {
    const runtime::NodePorts none;
    const auto op = context.functions().GetSignature(node.op());
    if (!op.ok()) return none;
    if (const auto* const kernel =
            runtime::FindOwnKernels(node, **op).selected) {
      return runtime::PortsOf(node, **op, kernel->def).value_or(none);
    }
    const KernelDef on_host =
        KernelDef(std::string(node.op())).AllInHostMemory();
    const auto label = node.GetAttr<std::string>("_kernel").value_or("");
    if (label == kOnHostLabel) {
      return runtime::PortsOf(node, **op, on_host).value_or(none);
    }
    const auto type =
        node.GetAttr<DataType>(node.op() == "Const" ? "dtype" : "T");
    if (!type.ok() || DataTypeSize(*type) == 0) return none;
    const runtime::Port on_device = {*type, /*on_host=*/false};
    if (label == kOnDeviceLabel) return {{on_device}, {on_device}};
    if (!label.empty()) return none;
    const bool passes = kernel::ContainsWord(
        " ExpandDims Identity PreventGradient Reshape Snapshot Squeeze"
        " StopGradient ",
        node.op());
    if (*type == DataType::kInt32 &&
        (passes || node.op() == "Const" || kernel::HasHostKernel(node.op()))) {
      return runtime::PortsOf(node, **op, on_host).value_or(none);
    }
    // TensorFlow makes a Switch of the condition for each branch.
    if (node.op() == "Switch" && *type != DataType::kInt32) {
      return {{on_device, {DataType::kBool, /*on_host=*/true}}, {}};
    }
    if (!passes) return none;
    return {{on_device}, {on_device}};
  }

  // Returns an input or output of a node on the device, null if it is unknown.
  const runtime::Port* FindPort(Node node, int index, bool is_input) const {
    const auto found = ports_.find(node.id());
    if (found == ports_.end()) return nullptr;
    const auto& ports = is_input ? found->second.inputs : found->second.outputs;
    const auto i = static_cast<size_t>(index);
    return i < ports.size() ? &ports[i] : nullptr;
  }
  bool IsOnHost(const Output& output) const {
    const auto* const port = FindPort(output.node, output.port, false);
    return port != nullptr && port->on_host;
  }

  // Returns whether a node that TensorFlow computes in host memory only changes
  // the shape of a tensor in device memory, where all its users need it.
  bool ReshapesOnDevice(Node node, const PassContext& context) const {
    if (!kernel::ContainsWord(" ExpandDims Reshape Squeeze ", node.op()) ||
        context.IsPreserved(node.name()) || !IsOnHost(node) ||
        node.num_uses(0) == 0) {
      return false;
    }
    const auto is_on_device = [&](Node other, int index, bool is_input) {
      const auto* const port = FindPort(other, index, is_input);
      return port != nullptr && !port->on_host &&
             other.device() == node.device();
    };
    const Output from = node.input(0);
    if (!from || !is_on_device(from.node, from.port, false)) return false;
    for (const Use& use : node.uses(0)) {
      if (!is_on_device(use.node, use.input, true)) return false;
    }
    return kernel_internal::AnyKernel(
        context.device_type(), [&](const KernelDef& def) {
          return def.op() == node.op() && def.label() == kOnDeviceLabel;
        });
  }

  absl::Status CopyInputs(Graph& graph, Node node,
                          const std::vector<runtime::Port>& ports) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output from = node.input(i);
      if (!from || (!passes_internal::IsOnCpu(from.node) &&
                    !(copies_from_host_ && IsOnHost(from) &&
                      from.node.device() == node.device()))) {
        continue;
      }
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

  absl::Status MoveControls(Node node) const {
    std::vector<std::pair<Node, Node>> moved;
    for (const Node control : node.controls()) {
      if (!passes_internal::IsOnCpu(control) ||
          passes_internal::Regions::IsControlFlow(control)) {
        continue;
      }
      for (auto it = to_device_.lower_bound({control.id(), 0, ""});
           it != to_device_.end() && std::get<0>(it->first) == control.id();
           ++it) {
        if (it->second.device() != node.device()) continue;
        moved.emplace_back(control, it->second);
        break;
      }
    }
    for (const auto& [control, copy] : moved) {
      TFPLUG_RETURN_IF_ERROR(node.RemoveControl(control));
      TFPLUG_RETURN_IF_ERROR(node.AddControl(copy));
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

  const bool copies_from_host_ =
      KeepConditionsOnHost::IsSafeIn(internal::CurrentRelease());
  std::map<uint32_t, runtime::NodePorts> ports_;  // of nodes on the device
  // By node, port and device.
  std::map<std::tuple<uint32_t, int, std::string>, Node> to_device_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_COPY_ON_STREAM_H_
