// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_H_
#define TFPLUG_HOST_HOST_H_

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

// Runs the primitive Map, as defined in backend.h.
inline void HostMap(const HostLoops& loops, const Expression& expression,
                    Operands inputs, Operands outputs) {
  using namespace host_internal;  // NOLINT
  if (expression.is_copy() && inputs[0].has_memory()) {
    return HostCopyView(loops, inputs[0], outputs[0]);
  }
  if (HostCopyRows(expression, inputs, outputs)) return;
  const int inner = outputs[0].rank - 1, row = outputs[0].rank - 2;
  HostEvaluator evaluator(loops, expression);
  HostTiling tiling(row >= 0 ? outputs[0].dim(row) : 1,
                    inner >= 0 ? outputs[0].dim(inner) : 1,
                    evaluator.tile_size(), IsTransposed(inputs, row, inner));
  HostCursors x = CursorsOf(inputs, row, inner);
  HostCursors y = CursorsOf(outputs, row, inner);
  const auto changing = ChangingOperands(inputs, [&](int d) {
    return (d == inner && tiling.covers_inner()) ||
           (d == row && tiling.covers_rows());
  });
  evaluator.Start(x, changing, y, tiling.tile_rows, tiling.tile_inner,
                  tiling.covers_inner());
  if (evaluator.needs_no_registers()) {
    (tiling.tile_rows == 1 ? tiling.tile_inner : tiling.tile_rows) =
        tiling.tile_rows == 1 ? tiling.inner : tiling.rows;
  }
  HostCursors x_tile = x, y_tile = y;
  HostOdometer outer(0, row);
  do {
    tiling.ForEachTile([&](int64_t r, int64_t i, int64_t rows, int64_t n) {
      MoveAll(x, r, i, absl::MakeSpan(x_tile));
      MoveAll(y, r, i, absl::MakeSpan(y_tile));
      evaluator.Run(x_tile, y_tile, rows, n);
    });
  } while (outer.Next(absl::MakeSpan(x), absl::MakeSpan(y)));
}

// Runs the primitive Reduce.
inline void HostReduce(const HostLoops& loops, const Reduction& reduction,
                       Operands inputs, Operands outputs) {
  host_internal::HostReducer(loops, reduction, inputs, outputs).Run();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_H_
