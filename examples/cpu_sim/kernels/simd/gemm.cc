// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/simd/code.h"
#include "kernels/simd/vectors.h"

// Products of matrices. The products of a panel of b, a few vectors of columns of
// some of its rows, and a few rows of a are summed in registers. A panel is
// packed, unless its rows are adjacent anyway, so that it stays in the fastest
// cache; rows of a are not, unless they are columns in memory that many panels
// need.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

constexpr int64_t kDepth = 128;                 // the most rows of a panel
constexpr int kVectors = kWidth == 16 ? 4 : 2;  // the most vectors of its rows

// Returns whether Eigen's product is faster. It has functions for vectors, and
// keeps more of the 16 registers of AVX2 busy if there are many columns.
bool IsForEigen(int64_t m, int64_t n) {
  return m == 1 || n < 4 || (kWidth == 8 && n > int64_t{4} * kWidth);
}

using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;

// Calls use(matrix) with an Eigen expression of rows x cols.
template <typename Use>
void WithMatrix(const GemmOperand& operand, int64_t rows, int64_t cols,
                Use use) {
  const Eigen::OuterStride<> stride(operand.stride);
  if (operand.transpose) {
    use(ConstMap(operand.data, cols, rows, stride).transpose());
  } else {
    use(ConstMap(operand.data, rows, cols, stride));
  }
}

void MultiplyWithEigen(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
                       const GemmOperand& b, float* c, int64_t c_stride,
                       GemmMode mode) {
  Eigen::Map<Matrix, 0, Eigen::OuterStride<>> out(
      c, m, n, Eigen::OuterStride<>(c_stride));
  if (mode == GemmMode::kAssign) out.setZero();
  WithMatrix(a, m, k, [&](const auto& a_matrix) {
    WithMatrix(b, k, n, [&](const auto& b_matrix) {
      out.noalias() += a_matrix * b_matrix;
    });
  });
}

// Returns how many rows of a are multiplied by a panel at once.
template <int vectors>
constexpr int kRows = vectors == kVectors ? 6 : 8;

constexpr int kPackedRows = kRows<kVectors>;
constexpr int64_t kMostPacked = int64_t{16} * kPackedRows;

// A panel is not packed for fewer rows of a.
constexpr int64_t kFewRows = 32;

// Some columns of some rows of b, followed by zeros to whole vectors.
struct Panel {
  const float* data;
  int64_t stride;
  int64_t depth;
  int64_t columns;
};

// Returns the element in row `r` and column `k` of op(a).
template <bool transpose>
float ElementOf(const GemmOperand& a, int64_t r, int64_t k) {
  return transpose ? a.data[k * a.stride + r] : a.data[r * a.stride + k];
}

// Computes a few rows of the product of op(a) and a panel, but stores the first
// `skipped` ones nowhere.
template <int vectors, int rows, bool transpose>
void MultiplyRows(const GemmOperand& a, const Panel& panel, int64_t skipped,
                  float* c, int64_t c_stride, GemmMode mode) {
  constexpr int64_t kColumns = int64_t{vectors} * kWidth;
  Vector<kWidth> sums[rows][vectors] = {};
  const float* from = panel.data;
  for (int64_t k = 0; k < panel.depth; ++k, from += panel.stride) {
    Vector<kWidth> of_row[vectors];
    for (int64_t v = 0; v < vectors; ++v) {
      of_row[v] = Load<kWidth>(from + v * kWidth);
    }
    for (int r = 0; r < rows; ++r) {
      const float element = ElementOf<transpose>(a, r, k);
      for (int v = 0; v < vectors; ++v) sums[r][v] += of_row[v] * element;
    }
  }
  if (skipped == 0 && panel.columns == kColumns) {
    for (int r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < vectors; ++v) {
        float* const to = c + r * c_stride + v * kWidth;
        if (mode == GemmMode::kAdd) sums[r][v] += Load<kWidth>(to);
        Store<kWidth>(sums[r][v], to);
      }
    }
    return;
  }
  float results[rows][kColumns];
  std::memcpy(results, sums, sizeof(results));
  for (int64_t r = skipped; r < rows; ++r) {
    float* const to = c + r * c_stride;
    for (int64_t j = 0; j < panel.columns; ++j) {
      to[j] = mode == GemmMode::kAdd ? to[j] + results[r][j] : results[r][j];
    }
  }
}

// Returns the operand from row `row` and column `column` of op(x) on.
GemmOperand From(const GemmOperand& x, int64_t row, int64_t column) {
  return {x.data +
              (x.transpose ? column * x.stride + row : row * x.stride + column),
          x.stride, x.transpose};
}

// Calls use(first, skipped) for blocks of `rows` of m rows. The last block
// repeats some rows, which are to be skipped.
template <typename Use>
void ForEachBlock(int64_t m, int64_t rows, Use use) {
  for (int64_t i = 0; i < m; i += rows) {
    const int64_t first = std::min(i, m - rows);
    use(first, i - first);
  }
}

// Multiplies op(a), which has m rows, at least two, by a panel.
template <int vectors, bool transpose>
void MultiplyPanel(int64_t m, const GemmOperand& a, const Panel& panel,
                   float* c, int64_t c_stride, GemmMode mode) {
  const auto multiply = [&](auto rows) {
    ForEachBlock(m, rows, [&](int64_t first, int64_t skipped) {
      MultiplyRows<vectors, rows, transpose>(From(a, first, 0), panel, skipped,
                                             c + first * c_stride, c_stride,
                                             mode);
    });
  };
  if (m >= kRows<vectors>) {
    multiply(std::integral_constant<int, kRows<vectors>>());
  } else {
    multiply(std::integral_constant<int, 2>());
  }
}

// Packs blocks of columns of a, so that those of a block are adjacent.
void PackColumns(int64_t m, int64_t depth, const GemmOperand& a, float* to) {
  ForEachBlock(m, kPackedRows, [&](int64_t first, int64_t) {
    const float* from = a.data + first;
    for (int64_t k = 0; k < depth; ++k, from += a.stride, to += kPackedRows) {
      for (int64_t r = 0; r < kPackedRows; ++r) to[r] = from[r];
    }
  });
}

// Multiplies m rows, which PackColumns has packed, by a panel.
template <int vectors>
void MultiplyPacked(int64_t m, const float* a, const Panel& panel, float* c,
                    int64_t c_stride, GemmMode mode) {
  ForEachBlock(m, kPackedRows, [&](int64_t first, int64_t skipped) {
    MultiplyRows<vectors, kPackedRows, true>({a, kPackedRows, true}, panel,
                                             skipped, c + first * c_stride,
                                             c_stride, mode);
    a += kPackedRows * panel.depth;
  });
}

// Packs `columns` columns of op(b) into a panel with `width` floats a row.
void Pack(const GemmOperand& b, int64_t depth, int64_t columns, int64_t width,
          float* to) {
  if (!b.transpose) {
    for (int64_t k = 0; k < depth; ++k, to += width) {
      std::memcpy(to, b.data + k * b.stride,
                  static_cast<size_t>(columns) * sizeof(float));
      std::fill(to + columns, to + width, 0.0f);
    }
    return;
  }
  // Squares are transposed in registers.
  using Packet = Eigen::internal::packet_traits<float>::type;
  constexpr int64_t kSide = Eigen::internal::packet_traits<float>::size;
  for (int64_t j = 0; j < width; j += kSide) {
    const float* const from = b.data + j * b.stride;
    int64_t k = 0;
    for (; j + kSide <= columns && k + kSide <= depth; k += kSide) {
      Eigen::internal::PacketBlock<Packet, kSide> square;
      for (int64_t i = 0; i < kSide; ++i) {
        square.packet[i] =
            Eigen::internal::ploadu<Packet>(from + i * b.stride + k);
      }
      Eigen::internal::ptranspose(square);
      for (int64_t i = 0; i < kSide; ++i) {
        Eigen::internal::pstoreu(to + (k + i) * width + j, square.packet[i]);
      }
    }
    for (; k < depth; ++k) {
      for (int64_t i = 0; i < kSide; ++i) {
        to[k * width + j + i] = j + i < columns ? from[i * b.stride + k] : 0;
      }
    }
  }
}

}  // namespace

void Multiply(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
              const GemmOperand& b, float* c, int64_t c_stride, GemmMode mode) {
  if (IsForEigen(m, n)) {
    return MultiplyWithEigen(m, n, k, a, b, c, c_stride, mode);
  }
  if (k == 0 && mode == GemmMode::kAssign) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, 0.0f);
  }
  constexpr int64_t kWidest = int64_t{kVectors} * kWidth;
  const bool is_packed = a.transpose && n > kWidest && m >= kPackedRows;
  alignas(64) float of_a[kMostPacked * kDepth];
  alignas(64) float of_b[kDepth * kWidest];
  const int64_t blocks = (k + kDepth - 1) / kDepth;
  const int64_t parts = is_packed ? (m + kMostPacked - 1) / kMostPacked : m > 0;
  for (int64_t i = 0; i < blocks * parts; ++i) {
    const int64_t block = i / parts, part = i % parts;
    const int64_t first = k * block / blocks;
    const int64_t depth = k * (block + 1) / blocks - first;
    const int64_t row = m * part / parts;
    const int64_t rows = m * (part + 1) / parts - row;
    const GemmOperand x = From(a, row, first);
    const GemmMode way = block == 0 ? mode : GemmMode::kAdd;
    float* const y = c + row * c_stride;
    if (is_packed) PackColumns(rows, depth, x, of_a);
    const auto multiply = [&](auto vectors, int64_t j) {
      constexpr int64_t kWhole = int64_t{vectors} * kWidth;
      const GemmOperand of_columns = From(b, first, j);
      Panel panel = {of_b, kWhole, depth, std::min(n - j, kWhole)};
      if (!b.transpose && panel.columns == kWhole &&
          (b.stride == kWhole || rows <= kFewRows)) {
        panel.data = of_columns.data;
        panel.stride = b.stride;
      } else {
        Pack(of_columns, depth, panel.columns, kWhole, of_b);
      }
      if (is_packed) {
        MultiplyPacked<vectors>(rows, of_a, panel, y + j, c_stride, way);
      } else if (a.transpose) {
        MultiplyPanel<vectors, true>(rows, x, panel, y + j, c_stride, way);
      } else {
        MultiplyPanel<vectors, false>(rows, x, panel, y + j, c_stride, way);
      }
    };
    int64_t j = 0;
    for (; j + kWidest - kWidth < n; j += kWidest) {
      multiply(std::integral_constant<int, kVectors>(), j);
    }
    if (j >= n) continue;
    const int64_t rest = (n - j + kWidth - 1) / kWidth;
    if (rest == 3) multiply(std::integral_constant<int, 3>(), j);
    if (rest == 2) multiply(std::integral_constant<int, 2>(), j);
    if (rest == 1) multiply(std::integral_constant<int, 1>(), j);
  }
}

}  // namespace cpu_sim::CPU_SIM_LEVEL
