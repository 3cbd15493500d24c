// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_POOL_H_
#define TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_POOL_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "tfplug/base/separate.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/windows.h"

#pragma GCC visibility push(hidden)

// Pooling composed of reductions of windows.
namespace tfplug::primitives_internal {

// Returns the position in the window, counted from `first` in steps of `step`,
// for operands like `windows` whose dimensions from `kept` on are the window's.
inline Operand PositionOf(const Operand& windows, int kept, int64_t first,
                          int64_t step) {
  Operand view = Operand::Index(first, DataType::kInt32);
  for (int d = 0; d < windows.rank; ++d) view.AddDim(windows.dim(d), 0);
  for (int d = windows.rank; d-- > kept; step *= windows.dim(d)) {
    view.stride(d) = step;
  }
  return view;
}

inline absl::StatusOr<const Reduction*> ReductionOf(ReduceKind kind,
                                                    DataType from,
                                                    DataType to) {
  static primitives::Memo<Reduction> memo;
  const uint32_t key = primitives::KeyOf(from, to) | static_cast<uint32_t>(kind)
                                                         << 16;
  return memo.Get(key, [&] {
    return primitives::MakeReduction(
        kind, {from}, ComputeType(from), [](Value x) { return x; }, to);
  });
}

// ---- Maxima -----------------------------------------------------------------

// Returns the windows of an image that is padded with -infinity, with the
// elements of each window in the last dimensions.
inline absl::StatusOr<Operand> ElementsOfWindows(Launcher& launcher,
                                                 const Windows& windows,
                                                 const Operand& image) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand padded,
      primitives::Padded(launcher, image, windows,
                         -std::numeric_limits<double>::infinity()));
  return primitives::WithWindowLast(primitives::WindowsOf(padded, windows),
                                    static_cast<int>(windows.size()));
}

inline absl::Status ComposeMaxPool(Launcher& launcher, const Windows& windows,
                                   const Operand& image,
                                   const Operand& output) {
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const max,
      ReductionOf(ReduceKind::kMax, image.type, image.type));
  TFPLUG_ASSIGN_OR_RETURN(const Operand elements,
                          ElementsOfWindows(launcher, windows, image));
  return launcher.Reduce(*max, {elements}, {output});
}

// Returns the position in its window of the first element that equals `output`.
inline absl::StatusOr<Operand> FindLargest(Launcher& launcher,
                                           const Windows& windows,
                                           const Operand& image,
                                           const Operand& output) {
  constexpr DataType kInt32 = DataType::kInt32;
  static primitives::Memo<Reduction> memo;
  const DataType type = image.type;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const find, memo.Get(primitives::KeyOf(type), [&] {
        return primitives::MakeReduction(
            ReduceKind::kMin, {type, type, kInt32}, kInt32,
            [](Value v, Value largest, Value i) {
              return Select(v == largest, i,
                            std::numeric_limits<int32_t>::max());
            },
            kInt32);
      }));
  TFPLUG_ASSIGN_OR_RETURN(const Operand elements,
                          ElementsOfWindows(launcher, windows, image));
  const int kept = output.rank;
  Operand largest = output;
  for (int d = kept; d < elements.rank; ++d) largest.AddDim(elements.dim(d), 0);
  TFPLUG_ASSIGN_OR_RETURN(const Operand position,
                          launcher.Allocate(kInt32, ir::DimsOf(output)));
  TFPLUG_RETURN_IF_ERROR(launcher.Reduce(
      *find, {elements, largest, PositionOf(elements, kept, 0, 1)},
      {position}));
  return position;
}

// Sums, for each element, the gradients of the windows that chose it.
inline absl::Status ComposeMaxPoolGradient(Launcher& launcher,
                                           const Windows& windows,
                                           const Operand& image,
                                           const Operand& output,
                                           const Operand& output_gradient,
                                           const Operand& image_gradient) {
  constexpr DataType kInt32 = DataType::kInt32;
  static primitives::Memo<Reduction> memo;
  const DataType type = image.type;
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const sum, memo.Get(primitives::KeyOf(type), [&] {
        return primitives::MakeReduction(
            ReduceKind::kSum, {type, kInt32, kInt32}, ComputeType(type),
            [](Value gradient, Value chosen, Value here) {
              return Select(chosen == here, gradient, 0);
            },
            type);
      }));
  TFPLUG_ASSIGN_OR_RETURN(const Operand position,
                          FindLargest(launcher, windows, image, output));
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand gradients,
      primitives::SpreadWindows(launcher, output_gradient, windows));
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand chosen,
      primitives::SpreadWindows(launcher, position, windows, -1));
  const auto spatial = static_cast<int>(windows.size());
  const Operand elements = primitives::WithWindowLast(gradients, spatial);
  int64_t count = 1;
  for (const Window& window : windows) count *= window.size;
  // Windows are reversed, so that positions count down.
  return launcher.Reduce(
      *sum,
      {elements, primitives::WithWindowLast(chosen, spatial),
       PositionOf(elements, image_gradient.rank, count - 1, -1)},
      {image_gradient});
}

// ---- Averages: elements outside the image do not count ----

// Returns the expression sum / number of elements of the window inside the
// image. Further inputs are, for each dimension: the start of the window, and
// the sizes of window and image. A dilated window counts its reach.
inline absl::StatusOr<Expression> MakeAverage(DataType sum, size_t spatial,
                                              DataType type) {
  ExpressionBuilder builder;
  const Value total = builder.Input(sum);
  Value count = builder.Constant(DataType::kInt64, int64_t{1});
  for (size_t i = 0; i < spatial; ++i) {
    const Value start = builder.Input(DataType::kInt64);
    const Value size = builder.Input(DataType::kInt64);
    const Value limit = builder.Input(DataType::kInt64);
    count = count * (Min(start + size, limit) - Max(start, 0));
  }
  builder.Output(total / Cast(count, total.type()), type);
  return std::move(builder).Build();
}

// Appends the further inputs of MakeAverage, for operands like `view` whose
// dimensions from 1 on are the output's.
inline void AddCounts(const Operand& view, const Windows& windows,
                      absl::InlinedVector<Operand, 4>& inputs) {
  int d = 0;
  for (const Window& window : windows) {
    Operand start = ir::IndexOf(view, ++d, -window.before);
    start.stride(d) = window.stride;
    inputs.push_back(start);
    for (int64_t value : {window.size, window.input}) {
      inputs.push_back(
          ir::ScalarOf(DataType::kInt64, static_cast<double>(value), view));
    }
  }
}

inline uint32_t AverageKey(DataType type, const Windows& windows) {
  return primitives::KeyOf(type) | static_cast<uint32_t>(windows.size()) << 8;
}

inline absl::Status ComposeAveragePool(Launcher& launcher,
                                       const Windows& windows,
                                       const Operand& image, Operand output) {
  static primitives::Memo<Reduction> memo;
  const DataType type = image.type, computed = ComputeType(type);
  TFPLUG_ASSIGN_OR_RETURN(
      const Reduction* const mean,
      memo.Get(AverageKey(type, windows), [&]() -> absl::StatusOr<Reduction> {
        TFPLUG_ASSIGN_OR_RETURN(const Reduction* const sum,
                                ReductionOf(ReduceKind::kSum, type, type));
        Reduction reduction = *sum;
        TFPLUG_ASSIGN_OR_RETURN(reduction.finish,
                                MakeAverage(computed, windows.size(), type));
        return reduction;
      }));
  TFPLUG_ASSIGN_OR_RETURN(const Operand padded,
                          primitives::Padded(launcher, image, windows, 0));
  const Operand elements = primitives::WithWindowLast(
      primitives::WindowsOf(padded, windows), static_cast<int>(windows.size()));
  absl::InlinedVector<Operand, 4> inputs = {elements};
  AddCounts(elements, windows, inputs);
  return launcher.Reduce(*mean, absl::MakeSpan(inputs),
                         absl::MakeSpan(&output, 1));
}

inline absl::Status ComposeAveragePoolGradient(Launcher& launcher,
                                               const Windows& windows,
                                               const Operand& output_gradient,
                                               const Operand& image_gradient) {
  static primitives::Memo<Expression> memo;
  // The shares of a gradient are not rounded before they are added.
  const DataType type = output_gradient.type, computed = ComputeType(type);
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const divide,
                          memo.Get(AverageKey(type, windows), [&] {
                            return MakeAverage(type, windows.size(), computed);
                          }));
  TFPLUG_ASSIGN_OR_RETURN(const Reduction* const sum,
                          ReductionOf(ReduceKind::kSum, computed, type));
  absl::InlinedVector<Operand, 4> inputs = {output_gradient};
  AddCounts(output_gradient, windows, inputs);
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand shares,
      launcher.Allocate(computed, ir::DimsOf(output_gradient)));
  Operand out = shares;
  TFPLUG_RETURN_IF_ERROR(
      launcher.Map(*divide, absl::MakeSpan(inputs), absl::MakeSpan(&out, 1)));
  TFPLUG_ASSIGN_OR_RETURN(const Operand elements,
                          primitives::SpreadWindows(launcher, shares, windows));
  return launcher.Reduce(
      *sum,
      {primitives::WithWindowLast(elements, static_cast<int>(windows.size()))},
      {image_gradient});
}

// ---- All pooling ----

TFPLUG_SEPARABLE absl::Status ComposePool(Launcher& launcher,
                                          const Pooling& pooling,
                                          const Operand& image,
                                          const Operand& output) {
  return pooling.kind == PoolKind::kMax
             ? ComposeMaxPool(launcher, pooling.windows, image, output)
             : ComposeAveragePool(launcher, pooling.windows, image, output);
}

TFPLUG_SEPARABLE absl::Status ComposePoolGradient(
    Launcher& launcher, const Pooling& pooling, const Operand& image,
    const Operand& output, const Operand& output_gradient,
    const Operand& image_gradient) {
  if (pooling.kind == PoolKind::kAverage) {
    return ComposeAveragePoolGradient(launcher, pooling.windows,
                                      output_gradient, image_gradient);
  }
  return ComposeMaxPoolGradient(launcher, pooling.windows, image, output,
                                output_gradient, image_gradient);
}

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_COMPOSED_POOL_H_
