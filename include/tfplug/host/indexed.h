// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INDEXED_H_
#define TFPLUG_HOST_INDEXED_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tfplug/host/combine.h"
#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/tiles.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

// Scatter, Scan and Sort for memory that the host can access.
namespace tfplug {
namespace host_internal {

constexpr Opcode OpcodeOf(ScatterKind kind) {
  return kind == ScatterKind::kAdd        ? Opcode::kAdd
         : kind == ScatterKind::kMultiply ? Opcode::kMul
         : kind == ScatterKind::kMax      ? Opcode::kMax
                                          : Opcode::kMin;
}

// Combines n dense elements with updates.
inline void HostScatterRow(const HostLoops& loops, ScatterKind kind,
                           DataType type, int64_t n, char* row,
                           const char* update) {
  constexpr int64_t kPiece = HostEvaluator::kTile;
  const auto size = static_cast<int64_t>(DataTypeSize(type));
  if (kind == ScatterKind::kSet) {
    std::memcpy(row, update, static_cast<size_t>(n * size));
    return;
  }
  const int computed = static_cast<int>(ComputeType(type));
  const int opcode = static_cast<int>(OpcodeOf(kind));
  if (computed == static_cast<int>(type)) {
    return loops.compute(opcode, computed, computed, n, row, row, update,
                         nullptr);
  }
  alignas(64) uint64_t a[kPiece], b[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t some = std::min(kPiece, n - i);
    const HostRows to = {row + i * size, some, 1};
    // Loops take addresses that are not const, because HostRows is for outputs
    // as well.
    const HostRows from = {const_cast<char*>(update) + i * size, some, 1};
    loops.load(static_cast<int>(type), 1, some, to, a);
    loops.load(static_cast<int>(type), 1, some, from, b);
    loops.compute(opcode, computed, computed, some, a, a, b, nullptr);
    loops.store(computed, static_cast<int>(type), 1, some, a, to);
  }
}

inline bool HasDenseRows(const Operand& view) {
  int64_t stride = 1;
  for (int d = view.rank; d-- > 1;) {
    if (view.dim(d) != 1 && view.stride(d) != stride) return false;
    stride *= view.dim(d);
  }
  return true;
}

}  // namespace host_internal

// Returns whether HostScatter supports the operands of Backend::Scatter.
inline bool HostScatterSupports(ScatterKind kind, const Operand& updates,
                                const Operand& output) {
  return host_internal::HasDenseRows(updates) &&
         host_internal::HasDenseRows(output) &&
         (kind == ScatterKind::kSet || output.type != DataType::kBool);
}

// Runs the primitive Scatter, for rows that are dense.
inline void HostScatter(const HostLoops& loops, ScatterKind kind,
                        const Operand& indices, const Operand& updates,
                        const Operand& output) {
  const auto size = static_cast<int64_t>(DataTypeSize(output.type));
  int64_t n = 1;
  for (int d = 1; d < output.rank; ++d) n *= output.dim(d);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t at = i * indices.stride(0);
    const int64_t row = indices.type == DataType::kInt64
                            ? static_cast<const int64_t*>(indices.data)[at]
                            : static_cast<const int32_t*>(indices.data)[at];
    if (row < 0 || row >= output.dim(0)) continue;
    host_internal::HostScatterRow(
        loops, kind, output.type, n,
        static_cast<char*>(output.data) + row * output.stride(0) * size,
        static_cast<const char*>(updates.data) + i * updates.stride(0) * size);
  }
}

// Runs the primitive Scan.
inline void HostScan(ReduceKind kind, const Operand& input,
                     const Operand& output) {
  using namespace host_internal;  // NOLINT
  const int axis = output.rank - 1;
  const int64_t n = output.dim(axis);
  const int64_t from_stride = input.stride(axis);
  const int64_t to_stride = output.stride(axis);
  HostCursors x = CursorsOf(absl::MakeConstSpan(&input, 1), -1, axis);
  HostCursors y = CursorsOf(absl::MakeConstSpan(&output, 1), -1, axis);
  HostOdometer outer(0, axis);
  do {
    ir::VisitStored(output.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ir::Computed<T>;
      const T* const from = reinterpret_cast<const T*>(x[0].data());
      T* const to = reinterpret_cast<T*>(y[0].data());
      ir::VisitCombine<C>(kind, [&](auto combine) {
        C total = static_cast<C>(from[0]);
        to[0] = from[0];
        for (int64_t i = 1; i < n; ++i) {
          total = combine(total, static_cast<C>(from[i * from_stride]));
          to[i * to_stride] = ir::Convert<T>(total);
        }
      });
    });
  } while (outer.Next(absl::MakeSpan(x), absl::MakeSpan(y)));
}

// Runs the primitive Sort.
inline void HostSort(const Operand& input, const Operand& values,
                     const Operand& indices) {
  using namespace host_internal;  // NOLINT
  const int axis = input.rank - 1;
  const int64_t n = input.dim(axis), k = values.dim(axis);
  const int64_t stride = input.stride(axis);
  const Operand outputs[] = {values, indices};
  HostCursors x = CursorsOf(absl::MakeConstSpan(&input, 1), -1, axis);
  HostCursors y = CursorsOf(outputs, -1, axis);
  std::vector<int32_t> order(static_cast<size_t>(n));
  HostOdometer outer(0, axis);
  do {
    ir::VisitStored(input.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ir::Computed<T>;
      const T* const from = reinterpret_cast<const T*>(x[0].data());
      const auto precedes = [&](int32_t a, int32_t b) {
        const C u = static_cast<C>(from[a * stride]);
        const C v = static_cast<C>(from[b * stride]);
        if (u > v || v > u) return u > v;
        if ((u != u) != (v != v)) return u != u;
        return a < b;
      };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                        precedes);
      for (int64_t i = 0; i < k; ++i) {
        const int32_t at = order[static_cast<size_t>(i)];
        reinterpret_cast<T*>(y[0].data())[i * y[0].stride] = from[at * stride];
        reinterpret_cast<int32_t*>(y[1].data())[i * y[1].stride] = at;
      }
    });
  } while (outer.Next(absl::MakeSpan(x), absl::MakeSpan(y)));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INDEXED_H_
