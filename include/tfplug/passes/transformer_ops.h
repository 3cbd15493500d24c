// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_TRANSFORMER_OPS_H_
#define TFPLUG_PASSES_TRANSFORMER_OPS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/op_def.h"
#include "tfplug/kernel/shape_inference.h"

#pragma GCC visibility push(hidden)

// The ops that the rules for transformers create: fuse_activations.h,
// fuse_layer_norm.h, fuse_attention.h. A plug-in registers the ops for which it
// has kernels, in any of its files:
//
//   TFPLUG_REGISTER_OP(tfplug::LayerNormOp());
//   TFPLUG_REGISTER_KERNEL(
//       LayerNorm,
//       tfplug::KernelDef("TfplugLayerNorm").TypeConstraint<float>("T"));
//
// Several plug-ins in a process may register the same op. Only kernels of the
// plug-in whose pass creates a node run it, because the node is on its device
// (on another host's, the plug-in there does). An op whose definition changes gets a new name.
namespace tfplug {

namespace passes_internal {

// Sets output 0 to the shape to which inputs 0 and 1 broadcast.
inline absl::Status InferBroadcast(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle a, s.GetInput(0));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle b, s.GetInput(1));
  if (!s.has_rank(a) || !s.has_rank(b)) return s.SetUnknownShape();
  const int64_t rank = std::max(s.rank(a), s.rank(b));
  std::vector<int64_t> dims;
  for (int64_t i = rank; i >= 1; --i) {
    int64_t dim = 1;
    for (const ShapeHandle* shape : {&a, &b}) {
      if (i > s.rank(*shape)) continue;
      TFPLUG_ASSIGN_OR_RETURN(const DimensionHandle one, s.GetDim(*shape, -i));
      const int64_t size = one.value();
      // A size other than 1 wins, also over an unknown one.
      if (dim == 1 || (dim < 0 && size > 1)) dim = size;
    }
    dims.push_back(dim);
  }
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle y, s.MakeShape(Shape(dims)));
  return s.SetOutput(0, y);
}

// Sets the outputs of AttentionOp().
inline absl::Status InferAttention(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle query, s.GetInput(0));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle q, s.WithRank(query, 4));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle value, s.GetInput(2));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle v, s.WithRank(value, 4));
  // A batch or number of heads of 1 may be broadcast.
  Shape dims;
  for (int i = 0; i < 3; ++i) {
    TFPLUG_ASSIGN_OR_RETURN(const DimensionHandle dim, s.GetDim(q, i));
    dims.add_dim(dim.value() > 1 ? dim.value() : -1);
  }
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle first, s.MakeShape(dims));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle last, s.Subshape(v, 3, 4));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle all, s.Concatenate(first, last));
  return s.SetOutput(0, all);
}

inline absl::Status InferLayerNorm(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle input, s.GetInput(0));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle x, s.WithRankAtLeast(input, 1));
  TFPLUG_RETURN_IF_ERROR(s.SetOutput(0, x));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle rows, s.Subshape(x, 0, -1));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle one, s.MakeVector(1));
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle statistics,
                          s.Concatenate(rows, one));
  TFPLUG_RETURN_IF_ERROR(s.SetOutput(1, statistics));
  return s.SetOutput(2, statistics);
}

inline absl::Status InferSame(ShapeInference& s) {
  TFPLUG_ASSIGN_OR_RETURN(const ShapeHandle x, s.GetInput(0));
  return s.SetOutput(0, x);
}

inline OpDef UnaryOp(const char* name) {
  return OpDef(name)
      .Attr("T: {half, bfloat16, float, double}")
      .Input("x: T")
      .Output("y: T")
      .SetShapeFn<&InferSame>()
      .AllowExisting();
}

}  // namespace passes_internal

// y = 0.5 x (1 + erf(x / sqrt(2)))
inline OpDef GeluOp() { return passes_internal::UnaryOp("TfplugGelu"); }

// y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
inline OpDef GeluTanhOp() { return passes_internal::UnaryOp("TfplugGeluTanh"); }

// y = x sigmoid(x)
inline OpDef SiluOp() { return passes_internal::UnaryOp("TfplugSilu"); }

// y = gate sigmoid(gate) x. The inputs are broadcast as in Mul.
inline OpDef SwigluOp() {
  return OpDef("TfplugSwiglu")
      .Attr("T: {half, bfloat16, float, double}")
      .Input("gate: T")
      .Input("x: T")
      .Output("y: T")
      .SetShapeFn<&passes_internal::InferBroadcast>()
      .AllowExisting();
}

// Normalizes the last dimension:
//
//   mean = the mean of x over that dimension, whose size becomes 1
//   rstd = 1 / sqrt(the mean of (x - mean)^2 + epsilon)
//   y = (x - mean) rstd gamma + beta
//
// gamma and beta are vectors.
inline OpDef LayerNormOp() {
  return OpDef("TfplugLayerNorm")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("epsilon: float")
      .Input("x: T")
      .Input("gamma: T")
      .Input("beta: T")
      .Output("y: T")
      .Output("mean: T")
      .Output("rstd: T")
      .SetShapeFn<&passes_internal::InferLayerNorm>()
      .AllowExisting();
}

// Scaled dot-product attention:
//
//   scores = scale query key^T  [batch, heads, queries, keys]
//   scores = masked_score where a mask is false
//   scores = scores + bias
//   probabilities = softmax(scores)
//   y = probabilities value
//
// `layout` names the dimensions of query, key, value and y: "BTNH" is [batch,
// length, heads, size], and "BNTH" is [batch, heads, length, size]. The batch
// and the heads are broadcast, and masks and biases are broadcast to the shape
// of the scores. There is at most one mask and one bias; num_probabilities is 1
// if the output is used, as in training.
inline OpDef AttentionOp() {
  return OpDef("TfplugAttention")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("layout: {'BTNH', 'BNTH'}")
      .Attr("scale: float = 1.0")
      .Attr("masked_score: float = 0.0")
      .Attr("num_masks: int >= 0 = 0")
      .Attr("num_biases: int >= 0 = 0")
      .Attr("num_probabilities: int >= 0 = 0")
      .Input("query: T")
      .Input("key: T")
      .Input("value: T")
      .Input("masks: num_masks * bool")
      .Input("biases: num_biases * T")
      .Output("y: T")
      .Output("probabilities: num_probabilities * T")
      .SetShapeFn<&passes_internal::InferAttention>()
      .AllowExisting();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_TRANSFORMER_OPS_H_
