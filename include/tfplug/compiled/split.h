// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_SPLIT_H_
#define TFPLUG_COMPILED_SPLIT_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/compiled/launch_plan.h"
#include "tfplug/compiled/matmul_source.h"
#include "tfplug/compiled/program.h"
#include "tfplug/compiled/reduce_source.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/elements.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

// Long sums in two stages: the sums of parts, which several groups compute, and
// the sum of these. Few long sums would occupy few groups of the device, and some
// devices limit the length. The parts do not depend on timing.
namespace tfplug::compiled_internal {

// How a device divides `depth` terms of each sum of a launch.
struct SumParts {
  int64_t count = 1;  // parts
  int64_t size = 0;   // terms of each
  int64_t rest = 0;   // terms of another part

  // A worker, a group or an independent item, computes `at_once` of the sums;
  // `least` is the depth of the smallest part that is worth one, and an item runs
  // `iterations` for all of the depth.
  SumParts(const Target& target, int64_t sums, int64_t at_once, int64_t depth,
           int64_t least, int64_t iterations) {
    // The sums that keep a device busy.
    const int64_t wanted = at_once * (target.RunsItemsInLoops()      ? 16
                                      : target.HasIndependentItems() ? 1024
                                                                     : 128);
    if (sums * 2 <= wanted && depth >= least * 4) {
      count = std::min(wanted / sums, depth / least);
    }
    if (iterations > target.most_iterations) {
      // A wrong limit is reported later (CheckTarget).
      const int64_t most = std::max<int64_t>(target.most_iterations, 1);
      count = std::max(count, iterations / most + 1);
    }
    count = std::min(count, depth);
    if (count <= 1) return;
    // Parts of equal size need no launch for the rest.
    for (int64_t n = count; n < 2 * count; ++n) {
      if (depth % n != 0) continue;
      count = n;
      break;
    }
    size = depth / count;
    count = depth / size;  // the rest is smaller than a part
    rest = depth - size * count;
  }

  int64_t all() const { return count + (rest > 0 ? 1 : 0); }

  // Return the parts, as a new dimension `to`, and the rest of dimension `d`,
  // with a new dimension of size 1.
  Operand Parts(const Operand& view, int d, int to) const {
    return ir::WithDim(ir::Range(view, d, 0, size), to, count,
                       size * view.stride(d));
  }
  Operand Rest(const Operand& view, int d, int to) const {
    return ir::WithDim(ir::Range(view, d, size * count, size * count + rest),
                       to, 1);
  }
};

// Allocates a temporary array of the sums of parts: of the dimensions of `like`,
// and then the parts, which are far from each other in memory.
inline absl::StatusOr<Operand> AllocateSums(Launcher& launcher, DataType type,
                                            const Operand& like,
                                            int64_t parts) {
  const int64_t sums = like.num_elements();
  TFPLUG_ASSIGN_OR_RETURN(const Operand memory,
                          launcher.Allocate(type, {parts, sums}));
  Operand view = Operand::Dense(memory.data, type, ir::DimsOf(like));
  view.AddDim(parts, sums);
  return view;
}

// Returns the parts of a Reduce, whose operands have been simplified. `dim`: the
// dimension to divide.
inline SumParts PartsOfReduce(const Target& target, const LaunchPlan& plan,
                              int* dim) {
  const int kept = plan.kept(), rank = plan.rank();
  const ReduceLaunch launch(target, plan);
  *dim = kept;
  for (int d = kept; d < rank; ++d) {
    if (plan.size(d) > plan.size(*dim)) *dim = d;
  }
  const int64_t depth =
      rank > kept && rank < kMaxViewRank ? plan.size(*dim) : 1;
  if (depth <= 1 || launch.reduced == 0) return {target, 1, 1, 1, 1, 0};
  const int64_t others = launch.reduced / depth, items = target.group_size,
                at_once = launch.variant == kReduceRow ? items
                          : launch.variant == kReduceTile
                              ? items / launch.columns
                              : 1,
                // Terms that are worth a group, or one item of it.
      worth = target.RunsItemsInLoops()      ? 1 << 18
              : target.HasIndependentItems() ? 512
                                             : 16 * at_once;
  return {target,
          launch.outputs,
          target.HasIndependentItems() ? 1 : launch.columns,
          depth,
          std::max<int64_t>(worth / others, 1),
          (launch.reduced + at_once - 1) / at_once};
}

// Computes a Reduce in parts of the dimension.
inline absl::Status ReduceInParts(Launcher& launcher, const SumParts& parts,
                                  int dim, const Reduction& reduction,
                                  Operands inputs, Operands outputs) {
  const size_t terms = reduction.map.inputs().size();
  const int kept = outputs[0].rank;
  const DataType type = reduction.type();
  TFPLUG_ASSIGN_OR_RETURN(
      const Operand sums,
      AllocateSums(launcher, type, outputs[0], parts.all()));
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const same,
                          primitives::ConversionOf(type, type));
  absl::InlinedVector<Operand, 4> in;
  const auto reduce_to = [&](int64_t begin, int64_t end) {
    Operand to = ir::Range(sums, kept, begin, end);
    return launcher.Reduce({reduction.kind, reduction.map, *same},
                           absl::MakeSpan(in), absl::MakeSpan(&to, 1));
  };
  for (const Operand& term : inputs.first(terms)) {
    in.push_back(parts.Parts(term, dim, kept));
  }
  TFPLUG_RETURN_IF_ERROR(reduce_to(0, parts.count));
  if (parts.rest > 0) {
    in.clear();
    for (const Operand& term : inputs.first(terms)) {
      in.push_back(parts.Rest(term, dim, kept));
    }
    TFPLUG_RETURN_IF_ERROR(reduce_to(parts.count, parts.all()));
  }
  in = {sums};
  for (Operand other : inputs.subspan(terms)) {
    other.rank = kept;
    in.push_back(other.AddDim(parts.all(), 0));
  }
  absl::InlinedVector<Operand, 4> out(outputs.begin(), outputs.end());
  return launcher.Reduce({reduction.kind, *same, reduction.finish},
                         absl::MakeSpan(in), absl::MakeSpan(out));
}

// Returns the parts of the inner dimension of a product.
inline SumParts PartsOfMatMul(const Target& target, const Operand& a,
                              const Operand& c) {
  const int m = c.rank - 2;
  const int64_t depth = a.dim(m + 1);
  if (c.rank + 2 > kMaxViewRank) return {target, 1, 1, 1, 1, 0};
  const MatMulTile tile(target, c.dim(m), c.dim(m + 1));
  const int64_t groups = ir::CountOf(c, 0, m) *
                         ((c.dim(m) + tile.rows - 1) / tile.rows) *
                         ((c.dim(m + 1) + tile.columns - 1) / tile.columns);
  const int items =
      target.HasIndependentItems() ? tile.items_down * tile.items_across : 1;
  return {target, groups * items, 1, depth, target.is_cpu ? 1024 : 128, depth};
}

// Computes c = a b in parts of the inner dimension.
inline absl::Status MultiplyInParts(Launcher& launcher, const SumParts& parts,
                                    const Operand& a, const Operand& b,
                                    const Operand& c) {
  const int m = c.rank - 2;
  const DataType type = ComputeType(c.type);
  TFPLUG_ASSIGN_OR_RETURN(const Operand sums,
                          AllocateSums(launcher, type, c, parts.all()));
  // The dimension of the parts is the last one of a batch.
  const auto to = [&](int64_t begin, int64_t end) {
    const Operand range = ir::Range(sums, c.rank, begin, end);
    return ir::WithDimLast(ir::WithDimLast(range, m), m);
  };
  TFPLUG_RETURN_IF_ERROR(launcher.MatMul(
      parts.Parts(a, m + 1, m), parts.Parts(b, m, m), to(0, parts.count)));
  if (parts.rest > 0) {
    TFPLUG_RETURN_IF_ERROR(launcher.MatMul(parts.Rest(a, m + 1, m),
                                           parts.Rest(b, m, m),
                                           to(parts.count, parts.all())));
  }
  static primitives::Memo<Reduction> memo;
  TFPLUG_ASSIGN_OR_RETURN(const Reduction* const sum,
                          memo.Get(primitives::KeyOf(type, c.type), [&] {
                            return primitives::MakeReduction(
                                ReduceKind::kSum, {type}, type,
                                [](Value x) { return x; }, c.type);
                          }));
  return launcher.Reduce(*sum, {sums}, {c});
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_SPLIT_H_
