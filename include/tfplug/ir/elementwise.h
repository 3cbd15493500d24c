// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_ELEMENTWISE_H_
#define TFPLUG_IR_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// The formulas of TensorFlow's element-wise ops, from which kernels and the
// pass FuseElementwise build their expressions.
namespace tfplug {

// A formula of an op, from its inputs to its outputs: a function of any number
// of Values or of a vector of them, which returns a Value or an array. Its last
// argument is the op's attribute, if that is a double or a bool.
class Formula {
 public:
  using Values = std::vector<Value>;

  // Accepts a function, or a lambda without captures.
  template <class F>
  Formula(F f) : Formula(+f) {}  // NOLINT: rows of tables are readable
  template <class R, class... A>
  Formula(R (*f)(A...))  // NOLINT
      : arity_((int{std::is_same_v<A, Value>} + ...)),
        call_([f](const Values& x, double attr) {
          return Call(f, std::index_sequence_for<A...>(), x, attr);
        }) {}

  // Returns the number of Values, or 0 if it may be any from 1 on.
  int arity() const { return arity_; }

  Values Outputs(const Values& inputs, double attr) const {
    return call_(inputs, attr);
  }
  // Returns the only output.
  Value operator()(const Values& inputs, double attr) const {
    return Outputs(inputs, attr)[0];
  }

 private:
  template <class R, class... A, size_t... i>
  static Values Call(R (*f)(A...), std::index_sequence<i...>, const Values& x,
                     double attr) {
    if constexpr (std::is_same_v<R, Value>) {
      return {f(Argument<A>(x, i, attr)...)};
    } else {
      const auto outputs = f(Argument<A>(x, i, attr)...);
      return Values(outputs.begin(), outputs.end());
    }
  }
  template <class A>
  static std::decay_t<A> Argument(const Values& x, size_t i, double attr) {
    if constexpr (std::is_same_v<A, Value>) {
      return x[i];
    } else if constexpr (std::is_same_v<A, const Values&>) {
      return x;
    } else {
      return static_cast<A>(attr);
    }
  }

  int arity_;
  std::function<Values(const Values&, double)> call_;
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
  // The types that TensorFlow computes in host memory, without a possible
  // failure, and that the backend can compute as well.
  uint64_t host_types = 0;
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
