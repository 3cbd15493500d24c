// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
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

// Makes the views those of matrix i of the batch dimensions.
void SelectMatrix(int64_t i, Operand* a, Operand* b, Operand* c) {
  for (int d = c->rank - 2; d-- > 0;) {
    const int64_t at = i % c->dim(d);
    i /= c->dim(d);
    for (Operand* view : {a, b, c}) view->Advance(at * view->stride(d));
  }
}

// Makes the views begin at `first` of dimension d, which is `size` long.
void Select(int64_t first, int64_t size, Operand* view, int d) {
  view->Advance(first * view->stride(d));
  view->dim(d) = size;
}

// Multiplies the first two matrices.
void MultiplyOne(const Operand& x, const Operand& y, float* z,
                 int64_t z_stride) {
  const int row = x.rank - 2;
  Gemm(x.dim(row), y.dim(row + 1), x.dim(row + 1), ForGemm(x), ForGemm(y), z,
       z_stride);
}

// How a product is divided into blocks that may run at the same time.
struct Division {
  bool by_row;     // or by column
  int64_t length;  // of what is divided: rows or columns
  int64_t part;    // rows or columns of a block
  int64_t parts;   // blocks of a product
  int64_t depths;  // parts of each sum
};

// Divides the sums of a large product that has few rows and columns, such as
// the gradient of a layer's weights.
Division Divide(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t cost) {
  constexpr int64_t kPanel = 64;             // rows or columns
  constexpr int64_t kFewest = 4, kMost = 8;  // blocks
  constexpr int64_t kDepth = 256;
  Division result = {};
  result.by_row = m >= n;
  result.length = std::max(m, n);
  result.part =
      std::max(kPanel, result.length * kPieceCost / cost / kPanel * kPanel);
  result.parts = (result.length + result.part - 1) / result.part;
  result.depths = 1;
  const int64_t blocks = batch * result.parts;
  if (blocks < kFewest) {
    result.depths = std::max<int64_t>(
        1, std::min({kMost / blocks, k / kDepth, cost / kPieceCost}));
  }
  return result;
}

// Multiplies all matrices: a block has several of a batch, or a part of a large
// one.
void MultiplyAll(const Operand& a, const Operand& b, const Operand& c) {
  const int row = c.rank - 2, column = row + 1;
  int64_t batch = 1;
  for (int d = 0; d < row; ++d) batch *= c.dim(d);
  const int64_t m = c.dim(row), n = c.dim(column), k = a.dim(column);
  const int64_t cost = m * n * k / kLanes;
  if (cost < 2 * kPieceCost) {
    return ForEachPiece(
        batch, PieceOf(cost), [&](int64_t begin, int64_t end, int64_t) {
          for (int64_t i = begin; i < end; ++i) {
            Operand x = a, y = b, z = c;
            SelectMatrix(i, &x, &y, &z);
            MultiplyOne(x, y, static_cast<float*>(z.data), z.stride(row));
          }
        });
  }
  const Division division = Divide(batch, m, n, k, cost);
  const int64_t blocks = batch * division.parts, depths = division.depths;
  // The first part of a sum is computed in the result.
  const int64_t size = m * n;
  const std::unique_ptr<float[]> others(
      new float[static_cast<size_t>((depths - 1) * batch * size)]);
  ForEachBlock(blocks * depths, [&](int64_t block, int64_t) {
    const int64_t part = block / depths % division.parts, d = block % depths;
    const int64_t i = block / depths / division.parts;
    Operand x = a, y = b, z = c;
    SelectMatrix(i, &x, &y, &z);
    if (d > 0) {
      z.data = others.get() + ((d - 1) * batch + i) * size;
      z.stride(row) = n;
    }
    const int64_t depth = k * d / depths;
    Select(depth, k * (d + 1) / depths - depth, &x, column);
    Select(depth, k * (d + 1) / depths - depth, &y, row);
    const int64_t first = part * division.part;
    const int64_t length = std::min(division.length - first, division.part);
    Select(first, length, division.by_row ? &x : &y,
           division.by_row ? row : column);
    Select(first, length, &z, division.by_row ? row : column);
    MultiplyOne(x, y, static_cast<float*>(z.data), z.stride(row));
  });
  for (int64_t i = 0; depths > 1 && i < batch; ++i) {
    Operand x = a, y = b, z = c;
    SelectMatrix(i, &x, &y, &z);
    for (int64_t r = 0; r < m; ++r) {
      float* const sum = static_cast<float*>(z.data) + r * z.stride(row);
      for (int64_t d = 0; d + 1 < depths; ++d) {
        const float* const other =
            others.get() + (d * batch + i) * size + r * n;
        for (int64_t j = 0; j < n; ++j) sum[j] += other[j];
      }
    }
  }
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
