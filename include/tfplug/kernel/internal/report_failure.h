// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_REPORT_FAILURE_H_
#define TFPLUG_KERNEL_INTERNAL_REPORT_FAILURE_H_

#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/kernel_context.h"

#pragma GCC visibility push(hidden)

// Reports failures of kernels to TensorFlow, with the author's message prefixed
// by op and node.
namespace tfplug::kernel_internal {

// Returns the ops that KernelT is registered for, as text: "AddV2" or "Add or
// AddV2". Needed because the C API does not pass the op to a run.
template <class KernelT>
std::string& RegisteredOps() {
  static auto* const ops = new std::string;
  return *ops;
}
using OpsFunction = std::string& (*)();

inline void AddOp(std::string& ops, const std::string& op) {
  if ((" " + ops + " ").find(" " + op + " ") != std::string::npos) return;
  ops += (ops.empty() ? "" : " or ") + op;
}

// Returns "op 'Relu', node 'dense/Relu'". An empty part is omitted.
inline std::string DescribeNode(absl::string_view op, absl::string_view node) {
  std::string text;
  if (!op.empty()) text += "op '" + std::string(op) + "'";
  if (!node.empty()) {
    if (!text.empty()) text += ", ";
    text += "node '" + std::string(node) + "'";
  }
  return text.empty() ? "kernel" : text;
}

// Fails the run with `result`, or, if that is OK, with an error for an output
// that is not set. TensorFlow keeps the first failure of a run.
[[gnu::cold, gnu::noinline]] inline void FailRun(KernelContext& context,
                                                 absl::Status result,
                                                 OpsFunction ops) noexcept {
  const RunState& state = internal::Access::state(context);
  TFPLUG_INTERNAL_TRY {
    if (result.ok()) result = state.MissingOutput();
    const std::string node =
        DescribeNode(ops(), context.GetNodeName().value_or(""));
    SetStatus(state.status(), internal::Annotate(result, node.c_str()));
  }
  TFPLUG_INTERNAL_CATCH_ALL {
    internal::tensorflow.TF_SetStatus(
        state.status(), capi::TF_RESOURCE_EXHAUSTED, "out of host memory");
  }
  internal::tensorflow.TF_OpKernelContext_Failure(state.context(),
                                                  state.status());
  internal::tensorflow.TF_SetStatus(state.status(), capi::TF_OK, "");
}

// Returns whether `result` is OK and every output is set.
inline bool HasSucceeded(const KernelContext& context,
                         const absl::Status& result) {
  return ABSL_PREDICT_TRUE(result.ok() &&
                           internal::Access::state(context).HasAllOutputs());
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_REPORT_FAILURE_H_
