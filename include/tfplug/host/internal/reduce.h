// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_REDUCE_H_
#define TFPLUG_HOST_INTERNAL_REDUCE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/tiles.h"
#include "tfplug/ir/reduction.h"

#pragma GCC visibility push(hidden)

namespace tfplug::host_internal {

// One Reduce. Up to kTile outputs are computed at a time, from tiles of the
// last kept and the last reduced dimension.
class HostReducer {
 public:
  HostReducer(const HostLoops& loops, const Reduction& reduction,
              Operands inputs, Operands outputs)
      : loops_(loops),
        reduction_(reduction),
        inputs_(inputs.first(reduction.map.inputs().size())),
        finish_inputs_(inputs.subspan(inputs_.size())),
        outputs_(outputs),
        kept_(outputs[0].rank),
        rank_(inputs.empty() ? kept_ : inputs[0].rank),
        kept_size_(kept_ > 0 ? outputs[0].dim(kept_ - 1) : 1),
        reduced_size_(rank_ > kept_ ? inputs[0].dim(rank_ - 1) : 1),
        along_kept_(IsAlongKept()),
        map_(loops, reduction.map),
        finish_(loops, reduction.finish) {}

  void Run() {
    const int last_kept = kept_ - 1;
    const int last_reduced = rank_ > kept_ ? rank_ - 1 : -1;
    const int inner = along_kept_ ? last_kept : last_reduced;
    const int row = along_kept_ ? last_reduced : last_kept;
    HostCursors x = CursorsOf(inputs_, row, inner);
    const int64_t row_size = along_kept_ ? reduced_size_ : kept_size_;
    const int64_t inner_size = along_kept_ ? kept_size_ : reduced_size_;
    tile_inner_ = std::min(inner_size, kTile);
    tile_rows_ = std::min(row_size, kTile / std::max<int64_t>(tile_inner_, 1));
    is_direct_ = IsDirect(x);
    bool is_empty = false;
    for (int d = kept_; d < rank_; ++d) is_empty |= inputs_[0].dim(d) == 0;
    if (!is_empty && !is_direct_) {
      map_.Start(
          x,
          ChangingOperands(inputs_,
                           [&](int d) {
                             return (d == inner && tile_inner_ == inner_size) ||
                                    (d == row && tile_rows_ == row_size);
                           }),
          {}, tile_rows_, tile_inner_, tile_inner_ == inner_size);
    }
    HostCursors results = CursorsOf(finish_inputs_, -1, last_kept);
    for (const HostCursor& y : CursorsOf(outputs_, -1, last_kept)) {
      results.push_back(y);
    }
    StartFinish(results);
    HostOdometer outer(0, last_kept);
    do {
      for (int64_t begin = 0; begin < kept_size_; begin += kTile) {
        const int64_t n = std::min(kTile, kept_size_ - begin);
        SetIdentity(n);
        if (!is_empty) {
          HostCursors at = x;
          MoveAll(x, along_kept_ ? 0 : begin, along_kept_ ? begin : 0,
                  absl::MakeSpan(at));
          tile_ = at;
          HostOdometer reduced(kept_, rank_ - 1);
          do {
            AddElements(at, n);
          } while (reduced.Next(absl::MakeSpan(at)));
        }
        Finish(results, begin, n);
      }
    } while (outer.Next(absl::MakeSpan(x), absl::MakeSpan(results)));
  }

 private:
  static constexpr int64_t kTile = HostEvaluator::kTile;

  DataType type() const { return reduction_.type(); }
  size_t size() const { return DataTypeSize(type()); }
  size_t total_size() const {
    return type() == DataType::kFloat ? sizeof(double) : size();
  }

  // Returns whether tiles lie along the last kept dimension: neighbours in
  // memory are neighbours in a tile.
  bool IsAlongKept() const {
    if (kept_ == 0 || rank_ == kept_) return kept_ > 0;
    for (const Operand& x : inputs_) {
      if (!x.has_memory()) continue;
      const int64_t kept = std::abs(x.stride(kept_ - 1));
      const int64_t reduced = std::abs(x.stride(rank_ - 1));
      if (kept != 0 && reduced != 0) return kept < reduced;
    }
    return kept_size_ >= reduced_size_;
  }

  // Returns whether the values are elements in memory.
  bool IsDirect(const HostCursors& x) const {
    if (!reduction_.map.is_copy() || !inputs_[0].has_memory()) return false;
    return x[0].stride == 1 || tile_inner_ == 1;
  }

  // Combines the elements of one index of the outer reduced dimensions.
  void AddElements(const HostCursors& at, int64_t n) {
    const int kind = static_cast<int>(reduction_.kind);
    const int number = static_cast<int>(type());
    const auto combine = [&](int64_t rows, int64_t size, const void* values,
                             int64_t stride, int64_t first) {
      char* const totals = totals_ + static_cast<size_t>(first) * total_size();
      (along_kept_ ? loops_.combine_rows : loops_.combine_each)(
          kind, number, rows, size, values, stride, totals);
    };
    const int64_t rows = along_kept_ ? reduced_size_ : n;
    const int64_t size = along_kept_ ? n : reduced_size_;
    if (is_direct_) {
      return combine(rows, size, at[0].data(), at[0].row_stride, 0);
    }
    for (int64_t r = 0; r < rows; r += tile_rows_) {
      const int64_t some_rows = std::min(tile_rows_, rows - r);
      for (int64_t i = 0; i < size; i += tile_inner_) {
        const int64_t some = std::min(tile_inner_, size - i);
        MoveAll(at, r, i, absl::MakeSpan(tile_));
        map_.Run(tile_, {}, some_rows, some);
        combine(some_rows, some, map_.output(0), some, along_kept_ ? i : r);
      }
    }
  }

  void StartFinish(absl::Span<const HostCursor> results) {
    values_ = Operand::Dense(totals_, type(), {kept_size_});
    const size_t inputs = finish_inputs_.size();
    HostCursors from = {{&values_, 0, 0, 1}};
    from.insert(from.end(), results.begin(), results.begin() + inputs);
    absl::InlinedVector<bool, 8> changing = {true};
    for (bool changes : ChangingOperands(finish_inputs_, [&](int d) {
           return d == kept_ - 1 && kept_size_ <= kTile;
         })) {
      changing.push_back(changes);
    }
    finish_.Start(from, changing, results.subspan(inputs), 1,
                  std::min(kept_size_, kTile), true);
  }

  void Finish(absl::Span<const HostCursor> results, int64_t begin, int64_t n) {
    if (type() == DataType::kFloat) {  // narrows the totals in place
      for (int64_t i = 0; i < n; ++i) {
        double total;
        std::memcpy(&total, totals_ + i * 8, sizeof(total));
        const auto value = static_cast<float>(total);
        std::memcpy(totals_ + i * 4, &value, sizeof(value));
      }
    }
    const size_t inputs = finish_inputs_.size();
    HostCursors moved(results.begin(), results.end());
    MoveAll(results, 0, begin, absl::MakeSpan(moved));
    HostCursors from = {{&values_, 0, 0, 1}};
    from.insert(from.end(), moved.begin(), moved.begin() + inputs);
    finish_.Run(from, absl::MakeConstSpan(moved).subspan(inputs), 1, n);
  }

  void SetIdentity(int64_t n) {
    uint64_t bits = ReduceIdentity(reduction_.kind, type());
    loops_.copy(static_cast<int>(total_size()), 1, n, {&bits, 0, 0},
                {totals_, n, 1});
  }

  const HostLoops& loops_;
  const Reduction& reduction_;
  const Operands inputs_, finish_inputs_, outputs_;
  const int kept_, rank_;
  const int64_t kept_size_, reduced_size_;
  const bool along_kept_;
  bool is_direct_ = false;
  int64_t tile_rows_ = 1, tile_inner_ = 1;
  HostCursors tile_;  // the inputs of map_
  HostEvaluator map_, finish_;
  Operand values_;
  alignas(64) char totals_[kTile * 8];
};

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_REDUCE_H_
