// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_TENSOR_PLACES_H_
#define TFPLUG_PASSES_INTERNAL_TENSOR_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/kernel/default_kernels.h"
#include "tfplug/kernel/internal/kernel_registry.h"
#include "tfplug/kernel/kernel_def.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/runtime/node_ports.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Knows which tensors of the nodes on the device are in host memory: those of
// this library's kernels, of TensorFlow's that only pass a tensor on, and of
// those that compute int32 in host memory.
class TensorPlaces {
 public:
  TensorPlaces(Graph& graph, const PassContext& context) : context_(context) {
    for (const auto& kernel : kernel_internal::RegisteredKernels()) {
      if (kernel.def.label() == kOnDeviceLabel) on_device_.push_back(&kernel);
    }
    for (const Node node : graph.nodes()) {
      if (!context.IsOnDevice(node.device())) continue;
      nodes_.push_back(node);
      ports_[node.id()] = PortsOf(node);
    }
  }

  // Returns the nodes that are on the device.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Returns the inputs and outputs of one of them; none if they are unknown.
  const runtime::NodePorts& of(Node node) const { return ports_.at(node.id()); }

  // Returns whether this is an output of a node on `device`, in host memory.
  bool IsOnHost(const Output& output, absl::string_view device) const {
    const runtime::Port* const port =
        Find(output.node, output.port, device, /*is_input=*/false);
    return port != nullptr && port->on_host;
  }

  // Lets a node have tensors in device memory if this library has a kernel for
  // that, if those that it reads are there, and if all its users need the others
  // there.
  void MoveToDevice(Node node) {
    const auto op = context_.functions().GetSignature(node.op());
    if (!op.ok() || node.HasAttr("_kernel") ||
        context_.IsPreserved(node.name())) {
      return;
    }
    const KernelDef* const kernel = FindOnDevice(node, **op);
    if (kernel == nullptr) return;
    const auto moved = runtime::PortsOf(node, **op, *kernel);
    const runtime::NodePorts& old = of(node);
    if (!moved.ok() || old.inputs.size() != moved->inputs.size() ||
        node.num_inputs() != static_cast<int>(old.inputs.size())) {
      return;
    }
    for (size_t i = 0; i < old.inputs.size(); ++i) {
      if (moved->inputs[i] == old.inputs[i]) continue;
      const Output from = node.input(static_cast<int>(i));
      if (!from || !IsOnDevice(Find(from.node, from.port, node.device(),
                                    /*is_input=*/false))) {
        return;
      }
    }
    for (size_t i = 0; i < old.outputs.size(); ++i) {
      if (moved->outputs[i] == old.outputs[i]) continue;
      for (const Use& use : node.uses(static_cast<int>(i))) {
        if (!IsOnDevice(Find(use.node, use.input, node.device(),
                             /*is_input=*/true))) {
          return;
        }
      }
    }
    node.SetAttr("_kernel", kOnDeviceLabel);
    ports_[node.id()] = *moved;
  }

 private:
  static bool IsOnDevice(const runtime::Port* port) {
    return port != nullptr && !port->on_host;
  }

  // Returns an input or output of a node on `device`, or null.
  const runtime::Port* Find(Node node, int index, absl::string_view device,
                            bool is_input) const {
    const auto found = ports_.find(node.id());
    if (found == ports_.end() || node.device() != device) return nullptr;
    const auto& ports = is_input ? found->second.inputs : found->second.outputs;
    const auto i = static_cast<size_t>(index);
    return i < ports.size() ? &ports[i] : nullptr;
  }

  // Returns this library's kernel with the label kOnDeviceLabel, or null.
  const KernelDef* FindOnDevice(Node node, const OpSignature& op) const {
    for (const auto* const kernel : on_device_) {
      if (runtime::Matches(kernel->def, node, op, kOnDeviceLabel)) {
        return &kernel->def;
      }
    }
    return nullptr;
  }

  runtime::NodePorts PortsOf(Node node) const {
    const auto op = context_.functions().GetSignature(node.op());
    if (!op.ok()) return {};
    const auto ports_of = [&](const KernelDef& kernel) {
      return runtime::PortsOf(node, **op, kernel)
          .value_or(runtime::NodePorts());
    };
    if (const auto* const own = runtime::FindOwnKernels(node, **op).selected) {
      return ports_of(own->def);
    }
    const KernelDef on_host =
        KernelDef(std::string(node.op())).AllInHostMemory();
    if (node.HasAttr("_kernel")) {
      const auto label = node.GetAttr<std::string>("_kernel").value_or("");
      if (label == kOnHostLabel) return ports_of(on_host);
      const KernelDef* const kernel = FindOnDevice(node, **op);
      return label == kOnDeviceLabel && kernel ? ports_of(*kernel)
                                               : runtime::NodePorts();
    }
    const bool reads = node.op() == "ReadVariableOp";
    const auto type =
        node.GetAttr<DataType>(reads || node.op() == "Const" ? "dtype" : "T");
    if (!type.ok() || DataTypeSize(*type) == 0) return {};
    const bool passes = kernel::ContainsWord(
        " ExpandDims Identity PreventGradient Reshape Snapshot Squeeze"
        " StopGradient ",
        node.op());
    if (*type == DataType::kInt32) {
      const bool is_on_host =
          passes || node.op() == "Const" || kernel::HasHostKernel(node.op());
      return is_on_host ? ports_of(on_host) : runtime::NodePorts();
    }
    const runtime::Port on_device = {*type, /*on_host=*/false};
    // TensorFlow makes a Switch of the condition for each branch.
    if (node.op() == "Switch") {
      return {{on_device, {DataType::kBool, /*on_host=*/true}}, {}};
    }
    if (reads) return {{}, {on_device}};
    if (!passes) return {};
    return {{on_device}, {on_device}};
  }

  const PassContext& context_;
  std::vector<const kernel_internal::KernelRegistration*> on_device_;
  std::vector<Node> nodes_;
  std::map<uint32_t, runtime::NodePorts> ports_;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_TENSOR_PLACES_H_
