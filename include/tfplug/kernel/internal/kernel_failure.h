// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_KERNEL_FAILURE_H_
#define TFPLUG_KERNEL_INTERNAL_KERNEL_FAILURE_H_

#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/kernel_context.h"

namespace tfplug::internal {

// The ops that KernelT is registered for, "AddV2" or "Add or AddV2": core does
// not tell a run which op it is for.
template <class KernelT>
__attribute__((visibility("hidden"))) std::string& RegisteredOps() {
  static auto* const ops = new std::string;
  return *ops;
}
using OpsFunction = std::string& (*)();

inline void AddOp(std::string& ops, const std::string& op) {
  if ((" " + ops + " ").find(" " + op + " ") != std::string::npos) return;
  ops += (ops.empty() ? "" : " or ") + op;
}

// "op 'Relu', node 'dense/Relu'"; what is not known is left out.
inline std::string WhereInGraph(absl::string_view op, absl::string_view node) {
  std::string where;
  if (!op.empty()) where += "op '" + std::string(op) + "'";
  if (!node.empty()) {
    if (!where.empty()) where += ", ";
    where += "node '" + std::string(node) + "'";
  }
  return where.empty() ? "kernel" : where;
}

// Cold: tells core that the run has failed, in the author's words with op and
// node before them; an OK `result` is that of a run which left an output unset.
// Core keeps the first failure that it is told of.
[[gnu::cold, gnu::noinline]] inline void FailRun(KernelContext& context,
                                                 absl::Status result,
                                                 OpsFunction ops) noexcept {
  TFPLUG_INTERNAL_TRY {
    if (result.ok()) result = context.MissingOutput();
    const std::string where =
        WhereInGraph(ops(), context.GetNodeName().value_or(""));
    SetStatus(context.status(), Annotate(result, where.c_str()));
  }
  TFPLUG_INTERNAL_CATCH_ALL {
    tensorflow.TF_SetStatus(context.status(), capi::TF_RESOURCE_EXHAUSTED,
                            "out of host memory");
  }
  tensorflow.TF_OpKernelContext_Failure(context.get(), context.status());
  tensorflow.TF_SetStatus(context.status(), capi::TF_OK, "");
}

// A run is over well with `result` OK and every output set.
inline bool IsGood(const KernelContext& context, const absl::Status& result) {
  return ABSL_PREDICT_TRUE(result.ok() && context.HasAllOutputs());
}

inline void EndRun(KernelContext& context, const absl::Status& result,
                   OpsFunction ops) noexcept {
  if (!IsGood(context, result)) FailRun(context, result, ops);
}

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_KERNEL_FAILURE_H_
