// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Operand;

constexpr DataType kFloat = DataType::kFloat;

Operand Transposed(Operand view) {
  std::swap(view.dim(view.rank - 2), view.dim(view.rank - 1));
  std::swap(view.stride(view.rank - 2), view.stride(view.rank - 1));
  return view;
}

// Returns whether the elements of a dimension are neighbours.
bool IsUnit(const Operand& view, int d) {
  return view.dim(d) == 1 || view.stride(d) == 1;
}

// Returns a matrix with dense rows or columns as an operand of Gemm.
GemmOperand ForGemm(const Operand& view) {
  const int row = view.rank - 2, column = view.rank - 1;
  const auto* const data = static_cast<const float*>(view.data);
  if (IsUnit(view, column)) return {data, view.stride(row), false};
  return {data, view.stride(column), true};
}

// Multiplies the matrices [begin, end) of the batch dimensions, of which it
// computes the rows or columns [first, last).
void Multiply(const Operand& a, const Operand& b, const Operand& c,
              int64_t begin, int64_t end, bool by_row, int64_t first,
              int64_t last) {
  const int row = c.rank - 2, split = by_row ? row : row + 1;
  for (int64_t i = begin; i < end; ++i) {
    Operand x = a, y = b, z = c;
    int64_t rest = i;
    for (int d = row; d-- > 0;) {
      const int64_t at = rest % c.dim(d);
      rest /= c.dim(d);
      for (Operand* view : {&x, &y, &z}) view->Advance(at * view->stride(d));
    }
    for (Operand* view : {by_row ? &x : &y, &z}) {
      view->Advance(first * view->stride(split));
      view->dim(split) = last - first;
    }
    Gemm(z.dim(row), z.dim(row + 1), x.dim(row + 1), ForGemm(x), ForGemm(y),
         static_cast<float*>(z.data), z.stride(row));
  }
}

// Multiplies all matrices: a block has several of a batch, or a part of the rows
// or columns of a large one.
void MultiplyAll(const Operand& a, const Operand& b, const Operand& c) {
  constexpr int64_t kPanel = 64;  // rows or columns
  const int row = c.rank - 2;
  int64_t batch = 1;
  for (int d = 0; d < row; ++d) batch *= c.dim(d);
  const int64_t m = c.dim(row), n = c.dim(row + 1);
  const int64_t cost = m * n * a.dim(row + 1) / kLanes;
  const bool by_row = m >= n;
  const int64_t length = by_row ? m : n;
  if (cost < 2 * kPieceCost) {
    return ForEachPiece(batch, PieceOf(cost),
                        [&](int64_t begin, int64_t end, int64_t) {
                          Multiply(a, b, c, begin, end, by_row, 0, length);
                        });
  }
  const int64_t part =
      std::max(kPanel, length * kPieceCost / cost / kPanel * kPanel);
  const int64_t parts = (length + part - 1) / part;
  ForEachBlock(batch * parts, [&](int64_t block, int64_t) {
    const int64_t i = block / parts, first = block % parts * part;
    Multiply(a, b, c, i, i + 1, by_row, first, std::min(length, first + part));
  });
}

// Moves the last batch dimension to the rows of a and c if b is the same for
// all of its elements.
bool MergeBatchWithRows(Operand& a, Operand& b, Operand& c) {
  const int row = c.rank - 2, batch = row - 1;
  const auto can_merge = [&](const Operand& x) {
    return x.stride(batch) == x.dim(row) * x.stride(row);
  };
  if (batch < 0 || b.stride(batch) != 0 || !can_merge(a) || !can_merge(c)) {
    return false;
  }
  // A single row counts as a dense column, but several do not.
  if (!IsUnit(a, row + 1) && a.stride(row) != 1) return false;
  for (Operand* x : {&a, &b, &c}) {
    if (x != &b) x->dim(row) *= x->dim(batch);
    for (int d = batch; d <= row; ++d) {
      x->dim(d) = x->dim(d + 1);
      x->stride(d) = x->stride(d + 1);
    }
    --x->rank;
  }
  return true;
}

// Returns the view as floats with dense rows or columns: itself or a copy.
absl::StatusOr<Operand> ToGemm(tfplug::Launcher& launcher, Operand view) {
  const int row = view.rank - 2;
  if (view.type == kFloat && (IsUnit(view, row + 1) || IsUnit(view, row))) {
    return view;
  }
  // A batch that is repeated is converted once.
  Operand once = view;
  for (int d = 0; d < row; ++d) {
    if (view.stride(d) == 0) once.dim(d) = 1;
  }
  TFPLUG_ASSIGN_OR_RETURN(
      Operand dense,
      launcher.Allocate(kFloat,
                        absl::MakeConstSpan(once.dims.data(),
                                            static_cast<size_t>(once.rank))));
  TFPLUG_RETURN_IF_ERROR(Convert(launcher, once, dense));
  for (int d = 0; d < row; ++d) {
    if (view.stride(d) == 0) dense.stride(d) = 0;
    dense.dim(d) = view.dim(d);
  }
  return dense;
}

}  // namespace

absl::Status Backend::MatMul(Stream& stream, tfplug::Launcher& launcher,
                             const Operand& a, const Operand& b,
                             const Operand& c) {
  if (tfplug::ComputeType(c.type) != kFloat ||
      tfplug::ComputeType(a.type) != kFloat ||
      tfplug::ComputeType(b.type) != kFloat) {
    return tfplug::Backend<Stream>::MatMul(stream, launcher, a, b, c);
  }
  TFPLUG_ASSIGN_OR_RETURN(Operand x, ToGemm(launcher, a));
  TFPLUG_ASSIGN_OR_RETURN(Operand y, ToGemm(launcher, b));
  Operand z = c;
  if (c.type != kFloat || !(IsUnit(c, c.rank - 1) || IsUnit(c, c.rank - 2))) {
    TFPLUG_ASSIGN_OR_RETURN(
        z, launcher.Allocate(kFloat,
                             absl::MakeConstSpan(c.dims.data(),
                                                 static_cast<size_t>(c.rank))));
  }
  const Operand result = z;
  if (!IsUnit(z, z.rank - 1)) {  // c' = b' a'
    x = Transposed(x);
    y = Transposed(y);
    z = Transposed(z);
    std::swap(x, y);
  }
  while (MergeBatchWithRows(x, y, z)) {
  }
  TFPLUG_ASSIGN_OR_RETURN(PackedViews packed,
                          PackedViews::Make(stream, {{x, y, z}}));
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([packed = std::move(packed)] {
    const DeviceViews views = packed.Unpack();
    MultiplyAll(views[0], views[1], views[2]);
  }));
  return result.data == c.data ? absl::OkStatus()
                               : Convert(launcher, result, c);
}

}  // namespace cpu_sim
