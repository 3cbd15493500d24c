// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_H_
#define TFPLUG_HOST_HOST_H_

#include <cstddef>
#include <cstdint>

#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/reduce.h"
#include "tfplug/host/internal/tiles.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// Map and Reduce for memory that the host can access, made of loops that are
// compiled for the host's processor: the results of reference.h, faster.
namespace tfplug {

namespace host_internal {

// Computes the tiles of a Map. Calls before(t) before element t of dimension 0, if
// the rank is 3. `any_changes`: whether that may write to any operand.
template <class Before>
void HostMapTiles(const HostLoops& loops, const Expression& expression,
                  Operands inputs, Operands outputs, bool any_changes,
                  Before before) {
  const int inner = outputs[0].rank - 1, row = outputs[0].rank - 2;
  HostEvaluator evaluator(loops, expression);
  HostTiling tiling(row >= 0 ? outputs[0].dim(row) : 1,
                    inner >= 0 ? outputs[0].dim(inner) : 1,
                    evaluator.tile_size(), IsTransposed(inputs, row, inner));
  HostCursors x = CursorsOf(inputs, row, inner);
  HostCursors y = CursorsOf(outputs, row, inner);
  auto changing = ChangingOperands(inputs, [&](int d) {
    return (d == inner && tiling.covers_inner()) ||
           (d == row && tiling.covers_rows());
  });
  for (size_t k = 0; any_changes && k < inputs.size(); ++k) {
    changing[k] |= inputs[k].has_memory();
  }
  int64_t t = 0;
  before(t);
  evaluator.Start(x, changing, y, tiling.tile_rows, tiling.tile_inner,
                  tiling.covers_inner());
  if (evaluator.needs_no_registers()) {
    (tiling.tile_rows == 1 ? tiling.tile_inner : tiling.tile_rows) =
        tiling.tile_rows == 1 ? tiling.inner : tiling.rows;
  }
  HostCursors x_tile = x, y_tile = y;
  HostOdometer outer(0, row);
  while (true) {
    tiling.ForEachTile([&](int64_t r, int64_t i, int64_t rows, int64_t n) {
      MoveAll(x, r, i, absl::MakeSpan(x_tile));
      MoveAll(y, r, i, absl::MakeSpan(y_tile));
      evaluator.Run(x_tile, y_tile, rows, n);
    });
    if (!outer.Next(absl::MakeSpan(x), absl::MakeSpan(y))) return;
    before(++t);
  }
}

}  // namespace host_internal

// Runs the primitive Map, as defined in backend.h.
inline void HostMap(const HostLoops& loops, const Expression& expression,
                    Operands inputs, Operands outputs) {
  using namespace host_internal;  // NOLINT
  if (expression.is_copy() && inputs[0].has_memory()) {
    return HostCopyView(loops, inputs[0], outputs[0]);
  }
  if (HostCopyRows(expression, inputs, outputs)) return;
  HostMapTiles(loops, expression, inputs, outputs, /*any_changes=*/false,
               [](int64_t) {});
}

// Runs a Map for each step of operands of rank 3, in order: before(t) runs before
// step t, and may read and write any memory of the operands.
template <class Before>
void HostMapSteps(const HostLoops& loops, const Expression& expression,
                  Operands inputs, Operands outputs, Before before) {
  host_internal::HostMapTiles(loops, expression, inputs, outputs,
                              /*any_changes=*/true, before);
}

// Runs the primitive Reduce.
inline void HostReduce(const HostLoops& loops, const Reduction& reduction,
                       Operands inputs, Operands outputs) {
  host_internal::HostReducer(loops, reduction, inputs, outputs).Run();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_H_
