// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_REDUCE_CASES_H_
#define TFPLUG_TESTING_INTERNAL_REDUCE_CASES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/ir/value.h"
#include "tfplug/ir/views.h"
#include "tfplug/testing/internal/primitive_case.h"

#pragma GCC visibility push(hidden)

// Cases of the primitives that combine elements.
namespace tfplug::testing {

inline const char* NameOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "kSum";
    case ReduceKind::kProduct:
      return "kProduct";
    case ReduceKind::kMax:
      return "kMax";
    default:
      return "kMin";
  }
}

// Returns values whose combination does not depend on the order.
inline Values ExactValues(ReduceKind kind, DataType type) {
  if (!IsFloat(type) || kind == ReduceKind::kMax || kind == ReduceKind::kMin) {
    return Values::kAny;
  }
  return kind == ReduceKind::kSum ? Values::kSmall : Values::kOnes;
}

// Reduces values of `type`, with two outputs and an input of `finish`.
inline PrimitiveCase MakeReduceCase(CaseMaker& maker, ReduceKind kind,
                                    DataType type) {
  const Dims dims = maker.MakeDims();
  const int64_t rank = static_cast<int64_t>(dims.size());
  const auto kept =
      static_cast<std::ptrdiff_t>(Below(maker.random(), rank + 1));
  const Dims kept_dims(dims.begin(), dims.begin() + kept);
  const DataType stored = maker.StoredType(type);
  Reduction reduction;
  reduction.kind = kind;
  const bool is_bool = type == DataType::kBool;
  reduction.map = *MakeExpression({stored, stored}, {type},
                                  [&](tfplug::Value x, tfplug::Value y) {
                                    return is_bool ? x & y : Max(x, y);
                                  });
  reduction.finish =
      *MakeExpression({type, stored}, {type, stored},
                      [&](tfplug::Value all, tfplug::Value extra) {
                        return std::array<tfplug::Value, 2>{
                            all, is_bool ? all ^ extra : all + extra};
                      });
  const Values values = ExactValues(kind, type);
  maker.AddInput(stored, dims, values);
  maker.AddInput(stored, dims, values);
  const size_t extra = maker.Add(stored, kept_dims, Values::kSmall);
  for (int64_t d = kept; d < rank; ++d) {
    maker.made().arrays[extra].view.AddDim(dims[static_cast<size_t>(d)], 0);
  }
  maker.AddOutput(type, kept_dims);
  maker.AddOutput(stored, kept_dims);
  PrimitiveCase& made = maker.made();
  made.text = std::string("Reduce of kind ") + NameOf(kind) + ", map " +
              Formula(reduction.map) + ", finish " + Formula(reduction.finish);
  made.launch = [reduction = std::move(reduction)](
                    Launcher& launcher, const std::vector<Operand>& operands) {
    absl::InlinedVector<Operand, 4> in(operands.begin(), operands.begin() + 3);
    absl::InlinedVector<Operand, 4> out(operands.begin() + 3, operands.end());
    return launcher.Reduce(reduction, absl::MakeSpan(in), absl::MakeSpan(out));
  };
  return made;
}

// Sums fractions, whose error depends on the order and precision of the sum.
inline PrimitiveCase MakeAccuracyCase(CaseMaker& maker, DataType type) {
  const int64_t size = maker.level() == kLarge ? 100000 : maker.MakeSize(9);
  const size_t input = maker.Add(type, {size}, Values::kOnes);
  maker.AddOutput(type, {});
  PrimitiveCase& made = maker.made();
  TestArray& array = made.arrays[input];
  for (size_t i = 0; i < array.bytes.size(); i += array.element_size()) {
    const double value = static_cast<double>(Below(maker.random(), 1000)) / 997;
    const auto short_value = static_cast<float>(value);
    const bool is_double = type == DataType::kDouble;
    std::memcpy(array.bytes.data() + i,
                is_double ? static_cast<const void*>(&value) : &short_value,
                array.element_size());
  }
  const double epsilon = type == DataType::kDouble ? 2.3e-16 : 1.2e-7;
  // Rounding errors of a sum in the type itself are random, unless the operand
  // repeats its elements.
  const double count = static_cast<double>(size);
  const bool repeats =
      array.bytes.size() / array.element_size() < static_cast<size_t>(size);
  made.absolute =
      epsilon * count * (repeats ? 2 + count : 2 + 2 * std::sqrt(count));
  made.text = "Reduce of kind kSum, of fractions";
  Reduction reduction;
  reduction.map = *CastExpression(type, type);
  reduction.finish = reduction.map;
  made.launch = [reduction = std::move(reduction)](
                    Launcher& launcher, const std::vector<Operand>& operands) {
    return launcher.Reduce(reduction, {operands[0]}, {operands[1]});
  };
  return made;
}

// Multiplies matrices of small integers, so that sums are exact. `is_mapped`:
// uses the elements of the product instead of storing them.
inline PrimitiveCase MakeMatMulCase(CaseMaker& maker, DataType type,
                                    bool is_mapped) {
  const int64_t m = maker.MakeSize(65), n = maker.MakeSize(65),
                k = maker.OneIn(12)  ? 0
                    : maker.OneIn(2) ? m  // may be transposed by mistake
                                     : maker.MakeSize(65);
  Dims batch;
  if (maker.level() == kRandom) {
    for (int64_t d = Below(maker.random(), 3); d > 0; --d) {
      batch.push_back(1 + Below(maker.random(), 3));
    }
  }
  const auto dims = [&](int64_t rows, int64_t columns) {
    Dims all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return all;
  };
  maker.Add(type, dims(m, k), Values::kSmall);
  maker.Add(type, dims(k, n), Values::kSmall);
  if (is_mapped) {
    constexpr DataType kBool = DataType::kBool;
    const Expression expression = *MakeExpression(
        {type, type, kBool}, {type, kBool},
        [](tfplug::Value product, tfplug::Value x, tfplug::Value is_sum) {
          const tfplug::Value y = Select(is_sum, product + x, x);
          return std::array<tfplug::Value, 2>{y, product < x};
        });
    maker.Add(type, dims(m, n), Values::kSmall);
    maker.Add(kBool, dims(m, n), Values::kAny);
    maker.AddOutput(type, dims(m, n));
    maker.AddOutput(kBool, dims(m, n));
    maker.made().text = "MatMulMap";
    maker.made().launch = [expression](Launcher& launcher,
                                       const std::vector<Operand>& operands) {
      const auto all = absl::MakeConstSpan(operands);
      if (all[4].num_elements() == 0) return absl::OkStatus();
      return launcher.MatMulMap(all[0], all[1], expression, all.subspan(2, 2),
                                all.subspan(4));
    };
    return maker.made();
  }
  maker.AddOutput(type, dims(m, n));
  maker.made().text = "MatMul";
  maker.made().launch = [](Launcher& launcher,
                           const std::vector<Operand>& operands) {
    return launcher.MatMul(operands[0], operands[1], operands[2]);
  };
  return maker.made();
}

// A recurrence whose states are small integers, so that sums are exact.
inline PrimitiveCase MakeRecurCase(CaseMaker& maker, DataType type) {
  const int64_t steps = maker.MakeSize(12), rows = maker.MakeSize(65),
                n = maker.MakeSize(65);
  const Expression expression = *MakeExpression(
      {type, type, type, type}, {type, type},
      [](tfplug::Value p, tfplug::Value q, tfplug::Value old, tfplug::Value x) {
        return std::array<tfplug::Value, 2>{Select(p < q, x, old), Max(p, q)};
      });
  maker.Add(type, {n, 2 * n}, Values::kSmall);
  maker.Add(type, {steps, rows, n}, Values::kSmall);
  maker.Add(type, {steps + 1, rows, n}, Values::kSmall, /*is_output=*/true);
  maker.AddOutput(type, {steps, rows, n});
  maker.AddOutput(type, {rows, 2 * n});
  maker.made().text = "Recur";
  maker.made().launch = [=](Launcher& launcher,
                            const std::vector<Operand>& operands) {
    const Operand &b = operands[0], &x = operands[1], &states = operands[2],
                  &y = operands[3], &c = operands[4];
    const Operand old = ir::Range(states, 0, 0, steps);
    const auto part = [&](int64_t i) {
      return ir::WithDim(ir::Range(c, 1, i * n, (i + 1) * n), 0, steps);
    };
    return launcher.Recur(old, b, c, expression, {part(0), part(1), old, x},
                          {ir::Range(states, 0, 1, steps + 1), y});
  };
  return maker.made();
}

inline PrimitiveCase MakeScatterCase(CaseMaker& maker, ScatterKind kind,
                                     DataType type) {
  const int64_t rows = maker.MakeSize(50);
  const int64_t n = maker.OneIn(12) ? 0 : maker.MakeSize(100);
  Dims inner;
  for (int64_t d = Below(maker.random(), maker.level() < kFlat ? 1 : 3); d > 0;
       --d) {
    inner.push_back(maker.MakeSize(9));
  }
  const auto dims = [&](int64_t size) {
    Dims all = inner;
    all.insert(all.begin(), size);
    return all;
  };
  const Values values = kind == ScatterKind::kAdd        ? Values::kSmall
                        : kind == ScatterKind::kMultiply ? Values::kOnes
                                                         : Values::kAny;
  maker.AddIndices(maker.OneIn(2) ? DataType::kInt32 : DataType::kInt64, {n},
                   rows);
  maker.Add(type, dims(n), values);
  maker.Add(type, dims(rows), values, /*is_output=*/true);
  constexpr const char* kNames[] = {"kSet", "kAdd", "kMultiply", "kMax",
                                    "kMin"};
  maker.made().text =
      std::string("Scatter of kind ") + kNames[static_cast<size_t>(kind)];
  maker.made().launch = [kind](Launcher& launcher,
                               const std::vector<Operand>& operands) {
    return launcher.Scatter(kind, operands[0], operands[1], operands[2]);
  };
  return maker.made();
}

// Returns dimensions whose last one is not too large for sorting by counting.
inline Dims RowsToScan(CaseMaker& maker) {
  Dims dims;
  if (maker.level() >= kFlat) {
    for (int64_t d = Below(maker.random(), 3); d > 0; --d) {
      dims.push_back(1 + Below(maker.random(), 3));
    }
  }
  dims.push_back(maker.MakeSize(700));
  return dims;
}

inline PrimitiveCase MakeScanCase(CaseMaker& maker, ReduceKind kind,
                                  DataType type) {
  const Dims dims = RowsToScan(maker);
  maker.Add(type, dims, ExactValues(kind, type));
  maker.AddOutput(type, dims);
  maker.made().text = std::string("Scan of kind ") + NameOf(kind);
  maker.made().launch = [kind](Launcher& launcher,
                               const std::vector<Operand>& operands) {
    return launcher.Scan(kind, operands[0], operands[1]);
  };
  return maker.made();
}

// `type` is float or double.
inline PrimitiveCase MakeFourierCase(CaseMaker& maker, DataType type) {
  // Sizes of one product, of several factors, and a prime.
  constexpr int64_t kLarge[] = {64, 66, 97, 128, 360, 1024};
  const int64_t n = maker.level() >= kRandom && maker.OneIn(3)
                        ? kLarge[Below(maker.random(), 6)]
                        : maker.MakeSize(65);
  const Dims dims = {maker.MakeSize(20), n, 2};
  for (const bool is_output : {false, true}) {
    Layout layout;
    layout.view = Operand::Dense(nullptr, type, dims);
    layout.size = layout.view.num_elements();
    maker.AddLayout(layout, Values::kSmall, is_output);
  }
  const bool is_inverse = maker.OneIn(2);
  maker.made().text = is_inverse ? "Fourier, inverse" : "Fourier";
  const double epsilon = type == DataType::kFloat ? 1e-6 : 1e-14;
  maker.made().absolute = epsilon * static_cast<double>(n + 8);
  maker.made().launch = [is_inverse](Launcher& launcher,
                                     const std::vector<Operand>& operands) {
    return launcher.Fourier(is_inverse, operands[0], operands[1]);
  };
  return maker.made();
}

inline PrimitiveCase MakeSortCase(CaseMaker& maker, DataType type) {
  const Dims dims = RowsToScan(maker);
  Dims kept = dims;
  kept.back() = 1 + Below(maker.random(), dims.back());
  maker.Add(type, dims, Values::kAny);
  maker.AddOutput(type, kept);
  maker.AddOutput(DataType::kInt32, kept);
  maker.made().text = "Sort";
  maker.made().launch = [](Launcher& launcher,
                           const std::vector<Operand>& operands) {
    return launcher.Sort(operands[0], operands[1], operands[2]);
  };
  return maker.made();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_REDUCE_CASES_H_
