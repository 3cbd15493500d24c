// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_REPORT_FALLBACK_H_
#define TFPLUG_PASSES_REPORT_FALLBACK_H_

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/default_kernels.h"
#include "tfplug/kernel/internal/kernel_set.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Logs the nodes that TensorFlow has placed on the CPU, once for each op and
// combination of types in a process, on stderr. By default, TensorFlow silently
// runs an op without a kernel on the CPU (soft placement). The pass runs last
// for each device type of a plug-in if the environment variable
// TFPLUG_LOG_FALLBACK is set and does not begin with 0. It changes nothing. See
// docs/guide/coverage.md.
//
// Covers only graphs with a node on the device, which input pipelines do not
// have; eager ops are not reported. Ops that TensorFlow could run on the device
// without a kernel of this library, such as Reshape, are not reported either:
// their inputs are on the CPU because of another op.
class ReportFallback : public GraphPass {
 public:
  static bool IsEnabled() {
    return internal::IsTurnedOn("TFPLUG_LOG_FALLBACK");
  }

  absl::Status Run(Graph& graph, const PassContext& context) override {
    for (const std::string& line : NewLines(graph, context)) {
      std::fprintf(stderr, "tfplug: %s\n", line.c_str());
    }
    return absl::OkStatus();
  }

  // Returns a line for each op and combination of types that no earlier call
  // has returned. Thread-safe.
  static std::vector<std::string> NewLines(Graph& graph,
                                           const PassContext& context) {
    static auto* const reported = new std::set<std::string>();
    static auto* const mutex = new std::mutex();
    std::vector<std::string> lines;
    if (!HasNodeOnDevice(graph, context)) return lines;
    for (const Node node : graph.nodes()) {
      if (!absl::StrContains(node.device(), "device:CPU:") ||
          IsBookkeeping(node.op())) {
        continue;
      }
      const std::vector<kernel_internal::TypeAttr> types = TypesOf(node);
      if (HasDefaultKernel(node, types, context)) continue;
      const std::string key =
          context.device_type() + ": " + std::string(node.op()) + ToText(types);
      {
        const std::lock_guard<std::mutex> lock(*mutex);
        if (!reported->insert(key).second) continue;
      }
      lines.push_back(std::string(node.op()) + ToText(types) +
                      " runs on the CPU: " + Reason(node, types, context) +
                      " (node '" + std::string(node.name()) + "')");
    }
    return lines;
  }

 private:
  static bool HasNodeOnDevice(Graph& graph, const PassContext& context) {
    for (const Node node : graph.nodes()) {
      if (context.IsOnDevice(node.device())) return true;
    }
    return false;
  }

  // Returns whether TensorFlow's own kernel could have run on the device.
  static bool HasDefaultKernel(
      const Node& node, const std::vector<kernel_internal::TypeAttr>& types,
      const PassContext& context) {
    if (context.HasKernel(node.op(), types)) return false;
    if (kernel::RunsOnEveryDevice(node.op())) return true;
    return kernel::HasHostKernel(node.op()) &&
           std::all_of(types.begin(), types.end(), [](const auto& type) {
             return type.second == DataType::kInt32;
           });
  }

  // Returns whether the op only forwards tensors, or reads input data, which
  // belongs on the host.
  static bool IsBookkeeping(absl::string_view op) {
    for (const char* prefix :
         {"_", "Const", "Identity", "NoOp", "Placeholder", "Iterator",
          "MakeIterator", "Optional", "VarHandleOp", "Switch", "Merge", "Enter",
          "Exit", "NextIteration", "LoopCond", "ControlTrigger"}) {
      if (absl::StartsWith(op, prefix)) return true;
    }
    return absl::StrContains(op, "Dataset") ||
           absl::StrContains(op, "PartitionedCall");
  }

  static std::vector<kernel_internal::TypeAttr> TypesOf(const Node& node) {
    std::vector<kernel_internal::TypeAttr> types;
    for (const auto& [name, value] : node.GetAttrs()) {
      if (absl::StartsWith(name, "_")) continue;
      const auto type = node.GetAttr<DataType>(name);
      if (type.ok()) types.emplace_back(name, *type);
    }
    std::sort(types.begin(), types.end());
    return types;
  }

  // Returns " (T=float, Tidx=int32)", or "" if there are no types.
  static std::string ToText(
      const std::vector<kernel_internal::TypeAttr>& types) {
    std::string text;
    for (const auto& [name, type] : types) {
      text += (text.empty() ? " (" : ", ") + std::string(name) + "=" +
              std::string(DataTypeName(type));
    }
    return text.empty() ? text : text + ")";
  }

  static std::string Reason(const Node& node,
                            const std::vector<kernel_internal::TypeAttr>& types,
                            const PassContext& context) {
    const std::string& device = context.device_type();
    if (!context.HasKernel(node.op())) {
      return "this library has no kernel for it on " + device;
    }
    if (!context.HasKernel(node.op(), types)) {
      return "this library's kernels for it on " + device +
             " do not support these types";
    }
    return "the model, a colocation constraint or a host memory argument "
           "requires it, although this library has a kernel on " +
           device;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_REPORT_FALLBACK_H_
