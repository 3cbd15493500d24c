// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_ELEMENTWISE_H_
#define TFPLUG_IR_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// The formulas of TensorFlow's element-wise ops, from which kernels and the
// pass FuseElementwise build their expressions.
namespace tfplug {

// A function of up to four Values, and of the op's float attribute if it ends
// in a double; or of any number of Values.
class Formula {
 public:
  template <class F>
  Formula(F f) {
    if constexpr (std::is_invocable_v<F, Value>) {
      one_ = f;
    } else if constexpr (std::is_invocable_v<F, Value, Value>) {
      two_ = f;
    } else if constexpr (std::is_invocable_v<F, Value, Value, Value>) {
      three_ = f;
    } else if constexpr (std::is_invocable_v<F, Value, Value, Value, Value>) {
      four_ = f;
    } else if constexpr (std::is_invocable_v<F, Value, double>) {
      one_and_attr_ = f;
    } else if constexpr (std::is_invocable_v<F, Value, Value, double>) {
      two_and_attr_ = f;
    } else {
      any_ = f;
    }
  }

  // Returns the number of Values, or 0 if it may be any from 1 on.
  int arity() const {
    return any_                    ? 0
           : one_ || one_and_attr_ ? 1
           : two_ || two_and_attr_ ? 2
           : three_                ? 3
                                   : 4;
  }

  Value operator()(const std::vector<Value>& x, double attr) const {
    if (any_) return any_(x);
    if (one_) return one_(x[0]);
    if (two_) return two_(x[0], x[1]);
    if (three_) return three_(x[0], x[1], x[2]);
    if (four_) return four_(x[0], x[1], x[2], x[3]);
    return one_and_attr_ ? one_and_attr_(x[0], attr)
                         : two_and_attr_(x[0], x[1], attr);
  }

 private:
  Value (*any_)(const std::vector<Value>&) = nullptr;
  Value (*one_)(Value) = nullptr;
  Value (*two_)(Value, Value) = nullptr;
  Value (*three_)(Value, Value, Value) = nullptr;
  Value (*four_)(Value, Value, Value, Value) = nullptr;
  Value (*one_and_attr_)(Value, double) = nullptr;
  Value (*two_and_attr_)(Value, Value, double) = nullptr;
};

// The shapes that the inputs of an element-wise op may have.
enum class Shapes {
  kBroadcast,  // NumPy's rules
  kEqual,
  kEqualSizes,      // as many elements; the output has the shape of input 0
  kEqualOrScalars,  // that of input 0, or scalars
  kBias,            // input 1 is a vector of the last dimension of input 0
};

// An op that computes each element of output 0 from the inputs' elements at the
// same index, after broadcasting.
struct ElementwiseOp {
  const char* name;
  // The types that TensorFlow's registry allows as attribute T; 0 if the op has
  // no such attribute and all tensors are bool.
  uint64_t types;
  Formula formula;
  const char* attr = nullptr;  // the float attribute of the formula
  Shapes shapes = Shapes::kBroadcast;
};

namespace ir {

// An op that FuseElementwise fuses. The result of the formula is converted to
// the type of the output, and is stored as bool if gives_bool, and otherwise as
// the attribute `type_attr`.
struct FusableOp {
  ElementwiseOp op;
  // The types that its kernels support, as bits of TF_DataType.
  uint64_t types;
  const char* type_attr;  // null if all tensors are bool
  bool gives_bool = false;
  // Whether it must be known that all inputs have the same shape.
  bool needs_equal_shapes = false;
};

// Returns the ops of the families that the library's backend lists. Filled
// while the library is loaded, before any pass or kernel runs.
inline std::vector<FusableOp>& FusableOps() {
  static auto* const ops = new std::vector<FusableOp>;
  return *ops;
}

}  // namespace ir
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_ELEMENTWISE_H_
