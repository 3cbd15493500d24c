// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_REFERENCE_H_
#define TFPLUG_PRIMITIVES_REFERENCE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/internal/block_evaluator.h"

#pragma GCC visibility push(hidden)

// The required primitives as plain loops over host memory: the definition of
// their results, the oracle for the tests of every backend, and the kernels of
// a device whose memory the host can access.
namespace tfplug {
namespace primitives_internal {

inline Rows RowsOf(Operands operands, int inner) {
  Rows rows;
  for (const Operand& operand : operands) {
    const bool has_inner = inner >= 0 && inner < operand.rank;
    rows.push_back({&operand, 0, has_inner ? operand.stride(inner) : 0});
  }
  return rows;
}

// Calls block(begin, n) for pieces of a row of `size` elements.
template <class Block>
void ForEachBlock(int64_t size, Block block) {
  constexpr int64_t kBlock = BlockEvaluator::kBlock;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    block(begin, std::min(kBlock, size - begin));
  }
}

// Combines values of T. Sums and products of floats have twice the precision.
template <class T>
class Combiner {
 public:
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;

  Combiner(ReduceKind kind, DataType type) : kind_(kind) {
    const uint64_t bits = ReduceIdentity(kind, type);
    if constexpr (std::is_floating_point_v<T>) {
      std::memcpy(&identity_, &bits, sizeof(bits));
    } else {
      identity_ = static_cast<T>(bits);
    }
  }

  Total identity() const { return static_cast<Total>(identity_); }
  // Combines x[i] with total[i].
  void AddEach(int64_t n, const T* x, Total* total) const {
    Visit([&](auto combine) {
      for (int64_t i = 0; i < n; ++i) total[i] = combine(total[i], Total(x[i]));
    });
  }
  // Combines all of x with one total.
  void AddAll(int64_t n, const T* x, Total* total) const {
    Visit([&](auto combine) {
      Total all = *total;
      for (int64_t i = 0; i < n; ++i) all = combine(all, Total(x[i]));
      *total = all;
    });
  }

 private:
  template <class Use>
  void Visit(Use use) const {
    ir::VisitCombine<T>(kind_, use);
  }

  const ReduceKind kind_;
  std::conditional_t<std::is_floating_point_v<T>, double, T> identity_;
};

// One Reduce whose values are of type T.
template <class T>
class ReferenceReduce {
 public:
  ReferenceReduce(const Reduction& reduction, Operands inputs, Operands outputs)
      : inputs_(inputs.first(reduction.map.inputs().size())),
        finish_inputs_(inputs.subspan(inputs_.size())),
        outputs_(outputs),
        kept_(outputs[0].rank),
        rank_(inputs.empty() ? kept_ : inputs[0].rank),
        combiner_(reduction.kind, reduction.type()),
        map_(reduction.map),
        finish_(reduction.finish) {}

  void Run() {
    const int64_t kept_size = kept_ > 0 ? outputs_[0].dim(kept_ - 1) : 1;
    const int64_t reduced_size = rank_ > kept_ ? inputs_[0].dim(rank_ - 1) : 1;
    int64_t reduced = 1;
    for (int d = kept_; d < rank_; ++d) reduced *= inputs_[0].dim(d);
    // Blocks lie along the last kept dimension, or, if it is shorter, along
    // the last reduced one.
    along_kept_ = kept_ > 0 && kept_size >= reduced_size;
    const int inner = along_kept_ ? kept_ - 1 : rank_ - 1;
    Rows rows = RowsOf(inputs_, inner);
    Rows finish_rows = RowsOf(finish_inputs_, kept_ - 1);
    Rows out = RowsOf(outputs_, kept_ - 1);
    Rows results = finish_rows;
    results.insert(results.end(), out.begin(), out.end());
    const int64_t step = along_kept_ ? BlockEvaluator::kBlock : 1;
    Odometer outer(0, kept_ - 1);
    do {
      for (int64_t begin = 0; begin < kept_size; begin += step) {
        const int64_t n = std::min(step, kept_size - begin);
        std::fill_n(totals_, n, combiner_.identity());
        if (reduced > 0) AddElements(rows, begin, n, reduced_size);
        Finish(results, begin, n);
      }
    } while (outer.Next(absl::MakeSpan(rows), absl::MakeSpan(results)));
  }

 private:
  void AddElements(const Rows& rows, int64_t begin, int64_t n,
                   int64_t reduced_size) {
    Rows at = rows;
    if (along_kept_) {
      Odometer odometer(kept_, rank_);
      do {
        map_.Run(at, begin, n);
        combiner_.AddEach(n, static_cast<const T*>(map_.output(0)), totals_);
      } while (odometer.Next(absl::MakeSpan(at)));
      return;
    }
    if (kept_ > 0) {
      for (Row& row : at) {
        row.offset += begin * row.operand->stride(kept_ - 1);
      }
    }
    Odometer odometer(kept_, rank_ - 1);
    do {
      ForEachBlock(reduced_size, [&](int64_t first, int64_t size) {
        map_.Run(at, first, size);
        combiner_.AddAll(size, static_cast<const T*>(map_.output(0)), totals_);
      });
    } while (odometer.Next(absl::MakeSpan(at)));
  }

  void Finish(const Rows& results, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) values_[i] = static_cast<T>(totals_[i]);
    const Operand values = Operand::Dense(values_, DataTypeOf<T>(), {n});
    Rows rows = {{&values, -begin, 1}};
    rows.insert(
        rows.end(), results.begin(),
        results.begin() + static_cast<std::ptrdiff_t>(finish_inputs_.size()));
    finish_.Run(rows, begin, n);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      finish_.Store(k, results[finish_inputs_.size() + k], begin, n);
    }
  }

  const Operands inputs_, finish_inputs_, outputs_;
  const int kept_, rank_;
  const Combiner<T> combiner_;
  BlockEvaluator map_, finish_;
  bool along_kept_ = false;
  typename Combiner<T>::Total totals_[BlockEvaluator::kBlock];
  T values_[BlockEvaluator::kBlock];
};

}  // namespace primitives_internal

// Run the primitives Map and Reduce, as defined in backend.h.
inline void ReferenceMap(const Expression& expression, Operands inputs,
                         Operands outputs) {
  const int inner = outputs[0].rank - 1;
  const int64_t size = inner >= 0 ? outputs[0].dim(inner) : 1;
  primitives_internal::Rows from = primitives_internal::RowsOf(inputs, inner);
  primitives_internal::Rows to = primitives_internal::RowsOf(outputs, inner);
  primitives_internal::BlockEvaluator evaluator(expression);
  primitives_internal::Odometer outer(0, inner);
  do {
    primitives_internal::ForEachBlock(size, [&](int64_t begin, int64_t n) {
      evaluator.Run(from, begin, n);
      for (size_t k = 0; k < to.size(); ++k)
        evaluator.Store(k, to[k], begin, n);
    });
  } while (outer.Next(absl::MakeSpan(to), absl::MakeSpan(from)));
}

inline void ReferenceReduce(const Reduction& reduction, Operands inputs,
                            Operands outputs) {
  ir::VisitComputed(reduction.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    primitives_internal::ReferenceReduce<T>(reduction, inputs, outputs).Run();
  });
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_REFERENCE_H_
