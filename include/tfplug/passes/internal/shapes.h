// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_SHAPES_H_
#define TFPLUG_PASSES_INTERNAL_SHAPES_H_

#include <cstdint>

#include "tfplug/base/shape.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/patterns/matched.h"

#pragma GCC visibility push(hidden)

// Checks of shapes for the rules of passes/. Every check fails for a shape that
// TensorFlow cannot infer, so that the graph is not changed.
namespace tfplug::passes_internal {

// Returns the shape of a matched value, or a shape of unknown rank. The shape
// of a constant is read from its value. For other nodes, TensorFlow infers the
// shapes, once per graph.
inline PartialShape ShapeOf(const patterns::Matched& matched,
                            const Output& output) {
  if (!output.node) return {};
  if (output.node.op() == "Const") {
    const auto shape = matched.context().ReadConstantShape(output.node);
    return shape.ok() ? PartialShape(*shape) : PartialShape();
  }
  const auto outputs =
      matched.context().properties().GetOutputs(output.node.name());
  const auto port = static_cast<size_t>(output.port);
  if (!outputs.ok() || port >= outputs->size()) return {};
  return (*outputs)[port].shape;
}

// Returns the last dimension, or -1 if it is unknown.
inline int64_t DepthOf(const PartialShape& shape) {
  return shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
}

// Returns whether the shape is [depth], [1, depth], [1, 1, depth] and so on.
inline bool IsRow(const PartialShape& shape, int64_t depth) {
  if (depth < 0 || DepthOf(shape) != depth) return false;
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    if (shape.dim(i) != 1) return false;
  }
  return true;
}
inline bool IsVector(const PartialShape& shape, int64_t size) {
  return shape.rank() == 1 && IsRow(shape, size);
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_SHAPES_H_
