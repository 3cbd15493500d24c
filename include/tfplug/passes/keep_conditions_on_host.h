// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_KEEP_CONDITIONS_ON_HOST_H_
#define TFPLUG_PASSES_KEEP_CONDITIONS_ON_HOST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/kernel/internal/kernel_set.h"
#include "tfplug/kernel/kernel_def.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/passes/internal/cpu_nodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Computes the conditions of loops on the host. TensorFlow compares int32, such
// as the counters of a loop, in host memory on every device, but the
// LogicalAnd of two comparisons is an op of the device: each iteration of
// Keras' RNNs copies the comparisons to the device and waits for the result,
// which the loop needs on the host. The pass gives a LogicalAnd, LogicalOr or
// LogicalNot whose inputs are all in host memory, at least one of them of this
// device, the label kOnHostLabel, for which backends register a kernel
// (op_kernels/math.h). The others may come from the CPU, such as whether an
// Optional has a value. Without such a kernel in this library it does nothing.
//
// It does not run in TensorFlow 2.17, whose loops with lists fail with "stream
// cannot wait for itself" if a copy comes at the wrong time: see
// docs/measured/tensorflow_behavior.md. With the pass it nearly always does.
class KeepConditionsOnHost : public GraphPass {
 public:
  static bool IsSafeIn(internal::Release release) {
    return release.major != 2 || release.minor != 17;
  }

  absl::Status Run(Graph& graph, const PassContext& context) override {
    for (bool changes = true; changes;) {  // a condition of conditions
      changes = false;
      for (const char* op : {"LogicalAnd", "LogicalOr", "LogicalNot"}) {
        if (!graph.has_op(op) || !HasKernelOnHost(op, context)) continue;
        for (Node node : graph.nodes(op)) {
          if (IsOnHost(node) || node.HasAttr("_kernel") ||
              !context.IsOnDevice(node.device()) || !ReadsHost(node)) {
            continue;
          }
          node.SetAttr("_kernel", kOnHostLabel);
          changes = true;
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool HasKernelOnHost(absl::string_view op,
                              const PassContext& context) {
    return kernel_internal::AnyKernel(
        context.device_type(), [&](const KernelDef& d) {
          return d.op() == op && d.label() == kOnHostLabel;
        });
  }
  static bool ReadsHost(Node node) {
    bool reads_own = false;
    for (const Input& input : node.inputs()) {
      const Node from = input.from.node;
      if (from.device() == node.device() && IsOnHost(from)) {
        reads_own = true;
      } else if (!passes_internal::IsOnCpu(from)) {
        return false;
      }
    }
    return reads_own;
  }
  // Returns whether the outputs of a node are in host memory.
  static bool IsOnHost(Node node) {
    const auto label = node.GetAttr<std::string>("_kernel");
    if (label.ok() && *label == kOnHostLabel) return true;
    for (const char* op : {"Equal", "Greater", "GreaterEqual", "Less",
                           "LessEqual", "NotEqual"}) {
      if (node.op() != op) continue;
      const auto type = node.GetAttr<DataType>("T");
      return type.ok() && *type == DataType::kInt32;
    }
    return false;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_KEEP_CONDITIONS_ON_HOST_H_
