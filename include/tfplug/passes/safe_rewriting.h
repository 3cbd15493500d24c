// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_SAFE_REWRITING_H_
#define TFPLUG_PASSES_SAFE_REWRITING_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tfplug/graph/optimizer_settings.h"
#include "tfplug/kernel/internal/kernel_set.h"

// TensorFlow's rewriters do not ask whether a device has a kernel for what they
// put into a graph: two AddV2 become one AddN, and where the device has no
// kernel for that, the function fails when it runs. A plug-in can only turn a
// rewriter off as a whole. This finds out, from the kernels that the library
// registers, which ones must be.
namespace tfplug {

// One thing that a rewriter does, as its source has it in 2.12 to 2.21: where a
// graph has `from` (and `with`, if that is named) with type T, there may
// afterwards be `to` with type T, on the same device.
struct RewriteRule {
  Toggle OptimizerSettings::*rewriter;
  const char* rewriter_name;
  const char* from;
  const char* with;
  const char* to;
};

// Left out: ops that TensorFlow itself has kernels for on every device (Const,
// Identity, NoOp, Reshape, ExpandDims), rewriters that change types, names and
// edges only, what is done for devices called CPU or GPU alone, and Snapshot,
// which needs ops that work in place.
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
    // Where the device's memory may run short.
    TFPLUG_INTERNAL_RULE(memory_optimization, "AddN", "", "Assign"),
    TFPLUG_INTERNAL_RULE(memory_optimization, "AddN", "", "AssignAdd"),
#undef TFPLUG_INTERNAL_RULE
};

// A rule that `kernels` does not fulfil.
struct BrokenRule {
  const RewriteRule* rule;
  DataType type;

  // "arithmetic_optimization may turn AddV2 into AddN with T=int64, ..."
  std::string ToString() const {
    std::string text =
        std::string(rule->rewriter_name) + " may turn " + rule->from;
    if (*rule->with != '\0') text += std::string(" with ") + rule->with;
    return text + " into " + rule->to + " with T=" + DataTypeName(type) +
           ", for which this library has no kernel";
  }
};

// Each rule with a type that the library has the kernels for before the
// rewriting, and not after it.
inline std::vector<BrokenRule> FindBrokenRules(
    const internal::KernelSet& kernels) {
  std::vector<BrokenRule> broken;
  for (const RewriteRule& rule : kRewriteRules) {
    for (DataType type : kernels.GetTypes(rule.from, "T")) {
      // Rewriters count and compute: sums of lists stay what they are.
      if (type == DataType::kVariant) continue;
      const internal::TypeAttr t("T", type);
      const bool is_possible =
          *rule.with == '\0' || kernels.Has(rule.with, {t});
      if (is_possible && !kernels.Has(rule.to, {t})) {
        broken.push_back({&rule, type});
      }
    }
  }
  return broken;
}

// `settings` with every rewriter off that the author has left at kDefault and
// that breaks a rule.
inline OptimizerSettings TurnOffUnsafeRewriters(
    OptimizerSettings settings, const internal::KernelSet& kernels) {
  const OptimizerSettings given = settings;
  for (const BrokenRule& broken : FindBrokenRules(kernels)) {
    if (given.*broken.rule->rewriter == Toggle::kDefault) {
      settings.*broken.rule->rewriter = Toggle::kOff;
    }
  }
  return settings;
}

}  // namespace tfplug

#endif  // TFPLUG_PASSES_SAFE_REWRITING_H_
