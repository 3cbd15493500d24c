// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_SAFE_REWRITING_H_
#define TFPLUG_PASSES_SAFE_REWRITING_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/kernel/internal/kernel_set.h"

#pragma GCC visibility push(hidden)

// TensorFlow's rewriters do not check whether a device has kernels for the ops
// that they insert: two AddV2 nodes become an AddN, and if the device has no
// kernel for AddN, the function fails when it runs. A plug-in can only turn off
// a whole rewriter. This header compares a table of rewrites with the kernels
// that the library registers, and turns off the unsafe rewriters.
namespace tfplug {

// One rewrite, according to the source of TensorFlow 2.12 to 2.21: in a graph
// with the op `from` (and `with`, if set) of type T, the rewriter may insert
// the op `to` of type T on the same device.
struct RewriteRule {
  Toggle OptimizerSettings::*rewriter;
  const char* rewriter_name;
  const char* from;
  const char* with;
  const char* to;
};

// Not listed: ops for which TensorFlow has kernels on every device (Const,
// Identity, NoOp, Reshape, ExpandDims); rewriters that change only types, names
// and edges; rewrites for devices named CPU or GPU only; and Snapshot, which
// needs in-place ops.
inline constexpr RewriteRule kRewriteRules[] = {
#define TFPLUG_INTERNAL_RULE(rewriter, from, with, to) \
  { &OptimizerSettings::rewriter, #rewriter, from, with, to }
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "AddV2", "", "AddN"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Add", "", "AddN"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Add", "", "AddV2"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "AddN", "", "Mul"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Mul", "", "Square"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Mul", "", "Tile"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Pack", "", "Tile"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Pow", "", "Square"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Pow", "", "Sqrt"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Pow", "", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Pow", "", "Reciprocal"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "RealDiv", "Sqrt", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "RealDiv", "Sqrt", "Mul"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Div", "Sqrt", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Div", "Sqrt", "Mul"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Xdivy", "Sqrt", "MulNoNan"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Log", "AddV2", "Log1p"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Log", "Add", "Log1p"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Log", "Softmax",
                         "LogSoftmax"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Sub", "Exp", "Expm1"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Square", "Sub",
                         "SquaredDifference"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Neg", "AddV2", "Sub"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Neg", "Add", "Sub"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Neg", "Sub", "AddV2"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Conj", "Transpose",
                         "ConjugateTranspose"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Max", "Neg", "Min"),
    TFPLUG_INTERNAL_RULE(arithmetic_optimization, "Min", "Neg", "Max"),
    TFPLUG_INTERNAL_RULE(constant_folding, "Sub", "", "Neg"),
    TFPLUG_INTERNAL_RULE(constant_folding, "RealDiv", "", "Reciprocal"),
    TFPLUG_INTERNAL_RULE(constant_folding, "Div", "", "Reciprocal"),
    TFPLUG_INTERNAL_RULE(constant_folding, "Mul", "", "BroadcastTo"),
    TFPLUG_INTERNAL_RULE(constant_folding, "AddV2", "", "BroadcastTo"),
    TFPLUG_INTERNAL_RULE(constant_folding, "Add", "", "BroadcastTo"),
    TFPLUG_INTERNAL_RULE(constant_folding, "Sub", "", "BroadcastTo"),
    TFPLUG_INTERNAL_RULE(constant_folding, "RealDiv", "", "BroadcastTo"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNorm", "", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNorm", "", "Add"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNorm", "", "Mul"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNorm", "", "Sub"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV2", "", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV2", "", "Add"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV2", "", "Mul"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV2", "", "Sub"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV3", "", "Rsqrt"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV3", "", "Add"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV3", "", "Mul"),
    TFPLUG_INTERNAL_RULE(remapping, "FusedBatchNormV3", "", "Sub"),
    // Applied only if the device's memory may be exhausted.
    TFPLUG_INTERNAL_RULE(memory_optimization, "AddN", "", "Assign"),
    TFPLUG_INTERNAL_RULE(memory_optimization, "AddN", "", "AssignAdd"),
#undef TFPLUG_INTERNAL_RULE
};

// A rewrite that may insert an op of a type for which there is no kernel.
struct UnsafeRewrite {
  const RewriteRule* rule;
  DataType type;

  // Returns "arithmetic_optimization may turn AddV2 into AddN with T=int64,
  // ..."
  std::string ToString() const {
    std::string text =
        std::string(rule->rewriter_name) + " may turn " + rule->from;
    if (*rule->with != '\0') text += std::string(" with ") + rule->with;
    return text + " into " + rule->to + " with T=" + DataTypeName(type) +
           ", for which this library has no kernel";
  }
};

// Finds the rewrites and types for which the library has kernels for the
// original ops but not for the inserted op.
inline std::vector<UnsafeRewrite> FindUnsafeRewrites(
    const internal::KernelSet& kernels) {
  std::vector<UnsafeRewrite> unsafe;
  for (const RewriteRule& rule : kRewriteRules) {
    for (DataType type : kernels.GetTypes(rule.from, "T")) {
      // Rewriters do not touch sums of tensor lists.
      if (type == DataType::kVariant) continue;
      const internal::TypeAttr t("T", type);
      const bool is_possible =
          *rule.with == '\0' || kernels.Has(rule.with, {t});
      if (is_possible && !kernels.Has(rule.to, {t})) {
        unsafe.push_back({&rule, type});
      }
    }
  }
  return unsafe;
}

// Returns `settings` with kOff in place of kDefault for every unsafe rewriter.
inline OptimizerSettings TurnOffUnsafeRewriters(
    OptimizerSettings settings, const internal::KernelSet& kernels) {
  const OptimizerSettings given = settings;
  for (const UnsafeRewrite& rewrite : FindUnsafeRewrites(kernels)) {
    if (given.*rewrite.rule->rewriter == Toggle::kDefault) {
      settings.*rewrite.rule->rewriter = Toggle::kOff;
    }
  }
  return settings;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_SAFE_REWRITING_H_
