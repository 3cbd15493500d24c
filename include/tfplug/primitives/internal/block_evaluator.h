// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_BLOCK_EVALUATOR_H_
#define TFPLUG_PRIMITIVES_INTERNAL_BLOCK_EVALUATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/scalar_code.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives_internal {

// The elements of an operand along one dimension.
struct Row {
  const Operand* operand;
  int64_t offset;  // of the first one, in elements
  int64_t stride;
};
using Rows = absl::InlinedVector<Row, 8>;

// Evaluates an expression on the host, for up to kBlock elements at a time: one
// instruction after the other, each in a loop over its registers.
class BlockEvaluator {
 public:
  static constexpr int64_t kBlock = 512;

  explicit BlockEvaluator(const Expression& expression)
      : expression_(expression),
        registers_(new uint64_t[static_cast<size_t>(expression.num_registers() *
                                                    kBlock)]) {
    const auto& all = expression.instructions();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].opcode != Opcode::kConstant) continue;
      FillScalar(all[i].type, all[i].bits, kBlock, registers(i));
    }
  }

  // Computes the values of `n` elements of the inputs, from element `begin` of
  // each row on.
  void Run(const Rows& inputs, int64_t begin, int64_t n) {
    const auto& all = expression_.instructions();
    for (size_t i = 0; i < all.size(); ++i) {
      switch (all[i].opcode) {
        case Opcode::kConstant:
          continue;
        case Opcode::kInput:
          Load(inputs[static_cast<size_t>(all[i].a)], begin, n, registers(i));
          continue;
        case Opcode::kElement:
          LoadElements(inputs[static_cast<size_t>(all[i].a)], begin, n,
                       static_cast<const int64_t*>(value(all[i].b)),
                       registers(i));
          continue;
        default:
          Compute(all[i], n, registers(i));
      }
    }
  }

  // Returns the values of output `k`, of type ComputeType(its type).
  const void* output(size_t k) const {
    return value(expression_.outputs()[k].value);
  }

  // Stores the values of output `k`.
  void Store(size_t k, const Row& to, int64_t begin, int64_t n) const {
    const DataType from = TypeOf(expression_.outputs()[k].value);
    ir::VisitStored(to.operand->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const y =
          static_cast<T*>(to.operand->data) + to.offset + begin * to.stride;
      ir::VisitComputed(from, [&](auto from_tag) {
        using From = typename decltype(from_tag)::type;
        const From* const x = static_cast<const From*>(output(k));
        if (to.stride == 1) {
          for (int64_t i = 0; i < n; ++i) y[i] = ir::Convert<T>(x[i]);
        } else {
          for (int64_t i = 0; i < n; ++i)
            y[i * to.stride] = ir::Convert<T>(x[i]);
        }
      });
    });
  }

 private:
  void* registers(size_t value) const {
    return registers_.get() + expression_.register_of(value) * kBlock;
  }
  const void* value(int32_t id) const {
    return registers(static_cast<size_t>(id));
  }
  DataType TypeOf(int32_t id) const {
    return ComputeType(
        expression_.instructions()[static_cast<size_t>(id)].type);
  }

  static void FillScalar(DataType type, uint64_t bits, int64_t n, void* y) {
    ir::VisitComputed(ComputeType(type), [&](auto tag) {
      using C = typename decltype(tag)::type;
      C value;
      if constexpr (std::is_floating_point_v<C>) {
        double real;
        std::memcpy(&real, &bits, sizeof(real));
        value = static_cast<C>(real);
      } else {
        value = static_cast<C>(bits);
      }
      std::fill_n(static_cast<C*>(y), n, value);
    });
  }

  static void Load(const Row& row, int64_t begin, int64_t n, void* y) {
    const Operand& operand = *row.operand;
    if (operand.kind == Operand::Kind::kScalar) {
      return FillScalar(operand.type, operand.scalar, n, y);
    }
    const int64_t stride = row.stride;
    const int64_t offset = row.offset + begin * stride;
    if (operand.kind == Operand::Kind::kIndex) {
      return ir::VisitComputed(ComputeType(operand.type), [&](auto tag) {
        using C = typename decltype(tag)::type;
        C* const to = static_cast<C*>(y);
        const int64_t first = static_cast<int64_t>(operand.scalar) + offset;
        for (int64_t i = 0; i < n; ++i)
          to[i] = static_cast<C>(first + i * stride);
      });
    }
    ir::VisitStored(operand.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ir::Computed<T>;
      C* const to = static_cast<C*>(y);
      const T* const x = static_cast<const T*>(operand.data) + offset;
      if (stride == 1) {
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(x[i]);
      } else if (stride == 0) {
        std::fill_n(to, n, static_cast<C>(*x));
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(x[i * stride]);
      }
    });
  }

  static void LoadElements(const Row& row, int64_t begin, int64_t n,
                           const int64_t* index, void* y) {
    const Operand& operand = *row.operand;
    ir::VisitStored(operand.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ir::Computed<T>;
      C* const to = static_cast<C*>(y);
      const T* const x =
          static_cast<const T*>(operand.data) + row.offset + begin * row.stride;
      for (int64_t i = 0; i < n; ++i) {
        const bool exists = index[i] >= 0 && index[i] < operand.axis_size;
        to[i] = exists ? static_cast<C>(
                             x[i * row.stride + index[i] * operand.axis_stride])
                       : C(0);
      }
    });
  }

  void Compute(const Instruction& in, int64_t n, void* y) const {
    const void* const a = value(in.a);
    if (in.opcode == Opcode::kSelect) return ChooseAll(in, n, y);
    if (in.opcode == Opcode::kBitcast) {
      std::memcpy(y, a, static_cast<size_t>(n) * DataTypeSize(in.type));
      return;
    }
    ir::VisitComputed(TypeOf(in.a), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const x = static_cast<const T*>(a);
      if (in.opcode == Opcode::kCast) {
        return ir::VisitStored(in.type, [&](auto to) {
          using To = typename decltype(to)::type;
          using C = ir::Computed<To>;
          ir::Each(n, static_cast<C*>(y), x,
                   [](T v) { return static_cast<C>(ir::Convert<To>(v)); });
        });
      }
      ir::Compute(in.opcode, n, y, x,
                  in.b < 0 ? nullptr : static_cast<const T*>(value(in.b)));
    });
  }

  void ChooseAll(const Instruction& in, int64_t n, void* y) const {
    const bool* const condition = static_cast<const bool*>(value(in.a));
    ir::VisitComputed(in.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const to = static_cast<T*>(y);
      const T* const b = static_cast<const T*>(value(in.b));
      const T* const c = static_cast<const T*>(value(in.c));
      for (int64_t i = 0; i < n; ++i) to[i] = condition[i] ? b[i] : c[i];
    });
  }

  const Expression& expression_;
  std::unique_ptr<uint64_t[]> registers_;
};

// Walks over the elements of the dimensions [begin, end) of some operands.
class Odometer {
 public:
  Odometer(int begin, int end) : begin_(begin), end_(end) {}

  // Moves the rows to the next element. Returns false after the last one, and
  // then the rows are at the first one again.
  template <class Row>
  bool Next(absl::Span<Row> rows, absl::Span<Row> more = {}) {
    for (int d = end_; d-- > begin_;) {
      int64_t& at = index_[static_cast<size_t>(d)];
      const int64_t size = (rows.empty() ? more : rows)[0].operand->dim(d);
      const bool stays = ++at < size;
      const int64_t steps = stays ? 1 : 1 - size;
      for (Row& row : rows) row.offset += steps * row.operand->stride(d);
      for (Row& row : more) row.offset += steps * row.operand->stride(d);
      if (stays) return true;
      at = 0;
    }
    return false;
  }

 private:
  const int begin_, end_;
  std::array<int64_t, kMaxViewRank> index_ = {};
};

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_BLOCK_EVALUATOR_H_
