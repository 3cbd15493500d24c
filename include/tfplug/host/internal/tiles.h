// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_TILES_H_
#define TFPLUG_HOST_INTERNAL_TILES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/evaluator.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// The loops over the dimensions of operands, which end in tiles of two
// dimensions.
namespace tfplug::host_internal {

// Walks over the elements of the dimensions [begin, end) of some operands.
class HostOdometer {
 public:
  HostOdometer(int begin, int end) : begin_(begin), end_(end) {}

  // Moves the cursors to the next element. Returns false after the last one,
  // and then they are at the first one again.
  bool Next(absl::Span<HostCursor> cursors, absl::Span<HostCursor> more = {}) {
    for (int d = end_; d-- > begin_;) {
      int64_t& at = index_[static_cast<size_t>(d)];
      const auto& first = cursors.empty() ? more : cursors;
      const int64_t size = first[0].operand->dim(d);
      const bool stays = ++at < size;
      const int64_t steps = stays ? 1 : 1 - size;
      for (HostCursor& cursor : cursors) {
        cursor.offset += steps * cursor.operand->stride(d);
      }
      for (HostCursor& cursor : more) {
        cursor.offset += steps * cursor.operand->stride(d);
      }
      if (stays) return true;
      at = 0;
    }
    return false;
  }

 private:
  const int begin_, end_;
  std::array<int64_t, kMaxViewRank> index_ = {};
};

// Returns cursors at the beginning of operands, whose tiles cover the
// dimensions `row` and `inner`, unless they are negative.
inline HostCursors CursorsOf(Operands operands, int row, int inner) {
  HostCursors cursors;
  for (const Operand& operand : operands) {
    cursors.push_back({&operand, 0, row >= 0 ? operand.stride(row) : 0,
                       inner >= 0 ? operand.stride(inner) : 0});
  }
  return cursors;
}

// Returns for each operand whether its elements in a tile depend on the tile.
// Tiles cover the dimensions for which `covers` is true.
template <class Covers>
absl::InlinedVector<bool, 8> ChangingOperands(Operands operands,
                                              Covers covers) {
  absl::InlinedVector<bool, 8> changing;
  for (const Operand& operand : operands) {
    bool changes = false;
    for (int d = 0; d < operand.rank; ++d) {
      changes |= operand.stride(d) != 0 && operand.dim(d) > 1 && !covers(d);
    }
    changing.push_back(changes && operand.kind != Operand::Kind::kScalar);
  }
  return changing;
}

// The division of the last two dimensions into tiles.
struct HostTiling {
  int64_t rows, inner;            // sizes of the dimensions
  int64_t tile_rows, tile_inner;  // sizes of the largest tile

  HostTiling(int64_t rows_size, int64_t inner_size, int64_t tile,
             bool is_transposed)
      : rows(rows_size), inner(inner_size), tile_rows(1), tile_inner(inner) {
    if (is_transposed) {  // a tile of cache lines of both
      tile_inner = std::min<int64_t>(inner, 32);
      tile_rows = std::min<int64_t>(rows, 16);
    } else if (inner <= tile / 2 && rows > 1) {
      tile_rows = std::min(rows, tile / std::max<int64_t>(inner, 1));
    } else {
      tile_inner = std::min(inner, tile);
    }
  }
  bool covers_rows() const { return tile_rows == rows; }
  bool covers_inner() const { return tile_inner == inner; }

  // Calls visit(row, i, number of rows, number of elements).
  template <class Visit>
  void ForEachTile(Visit visit) const {
    for (int64_t r = 0; r < rows; r += tile_rows) {
      for (int64_t i = 0; i < inner; i += tile_inner) {
        visit(r, i, std::min(tile_rows, rows - r),
              std::min(tile_inner, inner - i));
      }
    }
  }
};

// Returns whether elements that are neighbours in memory are in different rows
// of an input.
inline bool IsTransposed(Operands operands, int row, int inner) {
  if (row < 0 || inner < 0) return false;
  for (const Operand& x : operands) {
    if (x.has_memory() && x.stride(row) == 1 && x.stride(inner) > 1 &&
        x.dim(row) > 1 && x.dim(inner) > 1) {
      return true;
    }
  }
  return false;
}

// Moves the cursors `to` to a tile of `from`, which differ in nothing else. Their
// offsets are written alone: a copy of a new cursor would wait until its members
// are in the cache, and thus until the elements stored before them are.
inline void MoveAll(absl::Span<const HostCursor> from, int64_t row, int64_t i,
                    absl::Span<HostCursor> to) {
  for (size_t k = 0; k < from.size(); ++k) {
    to[k].offset = from[k].OffsetOf(row, i);
  }
}

// Copies the elements of a view.
inline void HostCopyView(const HostLoops& loops, const Operand& from,
                         const Operand& to) {
  const int inner = to.rank - 1, row = to.rank - 2;
  HostCursors x = CursorsOf(absl::MakeConstSpan(&from, 1), row, inner);
  HostCursors y = CursorsOf(absl::MakeConstSpan(&to, 1), row, inner);
  const int64_t rows = row >= 0 ? to.dim(row) : 1;
  const int64_t n = inner >= 0 ? to.dim(inner) : 1;
  const int size = static_cast<int>(DataTypeSize(to.type));
  HostOdometer outer(0, row);
  do {
    loops.copy(size, rows, n, x[0].rows(), y[0].rows());
  } while (outer.Next(absl::MakeSpan(x), absl::MakeSpan(y)));
}

// Gathers whole rows: runs an expression that selects an element with an input
// as the index if all elements of a row have the same index. Returns whether it
// does.
inline bool HostCopyRows(const Expression& expression, Operands inputs,
                         Operands outputs) {
  const auto& all = expression.instructions();
  if (inputs.size() != 2 || all.size() > 3 || outputs.size() != 1 ||
      all.back().opcode != Opcode::kElement || all.back().a != 1 ||
      static_cast<size_t>(expression.outputs()[0].value) + 1 != all.size() ||
      all[0].opcode != Opcode::kInput || all[0].a != 0 ||
      (all.size() == 3 && all[1].opcode != Opcode::kCast) ||
      outputs[0].type != inputs[1].type) {
    return false;
  }
  const Operand &index = inputs[0], &table = inputs[1];
  const int inner = outputs[0].rank - 1;
  if (inner < 0 || !index.has_memory() || index.stride(inner) != 0 ||
      table.stride(inner) != 1 || outputs[0].stride(inner) != 1 ||
      (index.type != DataType::kInt32 && index.type != DataType::kInt64)) {
    return false;
  }
  const size_t element = DataTypeSize(table.type);
  const size_t bytes = static_cast<size_t>(outputs[0].dim(inner)) * element;
  HostCursors from = CursorsOf(inputs, -1, -1);
  HostCursors to = CursorsOf(outputs, -1, -1);
  HostOdometer outer(0, inner);
  do {
    const char* const at = from[0].data();
    const int64_t i = index.type == DataType::kInt64
                          ? *reinterpret_cast<const int64_t*>(at)
                          : *reinterpret_cast<const int32_t*>(at);
    if (i < 0 || i >= table.axis_size) {
      std::memset(to[0].data(), 0, bytes);
    } else {
      std::memcpy(to[0].data(),
                  from[1].data() +
                      i * table.axis_stride * static_cast<int64_t>(element),
                  bytes);
    }
  } while (outer.Next(absl::MakeSpan(from), absl::MakeSpan(to)));
  return true;
}

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_TILES_H_
