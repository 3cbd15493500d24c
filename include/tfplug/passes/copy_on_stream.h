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
#include "tfplug/kernel/stream_copy_ops.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/regions.h"
#include "tfplug/passes/internal/tensor_places.h"
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
// copy: these edges get the same op, also those to a Switch, except in TensorFlow
// 2.17 (see KeepConditionsOnHost). A node for which this library has a kernel with
// the label kOnDeviceLabel gets that label if it reads device memory, and its
// users do: reshaped indices (op_kernels/reshape.h), and seeds that Keras computes
// from variables (op_kernels/random.h).
//
// A constant of another type than int32, which TensorFlow has in device memory,
// becomes a HostConst for kernels that need it in host memory, such as the fill
// value of a rotated image.
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
    const bool copies_to_host = context.HasKernel(kToHostOp);
    passes_internal::TensorPlaces places(graph, context);
    for (const Node node : places.nodes()) places.MoveToDevice(node);
    for (const Node node : places.nodes()) {
      TFPLUG_RETURN_IF_ERROR(CopyInputs(graph, context, node, places));
      if (!copies_to_host) continue;
      TFPLUG_RETURN_IF_ERROR(CopyOutputs(graph, node, places.of(node).outputs));
    }
    for (const Node node : places.nodes()) {
      TFPLUG_RETURN_IF_ERROR(MoveControls(node));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CopyInputs(Graph& graph, const PassContext& context, Node node,
                          const passes_internal::TensorPlaces& places) {
    const std::vector<runtime::Port>& ports = places.of(node).inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const auto index = static_cast<size_t>(i);
      const Output from = node.input(i);
      if (index >= ports.size()) continue;
      if (ports[index].on_host) {
        if (!IsConstantOnDevice(from, node, context)) continue;
        TFPLUG_ASSIGN_OR_RETURN(const Node copy,
                                ConstantOnHost(graph, from.node));
        TFPLUG_RETURN_IF_ERROR(node.SetInput(i, copy));
        continue;
      }
      if (!from ||
          (!passes_internal::IsOnCpu(from.node) &&
           !(copies_from_host_ && places.IsOnHost(from, node.device())))) {
        continue;
      }
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

  // TensorFlow has constants of other types than int32 in device memory.
  static bool IsConstantOnDevice(const Output& from, Node user,
                                 const PassContext& context) {
    return from && from.node.op() == "Const" &&
           from.node.device() == user.device() &&
           from.node.GetAttr<DataType>("dtype").value_or(DataType::kInt32) !=
               DataType::kInt32 &&
           !context.IsPreserved(from.node.name());
  }
  absl::StatusOr<Node> ConstantOnHost(Graph& graph, Node constant) {
    Node& copy = on_host_[constant.id()];
    if (copy) return copy;
    TFPLUG_ASSIGN_OR_RETURN(
        copy, graph.AddNode(
                  graph.UniqueName(absl::StrCat(constant.name(), "/on_host")),
                  "HostConst"));
    copy.SetDevice(constant.device());
    for (const auto& [name, value] : constant.GetAttrs()) {
      copy.SetRawAttr(name, value);
    }
    for (const Node control : constant.controls()) {
      TFPLUG_RETURN_IF_ERROR(copy.AddControl(control));
    }
    return copy;
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
  std::map<uint32_t, Node> on_host_;  // constants
  // By node, port and device.
  std::map<std::tuple<uint32_t, int, std::string>, Node> to_device_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_COPY_ON_STREAM_H_
