// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_BITS_H_
#define TFPLUG_OP_KERNELS_BITS_H_

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/ops/math.h"

#pragma GCC visibility push(hidden)

// Element-wise ops on the bits of numbers.
namespace tfplug {
namespace op_kernels_internal {

// PopulationCount: the number of bits that are 1.
class PopulationCountKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const DataType word =
        DataTypeSize(type) == 8 ? DataType::kUint64 : DataType::kUint32;
    TFPLUG_ASSIGN_OR_RETURN(
        count_, MakeExpression({type}, {DataType::kUint8}, [&](Value x) {
          // The loaded value has the sign of a narrow one.
          const auto bits = static_cast<int64_t>(8 * DataTypeSize(type));
          Value w = Cast(x, word);
          if (bits < 32) w = w & ((int64_t{1} << bits) - 1);
          const uint64_t ones =
              word == DataType::kUint64 ? 0x0101010101010101 : 0x01010101;
          const auto pattern = [&](uint64_t byte) {
            return w.Like(static_cast<int64_t>(byte * ones));
          };
          w = w - ((w >> 1) & pattern(0x55));
          w = (w & pattern(0x33)) + ((w >> 2) & pattern(0x33));
          w = (w + (w >> 4)) & pattern(0x0f);
          // The sum of the bytes is in the highest one.
          w = (w * pattern(0x01)) >> (word == DataType::kUint64 ? 56 : 24);
          return Cast(w, DataType::kUint32);
        }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return run.launcher().Map(count_, {x}, {y});
  }

 private:
  Expression count_;
};

// Returns the next number after x in the direction of y.
inline Value NextAfter(Value x, Value y) {
  const DataType word =
      x.type() == DataType::kDouble ? DataType::kInt64 : DataType::kInt32;
  const Value bits = Bitcast(x, word);
  // The bits of numbers of one sign are ordered as their sizes.
  const Value moved =
      Bitcast(Select((x < y) == (x > 0), bits + 1, bits - 1), x.type());
  const Value smallest = Bitcast(bits.Like(1), x.type());
  const Value from_zero = Select(y > 0, smallest, -smallest);
  const Value next = Select(x == y, y, Select(x == 0, from_zero, moved));
  return Select(IsNan(x) | IsNan(y), x + y, next);
}

}  // namespace op_kernels_internal

inline void BitsOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::PopulationCountKernel>(
      KernelDef("PopulationCount"), "T", kIntegerTypes);
  AddElementwiseOps(
      registrar, {Elementwise<ops::NextAfter>(op_kernels_internal::NextAfter)});
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_BITS_H_
