// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_LOOPS_H_
#define TFPLUG_IR_LOOPS_H_

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace ir_internal {

// The operands of one Map or Reduce. Outputs have the kept dimensions; inputs
// have these and, after them, the reduced ones.
class LoopNest {
 public:
  LoopNest(absl::Span<Operand> inputs, absl::Span<Operand> outputs)
      : inputs_(inputs),
        outputs_(outputs),
        kept_(outputs[0].rank),
        rank_(inputs.empty() ? outputs[0].rank : inputs[0].rank) {}

  bool is_empty() const {
    for (int d = 0; d < kept_; ++d) {
      if (outputs_[0].dim(d) == 0) return true;
    }
    return false;
  }

  void Simplify() {
    RemoveOnes();
    SortDims(0, kept_);
    SortDims(kept_, rank_);
    const int kept = MergeDims(0, kept_, 0);
    const int rank = MergeDims(kept_, rank_, kept);
    SetRank(kept, rank);
  }

 private:
  int64_t Size(int d) const {
    return d < kept_ ? outputs_[0].dim(d) : inputs_[0].dim(d);
  }
  // Calls visit for each operand that has dimension `d` until it returns false.
  template <class Visit>
  bool ForEach(int d, Visit visit) {
    if (d < kept_) {
      for (Operand& operand : outputs_) {
        if (!visit(operand)) return false;
      }
    }
    for (Operand& operand : inputs_) {
      if (!visit(operand)) return false;
    }
    return true;
  }
  void CopyDim(int from, int to) {
    ForEach(from, [&](Operand& operand) {
      operand.dim(to) = operand.dim(from);
      operand.stride(to) = operand.stride(from);
      return true;
    });
  }

  void RemoveOnes() {
    int kept = 0, rank = 0;
    for (int d = 0; d < rank_; ++d) {
      if (Size(d) == 1) continue;
      if (rank != d) CopyDim(d, rank);
      ++rank;
      if (d < kept_) ++kept;
    }
    SetRank(kept, rank);
  }

  // Sorts dimensions from the largest to the smallest stride of the first
  // operand in which they differ: memory is accessed in order.
  void SortDims(int begin, int end) {
    for (int d = begin + 1; d < end; ++d) {
      for (int k = d; k > begin && IsInside(k - 1, k); --k) {
        ForEach(k, [&](Operand& operand) {
          std::swap(operand.dim(k - 1), operand.dim(k));
          std::swap(operand.stride(k - 1), operand.stride(k));
          return true;
        });
      }
    }
  }
  // Returns whether dimension `a` has smaller strides than `b`.
  bool IsInside(int a, int b) {
    bool result = false;
    ForEach(a, [&](Operand& operand) {
      const auto magnitude = [&](int d) {
        const int64_t stride = operand.stride(d);
        return stride < 0 ? -stride : stride;
      };
      result = magnitude(a) < magnitude(b);
      return magnitude(a) == magnitude(b);
    });
    return result;
  }

  // Merges neighbours that all operands traverse as one dimension, and moves
  // the rest to `to`. Returns the end of the result.
  int MergeDims(int begin, int end, int to) {
    const int first = to;
    for (int d = begin; d < end; ++d) {
      const int64_t size = Size(d);
      const int last = to - 1;
      const bool merges =
          to > first && ForEach(d, [&](Operand& operand) {
            return operand.stride(last) == operand.stride(d) * size;
          });
      const int at = merges ? last : to++;
      ForEach(d, [&](Operand& operand) {
        operand.dim(at) = (merges ? operand.dim(last) : 1) * size;
        operand.stride(at) = operand.stride(d);
        return true;
      });
    }
    return to;
  }

  void SetRank(int kept, int rank) {
    kept_ = kept;
    rank_ = rank;
    for (Operand& operand : outputs_) operand.rank = kept;
    for (Operand& operand : inputs_) operand.rank = rank;
  }

  const absl::Span<Operand> inputs_, outputs_;
  int kept_, rank_;
};

}  // namespace ir_internal

// Brings the operands of a Map or a Reduce to the lowest rank, in place:
// removes dimensions of size 1, sorts them so that memory is accessed in order,
// and merges neighbours that are contiguous in all operands. All operands have
// the dimensions of outputs[0]; inputs may have further ones, which are reduced
// and stay behind the others. Returns false if the outputs have no elements.
inline bool SimplifyLoops(absl::Span<Operand> inputs,
                          absl::Span<Operand> outputs) {
  ir_internal::LoopNest nest(inputs, outputs);
  if (nest.is_empty()) return false;
  nest.Simplify();
  return true;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_LOOPS_H_
