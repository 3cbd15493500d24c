// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_MATMUL_SOURCE_H_
#define TFPLUG_COMPILED_MATMUL_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tfplug/compiled/expression_source.h"
#include "tfplug/compiled/kernel_source.h"
#include "tfplug/ir/expression.h"

#pragma GCC visibility push(hidden)

// Matrix products of floats as a kernel. A group computes a tile of c: it
// copies a tile of a and one of b to shared memory, as they are computed in,
// and adds their product to accumulators in registers.
//
// The operands are views [batch..., m, n, k] in which a is repeated along n,
// and b along m, so that they are loaded as those of a Reduce.
namespace tfplug::compiled_internal {

// Identifies what a product computes: the expression, or the type of the product
// if it is stored, and that of its factors.
inline uint64_t CodeOfMatMul(const Expression* expression, DataType type,
                             DataType stored) {
  const uint64_t id = expression != nullptr ? expression->id() : 0;
  return id << 32 | static_cast<uint32_t>(stored) << 16 |
         static_cast<uint32_t>(type);
}

// The tile of c that a group computes.
struct MatMulTile {
  int rows = 64, columns = 64;
  // Independent items: those of a group are a grid, and each one computes every
  // (items in a column)th of `each_row` rows, and so on.
  int items_down = 0, items_across = 0, each_row = 0, each_column = 0;

  MatMulTile(const Target& target, int64_t m, int64_t n) {
    if (!target.HasIndependentItems()) return;
    // Items have up to 8 times 8 elements: each load serves 8 products. There are
    // enough items for a vector of the processor.
    const auto fit = [](int64_t size, int least, int most) {
      int items = least;
      while (items < most && int64_t{items} * 8 < size) items *= 2;
      return items;
    };
    const auto each = [](int64_t size, int items) {
      return static_cast<int>(std::min<int64_t>((size + items - 1) / items, 8));
    };
    items_across = fit(n, 1, 8);
    items_down = fit(m, std::max(target.subgroup_size / items_across, 1),
                     target.group_size / items_across);
    each_row = each(m, items_down);
    each_column = each(n, items_across);
    rows = items_down * each_row;
    columns = items_across * each_column;
  }
  uint32_t variant() const {
    return static_cast<uint32_t>(
        ((items_down * 16 + items_across) * 16 + each_row) * 16 + each_column);
  }
};

// Fills the plan of a product: of one that is stored, or, if the expression is
// not null, of one whose elements are its input 0.
inline absl::Status PlanMatMul(const Target& target,
                               const Expression* expression, LaunchPlan& plan) {
  const int kept = plan.kept();
  const MatMulTile tile(target, plan.size(kept - 2), plan.size(kept - 1));
  int64_t batch = 1;
  for (int d = 0; d < kept - 2; ++d) batch *= plan.size(d);
  const auto tiles = [&](int d, int size) {
    return (plan.size(d) + size - 1) / size;
  };
  const int64_t row_tiles = tiles(kept - 2, tile.rows),
                column_tiles = tiles(kept - 1, tile.columns);
  const int64_t groups = batch * row_tiles * column_tiles;
  absl::Status status = plan.Fill(
      expression != nullptr ? Primitive::kMatMulMap : Primitive::kMatMul,
      CodeOfMatMul(expression, plan.operand(0).type, plan.operand(2).type),
      tile.variant(),
      groups + plan.size(kept - 2) + plan.size(kept - 1) + tile.rows +
          tile.columns + plan.size(kept));
  if (!status.ok()) return status;
  plan.AddExtra(row_tiles);
  plan.AddExtra(column_tiles);
  return plan.SetGroups(groups);
}

// $T: the type of accumulators; $L: elements of a vector; $A, $B: an element of
// a and b; $C: uses `value`; $m, $n, $k: the dimensions.
inline constexpr char kMatMulBegin[] = R"code(
const idx row0 = group / column_tiles % row_tiles * 64;
const idx column0 = group % column_tiles * 64;
const int rows = n$m - row0 < 64 ? i32(n$m - row0) : 64;
const int columns = n$n - column0 < 64 ? i32(n$n - column0) : 64;
)code";

// For a CPU: eight rows of a vector of columns at once, whose accumulators stay
// in registers for 32 steps.
inline constexpr char kMatMulCpu[] = R"code(
ALIGNED $T as[32 * 64];
ALIGNED $T bs[32 * 64];
ALIGNED $T cs[64 * 64];
for (int i = 0; i < 64 * 64; ++i) cs[i] = 0;
for (int i = 0; i < 32 * 64; ++i) as[i] = bs[i] = 0;
for (idx k0 = 0; k0 < n$k; k0 += 32) {
  const int steps = n$k - k0 < 32 ? i32(n$k - k0) : 32;
  $ALOOPS {
    const idx d$m = row0 + row, d$k = k0 + k;
    as[k * 64 + row] = $A;
  }
  $BLOOPS {
    const idx d$m = 0, d$n = column0 + column, d$k = k0 + k;
    bs[k * 64 + column] = $B;
  }
  for (int row = 0; row < rows; row += 8) {
    for (int column = 0; column < columns; column += $L) {
      $T* const c = cs + row * 64 + column;
      VECTOR_$T c0 = LOAD_$T(c), c1 = LOAD_$T(c + 64);
      VECTOR_$T c2 = LOAD_$T(c + 128), c3 = LOAD_$T(c + 192);
      VECTOR_$T c4 = LOAD_$T(c + 256), c5 = LOAD_$T(c + 320);
      VECTOR_$T c6 = LOAD_$T(c + 384), c7 = LOAD_$T(c + 448);
      for (int k = 0; k < steps; ++k) {
        const VECTOR_$T b = LOAD_$T(bs + k * 64 + column);
        const $T* const a = as + k * 64 + row;
        ADD_PRODUCT_$T(c0, a[0], b); ADD_PRODUCT_$T(c1, a[1], b);
        ADD_PRODUCT_$T(c2, a[2], b); ADD_PRODUCT_$T(c3, a[3], b);
        ADD_PRODUCT_$T(c4, a[4], b); ADD_PRODUCT_$T(c5, a[5], b);
        ADD_PRODUCT_$T(c6, a[6], b); ADD_PRODUCT_$T(c7, a[7], b);
      }
      STORE_$T(c0, c); STORE_$T(c1, c + 64);
      STORE_$T(c2, c + 128); STORE_$T(c3, c + 192);
      STORE_$T(c4, c + 256); STORE_$T(c5, c + 320);
      STORE_$T(c6, c + 384); STORE_$T(c7, c + 448);
    }
  }
}
for (int row = 0; row < rows; ++row) {
  for (int column = 0; column < columns; ++column) {
    const idx d$m = row0 + row, d$n = column0 + column;
    const $T value = cs[row * 64 + column];
    $C
  }
}
)code";

// For a GPU: each item has every (64 / side)th row and column, where the items
// are a square of `side` times `side`.
inline constexpr char kMatMulGpu[] = R"code(
#define SIDE $S
#define EACH (64 / SIDE)
PER_ITEM($T, cs)[EACH * EACH];
FOR_ITEMS(SIDE * SIDE)
  for (int i = 0; i < EACH * EACH; ++i) AT(cs)[i] = 0;
END_ITEMS
$SHAREDfor (idx k0 = 0; k0 < n$k; k0 += 16) {
  const int steps = n$k - k0 < 16 ? i32(n$k - k0) : 16;
  FOR_ITEMS(GROUP)
    for (int e = item; e < 16 * 64; e += GROUP) {
      const int row = $AROW, k = $AK;
      const idx d$m = row0 + row, d$k = k0 + k;
      as[k * 64 + row] = row < rows && k < steps ? $A : $T(0);
    }
    for (int e = item; e < 16 * 64; e += GROUP) {
      const int column = $BCOLUMN, k = $BK;
      const idx d$m = 0, d$n = column0 + column, d$k = k0 + k;
      bs[k * 64 + column] = column < columns && k < steps ? $B : $T(0);
    }
  END_ITEMS
  SYNC
  FOR_ITEMS(SIDE * SIDE)
    const int row = item / SIDE, column = item % SIDE;
    for (int k = 0; k < 16; ++k) {
      $T a[EACH], b[EACH];
      UNROLL
      for (int i = 0; i < EACH; ++i) a[i] = as[k * 64 + row + i * SIDE];
      UNROLL
      for (int j = 0; j < EACH; ++j) b[j] = bs[k * 64 + column + j * SIDE];
      UNROLL
      for (int i = 0; i < EACH; ++i) {
        UNROLL
        for (int j = 0; j < EACH; ++j) {
          AT(cs)[i * EACH + j] = $FMA(a[i], b[j], AT(cs)[i * EACH + j]);
        }
      }
    }
  END_ITEMS
  SYNC
}
FOR_ITEMS(SIDE * SIDE)
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const int row = item / SIDE + i * SIDE, column = item % SIDE + j * SIDE;
      const idx d$m = row0 + row, d$n = column0 + column;
      const $T value = AT(cs)[i * EACH + j];
      if (row < rows && column < columns) { $C }
    }
  }
END_ITEMS
)code";

// For independent items: each one loads elements of a and b, and adds their
// products to accumulators in registers. Loops are unrolled, so that arrays are
// registers.
inline constexpr char kMatMulItems[] = R"code(
#define EACH(i, n) UNROLL for (int i = 0; i < n; ++i)
const idx row0 = group / column_tiles % row_tiles * ($R * $DOWN);
const idx column0 = group % column_tiles * ($C * $ACROSS);
FOR_ITEMS($DOWN * $ACROSS)
  const idx row_ = row0 + item / $ACROSS, column_ = column0 + item % $ACROSS;
  $T cs[$R * $C];
  EACH(i, $R * $C) cs[i] = 0;
  for (idx d$k = 0; d$k < n$k; ++d$k) {
    $T a[$R], b[$C];
    EACH(i, $R) {
      const idx row = row_ + i * $DOWN, d$m = row < n$m ? row : n$m - 1;
      a[i] = $A;
    }
    EACH(j, $C) {
      const idx column = column_ + j * $ACROSS;
      const idx d$m = 0, d$n = column < n$n ? column : n$n - 1;
      b[j] = $B;
    }
    EACH(i, $R) EACH(j, $C) cs[i * $C + j] = $FMA(a[i], b[j], cs[i * $C + j]);
  }
  EACH(i, $R) EACH(j, $C) {
    const idx d$m = row_ + i * $DOWN, d$n = column_ + j * $ACROSS;
    const $T value = cs[i * $C + j];
    if (d$m < n$m && d$n < n$n) { $STORE }
  }
END_ITEMS
)code";

// Returns the statements that store `value`, an element of the product, or the
// outputs of the expression. Operands after a and b are its other inputs.
inline std::string MatMulElement(KernelSource& kernel, const LaunchPlan& plan,
                                 const Expression* expression) {
  const auto offset = [&](size_t k) {
    return kernel.Offset(k, 0, plan.kept());
  };
  const DataType type = plan.operand(0).type;
  if (expression == nullptr) {
    return kernel.Store(2, offset(2),
                        ConvertText(ComputeType(type), plan.operand(2).type,
                                    "value", kernel.parts()));
  }
  const std::string stored =
      ConvertText(ComputeType(type), type, "value", kernel.parts());
  ExpressionSource values(*expression, "v", kernel.parts());
  std::string text = values.Statements(
      [&](int i) {
        const auto k = static_cast<size_t>(i) + 1;
        return i == 0 ? WidenText(type, stored, kernel.parts())
                      : kernel.Load(k, offset(k));
      },
      [&](int i, const std::string& index) {
        const auto k = static_cast<size_t>(i) + 1;
        return kernel.LoadElement(k, offset(k), index);
      });
  for (size_t k = 0; k < expression->outputs().size(); ++k) {
    const size_t to = plan.num_inputs() + k;
    text += kernel.Store(to, offset(to), values.Output(k));
  }
  return text;
}

// Returns the source of a product whose plan was filled for the expression.
inline std::string MatMulSource(const Target& target, const LaunchPlan& plan,
                                const Expression* expression) {
  KernelSource kernel(target, "matmul", plan);
  kernel.Extra("row_tiles");
  kernel.Extra("column_tiles");
  const int kept = plan.kept(), rank = plan.rank();
  const DataType type = ComputeType(plan.operand(0).type);
  const bool is_double = type == DataType::kDouble;
  const char* const type_name = SourceType(type, false);
  // Whether the elements of a step are neighbours in memory, and not those of a
  // row of a or a column of b.
  const auto is_along_k = [&](size_t k) {
    return plan.operand(k).stride(rank - 1) == 1;
  };
  const auto loops = [&](const char* other, bool is_k_inner) {
    const std::string outer = absl::StrCat("for (int ", other, " = 0; ", other,
                                           " < ", other, "s; ++", other, ")");
    const char* const steps = "for (int k = 0; k < steps; ++k)";
    return is_k_inner ? absl::StrCat(outer, " ", steps)
                      : absl::StrCat(steps, " ", outer);
  };
  const MatMulTile tile(target, plan.size(kept - 2), plan.size(kept - 1));
  // Nothing is shared by more than 256 items.
  const std::string element = MatMulElement(kernel, plan, expression);
  int side = 16;
  while (side * side > target.group_size) side /= 2;
  const std::string m = absl::StrCat(kept - 2), n = absl::StrCat(kept - 1);
  const char* const flat[] = {"e % 16", "e / 16", "e % 64", "e / 64"};
  const std::string body = absl::StrReplaceAll(
      target.HasIndependentItems()
          ? std::string(kMatMulItems + 1)
          : absl::StrCat(kMatMulBegin + 1,
                         target.is_cpu ? kMatMulCpu + 1 : kMatMulGpu + 1),
      {{"$T", type_name},
       {"$L", is_double ? "8" : "16"},
       {"$ALOOPS", loops("row", is_along_k(0))},
       {"$BLOOPS", loops("column", is_along_k(1))},
       {"$AROW", flat[is_along_k(0) ? 1 : 2]},
       {"$AK", flat[is_along_k(0) ? 0 : 3]},
       {"$BCOLUMN", flat[is_along_k(1) ? 1 : 2]},
       {"$BK", flat[is_along_k(1) ? 0 : 3]},
       {"$FMA", kernel.parts().Function("fma", is_double)},
       {"$SHARED",
        target.is_cpu
            ? ""
            : absl::StrCat(kernel.Shared(type_name, "as", "16 * 64"),
                           kernel.Shared(type_name, "bs", "16 * 64"))},
       {"$STORE", element},
       {"$C", target.HasIndependentItems() ? absl::StrCat(tile.each_column)
                                           : element},
       {"$R", absl::StrCat(tile.each_row)},
       {"$DOWN", absl::StrCat(tile.items_down)},
       {"$ACROSS", absl::StrCat(tile.items_across)},
       {"$A", kernel.Load(0, kernel.Offset(0, 0, rank))},
       {"$B", kernel.Load(1, kernel.Offset(1, 0, rank))},
       {"$S", absl::StrCat(side)},
       {"$m", m},
       {"$n", n},
       {"$k", absl::StrCat(kept)}});
  return kernel.Finish(absl::StrCat(
      kernel.Unflatten("group / column_tiles / row_tiles", 0, kept - 2), body));
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_MATMUL_SOURCE_H_
