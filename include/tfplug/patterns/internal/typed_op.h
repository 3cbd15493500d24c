// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_TYPED_OP_H_
#define TFPLUG_PATTERNS_INTERNAL_TYPED_OP_H_

#include <type_traits>
#include <utility>

#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/op.h"

#pragma GCC visibility push(hidden)

// Traits of typed ops (ops::MatMul, ...), with which patterns and replacements
// are checked at compile time.
namespace tfplug::patterns_internal {

template <class T>
inline constexpr bool kIsTypedOp = false;
template <class Names>
inline constexpr bool kIsTypedOp<Op<Names>> = true;

// Whether E, an enumeration of a typed op, belongs to O.
template <class E, class O>
struct IsEnumOf;
template <class E, class Names>
struct IsEnumOf<E, Op<Names>> {
  static constexpr bool kValue =
      kernel_internal::ScopeOf(kernel_internal::SpellingOf<E>()) ==
      kernel_internal::SpellingOf<Names>();
};
template <class E, class O>
constexpr bool BelongsTo() {
  return IsEnumOf<E, O>::kValue;
}

// The inputs that are neither lists nor references.
template <class O, class = void>
struct FixedInputs {
  static constexpr int kCount = 0;
};
template <class O>
struct FixedInputs<O, std::void_t<typename O::Inputs>> {
  static constexpr int kCount =
      kernel_internal::kEnumeratorCount<typename O::Inputs>;
};
template <class O, class = void>
inline constexpr bool kHasInputLists = false;
template <class O>
inline constexpr bool kHasInputLists<O, std::void_t<typename O::InputLists>> =
    true;
template <class O, class = void>
inline constexpr bool kHasRefInputs = false;
template <class O>
inline constexpr bool kHasRefInputs<O, std::void_t<typename O::RefInputs>> =
    true;

template <class O, class = void>
struct FixedOutputs {
  static constexpr int kCount = 0;
};
template <class O>
struct FixedOutputs<O, std::void_t<typename O::Outputs>> {
  static constexpr int kCount =
      kernel_internal::kEnumeratorCount<typename O::Outputs>;
};
template <class O, class = void>
inline constexpr bool kHasOutputLists = false;
template <class O>
inline constexpr bool kHasOutputLists<O, std::void_t<typename O::OutputLists>> =
    true;

// Returns whether `count` values can be the inputs of O.
template <class O>
constexpr bool TakesInputs(int count) {
  constexpr int kFixed = FixedInputs<O>::kCount;
  return kHasInputLists<O> || kHasRefInputs<O> ? count >= kFixed
                                               : count == kFixed;
}
template <class O>
constexpr bool HasManyOutputs() {
  return FixedOutputs<O>::kCount > 1 || kHasOutputLists<O>;
}

// Returns whether a V can be the value of an attribute of type T. Excludes the
// conversions of pointers to bool and of bool to numbers.
template <class V, class T>
constexpr bool IsAttrValue() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::is_arithmetic_v<V> &&
           std::is_same_v<V, bool> == std::is_same_v<T, bool>;
  } else {
    return std::is_convertible_v<V, T>;
  }
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_TYPED_OP_H_
