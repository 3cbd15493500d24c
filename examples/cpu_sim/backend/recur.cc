// SPDX-License-Identifier: Apache-2.0
#include <tfplug/host/host.h>
#include <tfplug/ir/views.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "backend/loops.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Operand;
using tfplug::Operands;

// The rows that a thread takes through all steps.
constexpr int64_t kRowsOfBlock = 16;
// Larger factors do not stay in the cache of a processor from step to step.
constexpr int64_t kMostElements = int64_t{1} << 18;

bool IsFloatMatrix(const Operand& view) {
  const int column = view.rank - 1;
  return view.type == DataType::kFloat &&
         (view.dim(column) == 1 || view.stride(column) == 1);
}

// Returns rows [begin, end) of all steps.
DeviceViews RowsOf(Operands views, int64_t begin, int64_t end) {
  DeviceViews rows;
  for (const Operand& view : views) {
    rows.push_back(tfplug::ir::Range(view, 1, begin, end));
  }
  return rows;
}

// Runs all steps for some rows.
void RunSteps(const Operand& a, const Operand& b, const Operand& c,
              const tfplug::Expression& expression, Operands inputs,
              Operands outputs, int64_t begin, int64_t end) {
  const Operand product = tfplug::ir::Range(c, 0, begin, end);
  const Operand factors = tfplug::ir::Range(a, 1, begin, end);
  tfplug::HostMapSteps(Loops(), expression, RowsOf(inputs, begin, end),
                       RowsOf(outputs, begin, end), [&](int64_t t) {
                         const Operand factor = tfplug::ir::AtIndex(factors, t);
                         Gemm(end - begin, b.dim(1), b.dim(0),
                              {Floats(factor), factor.stride(0)},
                              {Floats(b), b.stride(0)}, Floats(product),
                              product.stride(0));
                       });
}

}  // namespace

absl::Status Backend::Recur(Stream& stream, tfplug::Launcher& launcher,
                            const Operand& a, const Operand& b,
                            const Operand& c,
                            const tfplug::Expression& expression,
                            Operands inputs, Operands outputs) {
  if (!IsFloatMatrix(a) || b.type != DataType::kFloat || !IsFloatMatrix(c) ||
      b.num_elements() > kMostElements) {
    return tfplug::Backend<Stream>::Recur(stream, launcher, a, b, c, expression,
                                          inputs, outputs);
  }
  // Each step multiplies by b: its rows are made neighbours in memory once, with a
  // distance that spreads them over the sets of a cache.
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand padded,
      launcher.Allocate(DataType::kFloat, {b.dim(0), b.dim(1) + kLanes}));
  const Operand rows_of_b = tfplug::ir::Range(padded, 1, 0, b.dim(1));
  TFPLUG_RETURN_IF_ERROR(Convert(launcher, b, rows_of_b));
  TFPLUG_ASSIGN_OR_RETURN(
      PackedViews packed,
      PackedViews::Make(stream, {{a, rows_of_b, c}, inputs, outputs}));
  return stream.LaunchTask(
      [expression, packed = std::move(packed), count = inputs.size()] {
        const DeviceViews views = packed.Unpack();
        const Operands operands = Operands(views).subspan(3);
        const int64_t rows = views[2].dim(0);
        const int64_t blocks = (rows + kRowsOfBlock - 1) / kRowsOfBlock;
        ForEachBlock(blocks, [&](int64_t block, int64_t) {
          RunSteps(views[0], views[1], views[2], expression,
                   operands.first(count), operands.subspan(count),
                   rows * block / blocks, rows * (block + 1) / blocks);
        });
      });
}

}  // namespace cpu_sim
