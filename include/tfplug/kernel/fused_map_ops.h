// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_FUSED_MAP_OPS_H_
#define TFPLUG_KERNEL_FUSED_MAP_OPS_H_

#include <cstdint>

#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

// The ops that the pass FuseElementwise (passes/fuse_elementwise.h) creates,
// whose kernels op_kernels/fused_map.h registers. The names carry the version of
// their attributes, so that plug-ins made with different versions of tfplug
// share a process.
namespace tfplug {

// A cluster of element-wise ops. The attribute `expression` is that of
// ir/serialize.h, whose inputs are broadcast to the shape of each output that
// depends on them. The attribute `checks` has three integers for each check: a
// ShapeCheck, and two values of the expression.
inline constexpr char kFusedMapOp[] = "TfplugFusedMapV2";

// A condition on the shapes of two values.
enum class ShapeCheck : int64_t {
  kEqual,
  kEqualOrScalar,  // the second one may be a scalar
  kBias,           // the second one is a vector of the last dimension
};
inline constexpr int64_t kNumShapeChecks = 3;

inline OpDef FusedMapOp() {
  return OpDef(kFusedMapOp)
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("expression: string")
      .Attr("checks: list(int) >= 0")
      .Input("inputs: Tin")
      .Output("outputs: Tout")
      .AllowExisting();
}

// The names of a cluster's attributes: the types of its inputs, its expression
// and its checks.
struct FusedMapAttrs {
  const char *types, *expression, *checks;
};
inline constexpr FusedMapAttrs kFusedMapAttrs = {"Tin", "expression", "checks"};

// A reduction, the op `reduce` with the other attributes, of the only output of
// a cluster, and a second cluster, whose first input is the reduction; Tafter
// has the types of the others. Either cluster may only copy its input.
inline constexpr char kFusedReduceOp[] = "TfplugFusedReduceV3";
inline constexpr FusedMapAttrs kAfterReduceAttrs = {
    "Tafter", "after_expression", "after_checks"};

inline OpDef FusedReduceOp() {
  return OpDef(kFusedReduceOp)
      .Attr("Tin: list(type) >= 1")
      .Attr("expression: string")
      .Attr("checks: list(int) >= 0")
      .Attr("reduce: string")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("keep_dims: bool = false")
      .Attr("Tafter: list(type) >= 0")
      .Attr("Tout: list(type) >= 1")
      .Attr("after_expression: string")
      .Attr("after_checks: list(int) >= 0")
      .Input("inputs: Tin")
      .Input("axes: Tidx")
      .Input("after: Tafter")
      .Output("outputs: Tout")
      .AllowExisting();
}

// A matrix product, MatMul or, if is_batch, BatchMatMulV2, and a cluster whose
// first input it is; Tin has the types of the others.
inline constexpr char kFusedMatMulOp[] = "TfplugFusedMatMulV2";

inline OpDef FusedMatMulOp() {
  return OpDef(kFusedMatMulOp)
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 1")
      .Attr("expression: string")
      .Attr("checks: list(int) >= 0")
      .Attr("is_batch: bool")
      .Attr("transpose_a: bool")
      .Attr("transpose_b: bool")
      .Input("a: T")
      .Input("b: T")
      .Input("inputs: Tin")
      .Output("outputs: Tout")
      .AllowExisting();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_FUSED_MAP_OPS_H_
