// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_EVALUATOR_H_
#define TFPLUG_HOST_INTERNAL_EVALUATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/places.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

namespace tfplug::host_internal {

// A position in an operand, and the strides of the two dimensions that a tile
// covers.
struct HostCursor {
  const Operand* operand;
  int64_t offset;  // in elements
  int64_t row_stride;
  int64_t stride;

  int64_t OffsetOf(int64_t row, int64_t i) const {
    return offset + row * row_stride + i * stride;
  }
  char* data() const {
    return static_cast<char*>(operand->data) +
           offset * static_cast<int64_t>(DataTypeSize(operand->type));
  }
  HostRows rows() const { return {data(), row_stride, stride}; }
};
using HostCursors = absl::InlinedVector<HostCursor, 4>;

// Evaluates an expression for tiles of up to tile_size() elements: one
// instruction after the other, each in a loop over arrays; a comparison is
// computed with the instructions that use it, and a chain of arithmetic in one
// loop. Values are in registers, or where they are in memory already, so an
// expression of one instruction reads its inputs and writes its output without
// copies.
class HostEvaluator {
 public:
  static constexpr int64_t kTile = 512;

  HostEvaluator(const HostLoops& loops, const Expression& expression)
      : loops_(loops), expression_(expression), places_(expression) {}
  HostEvaluator(const HostEvaluator&) = delete;
  HostEvaluator& operator=(const HostEvaluator&) = delete;

  // Returns the most elements of a tile.
  int64_t tile_size() const {
    return places_.analysis().widest_value() <= 4 ? 2 * kTile : kTile;
  }

  // Must be called before Run, with cursors at the first tile, which must be
  // the largest. Inputs whose element in `changing` is false have the same
  // elements in all tiles, except that some tiles are smaller. `same_size`:
  // rows are equally long in all tiles, so that elements of a smaller one are
  // at the same places of a register.
  void Start(absl::Span<const HostCursor> inputs,
             absl::Span<const bool> changing,
             absl::Span<const HostCursor> outputs, int64_t rows, int64_t n,
             bool same_size) {
    same_size_ = same_size;
    const auto& all = expression_.instructions();
    const HostAnalysis& analysis = places_.analysis();
    places_.Start();
    const size_t num_fixed = static_cast<size_t>(
        std::count(changing.begin(), changing.end(), false));
    const size_t count =
        static_cast<size_t>(analysis.num_registers()) + num_fixed;
    if (count > kStackRegisters) {
      heap_.reset(new Register[count]);
      registers_ = heap_.get();
    }
    for (size_t i = 0; i < all.size(); ++i) {
      places_[i].data = RegisterData(analysis[i].register_index);
    }
    size_t next = static_cast<size_t>(analysis.num_registers());
    for (size_t i = 0; i < all.size(); ++i) {
      HostPlace& place = places_[i];
      const Instruction& in = all[i];
      if (in.opcode == Opcode::kConstant) {
        StartScalar(i, in.type, in.bits, rows * n);
      } else if (in.opcode == Opcode::kInput) {
        const size_t k = static_cast<size_t>(in.a);
        const Operand& operand = *inputs[k].operand;
        if (!places_.IsOneOfOutputs(i) &&
            (IsDirect(inputs[k], rows, n) || StartRows(i, inputs[k], n))) {
          place.kind = HostPlace::kMemory;
        } else if (!changing[k] &&
                   (same_size || rows == 1 || IsSingle(inputs[k]))) {
          place.data = RegisterData(static_cast<int>(next++));
          if (operand.kind == Operand::Kind::kScalar) {
            StartScalar(i, operand.type, operand.scalar, rows * n);
          } else {
            place.kind = HostPlace::kFixed;
            Load(inputs[k], rows, n, place.data);
          }
        }
      }
    }
    if (loops_.chain != nullptr) places_.FindChains();
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto i = static_cast<size_t>(expression_.outputs()[k].value);
      const Opcode opcode = all[i].opcode;
      if (opcode != Opcode::kConstant && opcode != Opcode::kInput &&
          places_[i].output < 0 && IsDirect(outputs[k], rows, n) &&
          places_.TypeOf(static_cast<int32_t>(i)) == outputs[k].operand->type &&
          i >= LastUseOf(outputs[k].operand->data, inputs)) {
        places_[i].output = static_cast<int>(k);
      }
    }
  }

  // Returns whether tiles may be larger than kTile, because no value is in a
  // register.
  bool needs_no_registers() const {
    for (const HostPlace& place : places_) {
      if (place.kind == HostPlace::kRegister && place.output < 0) return false;
      if (place.kind == HostPlace::kFixed) return false;
    }
    return true;
  }

  // Computes a tile: rows x n elements at the cursors.
  void Run(absl::Span<const HostCursor> inputs,
           absl::Span<const HostCursor> outputs, int64_t rows, int64_t n) {
    const auto& all = expression_.instructions();
    const int64_t size = rows * n;
    for (size_t i = 0; i < all.size(); ++i) {
      const Instruction& in = all[i];
      HostPlace& place = places_[i];
      if (place.kind == HostPlace::kFixed || place.kind == HostPlace::kSingle ||
          place.kind == HostPlace::kSkipped) {
        continue;
      }
      if (place.output >= 0) {
        place.data = outputs[static_cast<size_t>(place.output)].data();
      }
      switch (in.opcode) {
        case Opcode::kInput: {
          const HostCursor& from = inputs[static_cast<size_t>(in.a)];
          if (place.kind == HostPlace::kMemory) {
            place.data = from.data();
            place.row_stride = from.row_stride;
            place.stride = from.stride;
          } else {
            Load(from, rows, n, place.data);
          }
          break;
        }
        case Opcode::kElement: {
          const HostCursor& from = inputs[static_cast<size_t>(in.a)];
          const Operand& operand = *from.operand;
          loops_.select(static_cast<int>(operand.type), rows, n, from.rows(),
                        static_cast<const int64_t*>(value(in.b)),
                        operand.axis_size, operand.axis_stride, place.data);
          break;
        }
        default:
          if (place.chain >= 0) {
            RunChain(i, place, size);
            break;
          }
          if (place.comparison >= 0) {
            Compare(in, place, size);
            break;
          }
          if (in.b >= 0 && !(places_.IsDense(in.a) && places_.IsDense(in.b))) {
            ComputeRows(in, place, rows, n);
            break;
          }
          loops_.compute(static_cast<int>(in.opcode), static_cast<int>(in.type),
                         static_cast<int>(places_.TypeOf(in.a)), size,
                         place.data, value(in.a),
                         in.b < 0 ? nullptr : value(in.b),
                         in.c < 0 ? nullptr : value(in.c));
      }
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const int32_t id = expression_.outputs()[k].value;
      const HostPlace& place = places_[static_cast<size_t>(id)];
      if (place.output == static_cast<int>(k)) continue;
      loops_.store(static_cast<int>(places_.TypeOf(id)),
                   static_cast<int>(outputs[k].operand->type), rows, n,
                   place.data, outputs[k].rows());
    }
  }

  // Returns the values of output `k`, of the type in which it is computed.
  const void* output(size_t k) const {
    return value(expression_.outputs()[k].value);
  }

 private:
  // The addresses of registers differ in more than their highest bits, which
  // caches would not distinguish.
  struct alignas(64) Register {
    uint64_t values[kTile + 40];
  };
  static constexpr size_t kStackRegisters = 6;

  void* RegisterData(int i) { return registers_[i].values; }
  const void* value(int32_t id) const {
    return places_[static_cast<size_t>(id)].data;
  }
  // Computes a comparison and `in`, which uses it.
  void Compare(const Instruction& in, const HostPlace& place, int64_t n) const {
    const Instruction& by =
        expression_.instructions()[static_cast<size_t>(place.comparison)];
    const void *u = nullptr, *v = nullptr;
    if (in.opcode == Opcode::kSelect) {
      u = value(in.b);
      v = value(in.c);
    } else if (in.opcode == Opcode::kMul) {
      u = value(in.a == place.comparison + 1 ? in.b : in.a);
    }
    const HostLoops::Single single = !places_.IsDense(by.a) ? HostLoops::kA
                                     : !places_.IsDense(by.b)
                                         ? HostLoops::kB
                                         : HostLoops::kNone;
    loops_.compare(static_cast<int>(by.opcode), static_cast<int>(in.type),
                   single, n, place.data, value(by.a), value(by.b), u, v);
  }

  // Computes the chain of instructions that ends with the last one.
  void RunChain(size_t last, const HostPlace& place, int64_t n) const {
    HostStep steps[HostPlaces::kMaxSteps];
    int num_steps = 0;
    const void* x = nullptr;
    int32_t before = -1;
    for (auto i = static_cast<size_t>(place.chain); i <= last; ++i) {
      const Instruction& in = expression_.instructions()[i];
      if (in.opcode == Opcode::kConstant || in.opcode == Opcode::kInput) {
        continue;
      }
      if (num_steps == 0) {
        before = places_.IsDense(in.a) ? in.a : in.b;
        x = value(before);
      }
      HostStep& step = steps[num_steps++];
      step = {static_cast<int>(in.opcode), in.a != before, 0, nullptr};
      const int32_t other = step.swapped ? in.a : in.b;
      if (other >= 0 && places_.IsDense(other)) {
        step.b = static_cast<const float*>(value(other));
      } else if (other >= 0) {
        std::memcpy(&step.single, value(other), sizeof(step.single));
      }
      before = static_cast<int32_t>(i);
    }
    loops_.chain(steps, num_steps, n, static_cast<float*>(place.data),
                 static_cast<const float*>(x));
  }

  // Computes an instruction of which one operand is not dense.
  void ComputeRows(const Instruction& in, const HostPlace& place, int64_t rows,
                   int64_t n) const {
    const bool swapped = !places_.IsDense(in.a);
    const HostPlace& b = places_[static_cast<size_t>(swapped ? in.a : in.b)];
    if (b.row_stride == 0 && b.stride == 0) {
      n *= rows;
      rows = 1;
    }
    loops_.compute_rows(static_cast<int>(in.opcode), static_cast<int>(in.type),
                        swapped, rows, n, place.data,
                        value(swapped ? in.b : in.a),
                        {b.data, b.row_stride, b.stride});
  }

  // Returns the last instruction that uses an input with this memory: it, and
  // those after it, may overwrite the memory. A view that overlaps an output is
  // the same view.
  size_t LastUseOf(const void* data,
                   absl::Span<const HostCursor> inputs) const {
    const auto& all = expression_.instructions();
    size_t last = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Opcode opcode = all[i].opcode;
      if (opcode != Opcode::kInput && opcode != Opcode::kElement) continue;
      const Operand& operand = *inputs[static_cast<size_t>(all[i].a)].operand;
      if (operand.has_memory() && operand.data == data) {
        last = std::max(last, opcode == Opcode::kInput
                                  ? places_.analysis()[i].last_use
                                  : i);
      }
    }
    return last;
  }

  // Prepares a value that is the same for all elements.
  void StartScalar(size_t i, DataType type, uint64_t bits, int64_t n) {
    HostPlace& place = places_[i];
    if (IsFloat(ComputeType(type)) &&
        places_.CanBeRows(i, /*is_single=*/true)) {
      place.kind = HostPlace::kSingle;
      place.is_dense = false;
      place.single = BitsOf(type, bits);
      place.data = &place.single;
      return;
    }
    place.kind = HostPlace::kFixed;
    Fill(type, bits, n, place.data);
  }

  // Prepares an input that is broadcast along one of the tile's dimensions or
  // both. Returns false if it must be copied to a register.
  bool StartRows(size_t i, const HostCursor& cursor, int64_t n) {
    constexpr int64_t kShortest = 16;  // a loop over fewer elements is slow
    const Operand& operand = *cursor.operand;
    const bool is_single = IsSingle(cursor);
    if (!operand.has_memory() || operand.type != ComputeType(operand.type) ||
        !IsFloat(operand.type) || cursor.stride < 0 || cursor.stride > 1 ||
        (!is_single && n < kShortest) || !places_.CanBeRows(i, is_single)) {
      return false;
    }
    places_[i].is_dense = false;
    places_[i].row_stride = cursor.row_stride;
    places_[i].stride = cursor.stride;
    return true;
  }

  // Returns whether all elements of a tile are the same one.
  static bool IsSingle(const HostCursor& cursor) {
    return cursor.operand->kind == Operand::Kind::kScalar ||
           (cursor.row_stride == 0 && cursor.stride == 0);
  }

  // Returns whether a tile is an array in memory, of the type it is computed
  // in.
  bool IsDirect(const HostCursor& cursor, int64_t rows, int64_t n) const {
    const Operand& operand = *cursor.operand;
    return operand.has_memory() && operand.type == ComputeType(operand.type) &&
           (cursor.stride == 1 || n == 1) &&
           (rows == 1 || (same_size_ && cursor.row_stride == n));
  }

  // Returns the bits of a constant as its type is computed in.
  static uint64_t BitsOf(DataType type, uint64_t bits) {
    const DataType computed = ComputeType(type);
    uint64_t value = bits;  // its first bytes are the value
    if (IsFloat(computed)) {
      double real;
      std::memcpy(&real, &bits, sizeof(real));
      if (computed == DataType::kFloat) {
        const auto number = static_cast<float>(real);
        std::memcpy(&value, &number, sizeof(number));
      }
    } else if (computed == DataType::kBool) {
      value = bits != 0 ? 1 : 0;
    }
    return value;
  }

  // Writes n equal values.
  void Fill(DataType type, uint64_t bits, int64_t n, void* y) const {
    uint64_t value = BitsOf(type, bits);
    loops_.copy(static_cast<int>(DataTypeSize(ComputeType(type))), 1, n,
                {&value, 0, 0}, {y, n, 1});
  }

  void Load(const HostCursor& from, int64_t rows, int64_t n, void* y) const {
    const Operand& operand = *from.operand;
    switch (operand.kind) {
      case Operand::Kind::kScalar:
        return Fill(operand.type, operand.scalar, rows * n, y);
      case Operand::Kind::kIndex:
        return LoadIndices(from, rows, n, y);
      default:
        return loops_.load(static_cast<int>(operand.type), rows, n, from.rows(),
                           y);
    }
  }

  static void LoadIndices(const HostCursor& from, int64_t rows, int64_t n,
                          void* y) {
    const int64_t first =
        static_cast<int64_t>(from.operand->scalar) + from.offset;
    const auto load = [&](auto* to) {
      using T = std::remove_pointer_t<decltype(to)>;
      for (int64_t r = 0; r < rows; ++r, to += n) {
        const int64_t begin = first + r * from.row_stride;
        for (int64_t i = 0; i < n; ++i) {
          to[i] = static_cast<T>(begin + i * from.stride);
        }
      }
    };
    switch (ComputeType(from.operand->type)) {
      case DataType::kFloat:
        return load(static_cast<float*>(y));
      case DataType::kDouble:
        return load(static_cast<double*>(y));
      case DataType::kInt32:
      case DataType::kUint32:
        return load(static_cast<uint32_t*>(y));
      default:
        return load(static_cast<uint64_t*>(y));
    }
  }

  Register stack_[kStackRegisters];
  const HostLoops& loops_;
  const Expression& expression_;
  bool same_size_ = false;
  HostPlaces places_;
  std::unique_ptr<Register[]> heap_;
  Register* registers_ = stack_;
};

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_EVALUATOR_H_
