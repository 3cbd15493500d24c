// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <tfplug/host/indexed.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/device_views.h"
#include "backend/loops.h"
#include "kernels/parallel.h"

namespace cpu_sim {
namespace {

using tfplug::Operand;
using tfplug::Operands;

// Returns the time for an element, in operations.
int64_t CostOf(const tfplug::Expression& expression) {
  constexpr int64_t kFunction = 8;
  int64_t cost = 1;
  for (const tfplug::Instruction& in : expression.instructions()) {
    const auto opcode = static_cast<size_t>(in.opcode);
    cost += tfplug::ir::kOpcodes[opcode].ulps > 1 ? kFunction : 1;
  }
  return cost;
}

// Calls run(views) for parts of one of the first `rank` dimensions, which all
// views have. There are `size` elements, which take `cost` each.
template <class Run>
void ForEachPart(const DeviceViews& views, int rank, int64_t size, int64_t cost,
                 Run run) {
  constexpr int64_t kAligned = 64;
  const int64_t piece = PieceOf(cost), wanted = size / piece;
  if (wanted < 2) return run(views);
  const Operand& any = views.back();
  int split = 0;  // the first dimension that is long enough, or the longest
  for (int d = 1; d < rank && any.dim(split) < wanted; ++d) {
    if (any.dim(d) > any.dim(split)) split = d;
  }
  if (split >= rank || any.dim(split) < 2) return run(views);
  const int64_t length = any.dim(split);
  int64_t part = std::max<int64_t>(1, piece * length / size);
  if (split == any.rank - 1) part = (part + kAligned - 1) / kAligned * kAligned;
  ForEachPiece(length, part, [&](int64_t begin, int64_t end, int64_t) {
    DeviceViews parts = views;
    for (Operand& view : parts) {
      view.Advance(begin * view.stride(split));
      view.dim(split) = end - begin;
    }
    run(parts);
  });
}

}  // namespace

absl::Status Backend::Map(Stream& stream, const tfplug::Expression& expression,
                          Operands inputs, Operands outputs) {
  TFPLUG_ASSIGN_OR_RETURN(PackedViews packed,
                          PackedViews::Make(stream, {inputs, outputs}));
  return stream.LaunchTask(
      [expression, packed = std::move(packed), count = inputs.size()] {
        const DeviceViews views = packed.Unpack();
        const Operand& output = views.back();
        ForEachPart(views, output.rank, output.num_elements(),
                    CostOf(expression), [&](Operands all) {
                      tfplug::HostMap(Loops(), expression, all.first(count),
                                      all.subspan(count));
                    });
      });
}

absl::Status Backend::Reduce(Stream& stream, const tfplug::Reduction& reduction,
                             Operands inputs, Operands outputs) {
  TFPLUG_ASSIGN_OR_RETURN(PackedViews packed,
                          PackedViews::Make(stream, {inputs, outputs}));
  return stream.LaunchTask(
      [reduction, packed = std::move(packed), count = inputs.size()] {
        const DeviceViews views = packed.Unpack();
        const Operand& largest = count > 0 ? views[0] : views.back();
        ForEachPart(views, views.back().rank, largest.num_elements(),
                    CostOf(reduction.map), [&](Operands all) {
                      tfplug::HostReduce(Loops(), reduction, all.first(count),
                                         all.subspan(count));
                    });
      });
}

absl::Status Backend::Scatter(Stream& stream, tfplug::Launcher& launcher,
                              tfplug::ScatterKind kind, const Operand& indices,
                              const Operand& updates, const Operand& output) {
  if (!tfplug::HostScatterSupports(kind, updates, output)) {
    return tfplug::Backend<Stream>::Scatter(stream, launcher, kind, indices,
                                            updates, output);
  }
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {indices, updates, output}));
  return stream.LaunchTask([kind, views] {
    tfplug::HostScatter(Loops(), kind, views[0], views[1], views[2]);
  });
}

absl::Status Backend::Scan(Stream& stream, tfplug::Launcher& /*launcher*/,
                           tfplug::ReduceKind kind, const Operand& input,
                           const Operand& output) {
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {input, output}));
  return stream.LaunchTask(
      [kind, views] { tfplug::HostScan(kind, views[0], views[1]); });
}

absl::Status Backend::Sort(Stream& stream, tfplug::Launcher& /*launcher*/,
                           const Operand& input, const Operand& values,
                           const Operand& indices) {
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {input, values, indices}));
  return stream.LaunchTask(
      [views] { tfplug::HostSort(views[0], views[1], views[2]); });
}

}  // namespace cpu_sim
