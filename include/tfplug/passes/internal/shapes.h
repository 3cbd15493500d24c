// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_SHAPES_H_
#define TFPLUG_PASSES_INTERNAL_SHAPES_H_

#include <cstdint>

#include "tfplug/base/shape.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/patterns/matched.h"

// What the rules of passes/ ask about shapes. Where TensorFlow does not know,
// the answer is the one that changes nothing.
namespace tfplug::internal {

// Of unknown rank where nothing is known. Constants are read; for the rest
// TensorFlow infers shapes, once for the graph.
inline PartialShape ShapeOf(const Matched& matched, const Output& output) {
  if (!output.node) return {};
  if (output.node.op() == "Const") {
    const auto shape = Constant::ReadShape(output.node);
    return shape.ok() ? PartialShape(*shape) : PartialShape();
  }
  const auto outputs =
      matched.context().properties().GetOutputs(output.node.name());
  const auto port = static_cast<size_t>(output.port);
  if (!outputs.ok() || port >= outputs->size()) return {};
  return (*outputs)[port].shape;
}

// The last dimension; -1 if it is not known.
inline int64_t DepthOf(const PartialShape& shape) {
  return shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
}

// [depth], or with ones before it.
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

}  // namespace tfplug::internal

#endif  // TFPLUG_PASSES_INTERNAL_SHAPES_H_
