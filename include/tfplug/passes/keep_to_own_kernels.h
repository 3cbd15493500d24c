// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_KEEP_TO_OWN_KERNELS_H_
#define TFPLUG_PASSES_KEEP_TO_OWN_KERNELS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/passes/internal/cpu_nodes.h"
#include "tfplug/passes/internal/expansion.h"
#include "tfplug/passes/internal/fused_norms.h"
#include "tfplug/passes/internal/parallel_concats.h"
#include "tfplug/passes/internal/split_sums.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// An op that TensorFlow's rewriters may insert, and a formula that computes the
// same from other ops (passes/internal/expansion.h); "" if there is none.
struct InsertedOp {
  const char* op;
  const char* formula;
};

// According to the source of TensorFlow 2.12 to 2.22. Rows with the same op are
// consecutive, the best formula first. Not listed: ops for which TensorFlow has
// kernels on every device (Const, Identity, NoOp, Reshape, ExpandDims);
// rewriters that change only types, names and edges; rewrites only for devices
// named CPU or GPU; and Snapshot, which needs in-place ops.
inline constexpr InsertedOp kInsertedOps[] = {
    {"AddN", "AddV2(...)"},
    {"AddN", "Add(...)"},
    {"AddV2", "Add(x, y)"},
    {"AddV2", "Sub(x, Neg(y))"},
    {"Add", "AddV2(x, y)"},
    {"Add", "Sub(x, Neg(y))"},
    {"Sub", "AddV2(x, Neg(y))"},
    {"Sub", "Add(x, Neg(y))"},
    {"Mul", "AddV2(x, x, ...)"},
    {"Mul", "AddN(x, x, ...)"},
    {"Mul", "Add(x, x, ...)"},
    {"Mul", "RealDiv(x, Reciprocal(y))"},
    {"Mul", "Div(x, Reciprocal(y))"},
    {"Neg", "Sub(0, x)"},
    {"Square", "Mul(x, x)"},
    {"Square", "Pow(x, 2)"},
    {"Sqrt", "Pow(x, 0.5)"},
    {"Rsqrt", "Reciprocal(Sqrt(x))"},
    {"Rsqrt", "Pow(x, -0.5)"},
    {"Reciprocal", "RealDiv(1, x)"},
    {"Reciprocal", "Div(1, x)"},
    {"Reciprocal", "Pow(x, -1)"},
    {"SquaredDifference", "Square(Sub(x, y))"},
    {"Log1p", "Log(AddV2(x, 1))"},
    {"Expm1", "Sub(Exp(x), 1)"},
    {"LogSoftmax", "Log(Softmax(x))"},
    {"MulNoNan", "Xdivy(y, Reciprocal(x))"},
    {"ConjugateTranspose", "Conj(Transpose*(x, y))"},
    {"Min", "Neg(Max*(Neg(x), y))"},
    {"Max", "Neg(Min*(Neg(x), y))"},
    {"BroadcastTo", "Mul(x, ones)"},
    {"BroadcastTo", "AddV2(x, zeros)"},
    {"BroadcastTo", "Sub(x, zeros)"},
    {"BroadcastTo", "RealDiv(x, ones)"},
    {"Tile", ""},
};

// Replaces ops that TensorFlow's rewriters insert and for which this library
// has no kernel. Rewriters do not check whether a device has kernels: two AddV2
// become an AddN, and if the device has no kernel for AddN, the function would
// fail when it runs. This pass, which runs after them, turns the AddN into
// AddV2 again. If the library has no kernels for any formula either, the op
// moves to the CPU, which ReportFallback shows. A sum that TensorFlow has split
// into updates by reference becomes an AddN again (internal/split_sums.h), and
// a fused batch normalization its parts (internal/fused_norms.h).
//
// A setting of TensorFlow could turn off the whole rewriter instead, but
// TensorFlow crashes if two plug-ins in a process have different settings.
class KeepToOwnKernels : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    if (!context.HasAnyKernel()) return absl::OkStatus();
    for (const auto restore : {&passes_internal::SplitSums::Rejoin,
                               &passes_internal::FusedNorms::Split,
                               &passes_internal::ParallelConcats::Replace}) {
      if (auto s = restore(graph, context); !s.ok()) return s;
    }
    // The ops of a formula may have formulas of their own.
    for (int depth = kMaxDepth; depth >= 0; --depth) {
      const auto is_changed = RunOnce(graph, context);
      if (!is_changed.ok()) return is_changed.status();
      if (!*is_changed) break;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kMaxDepth = 3;

  static absl::StatusOr<bool> RunOnce(Graph& graph,
                                      const PassContext& context) {
    bool is_changed = false;
    absl::string_view last;
    for (const InsertedOp& row : kInsertedOps) {
      if (row.op == last) continue;
      last = row.op;
      if (!graph.has_op(row.op)) continue;
      std::vector<Node> nodes;
      for (const Node node : graph.nodes(row.op)) nodes.push_back(node);
      for (const Node node : nodes) {
        if (!context.IsOnDevice(node.device())) continue;
        const auto type = node.GetAttr<DataType>("T");
        if (!type.ok() || HasKernel(row.op, *type, context)) continue;
        if (auto s = Replace(graph, node, *type, context); !s.ok()) return s;
        is_changed = true;
      }
    }
    return is_changed;
  }

  static bool HasKernel(absl::string_view op, DataType type,
                        const PassContext& context) {
    // Rewriters do not touch sums of tensor lists. TensorFlow has kernels for
    // int32 on every device, which use host memory.
    if (type == DataType::kVariant) return true;
    if (type == DataType::kInt32 && op != "BroadcastTo" && op != "Tile") {
      return true;
    }
    return context.HasKernel(op, {{"T", type}});
  }

  // Returns whether the device can compute the op with at most `depth`
  // formulas, one in another.
  static bool CanCompute(absl::string_view op, DataType type, int depth,
                         const PassContext& context) {
    if (HasKernel(op, type, context)) return true;
    if (depth == 0) return false;
    for (const InsertedOp& row : kInsertedOps) {
      if (row.op == op &&
          !passes_internal::Expansion::IsRepeated(row.formula) &&
          CanComputeAll(row.formula, type, depth - 1, context)) {
        return true;
      }
    }
    return false;
  }
  static bool CanComputeAll(absl::string_view formula, DataType type, int depth,
                            const PassContext& context) {
    const auto ops = passes_internal::Expansion::OpsOf(formula);
    for (const absl::string_view op : ops) {
      if (!CanCompute(op, type, depth, context)) return false;
    }
    return !ops.empty();
  }

  static absl::Status Replace(Graph& graph, Node node, DataType type,
                              const PassContext& context) {
    passes_internal::Expansion expansion(graph, context, node, type);
    // The flattest formula first, so that Add and AddV2 do not alternate.
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      for (const InsertedOp& row : kInsertedOps) {
        if (row.op == node.op() && expansion.CanApply(row.formula) &&
            CanComputeAll(row.formula, type, depth, context)) {
          return expansion.Apply(row.formula);
        }
      }
    }
    passes_internal::MoveToCpu(node);
    return absl::OkStatus();
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_KEEP_TO_OWN_KERNELS_H_
