// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_OP_H_
#define TFPLUG_KERNEL_OP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tfplug/base/data_type.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/kernel_def.h"

#pragma GCC visibility push(hidden)

// The base of the generated typed ops. Include tfplug/ops/*.h instead.
namespace tfplug {
namespace kernel {

// Returns a set of types, in which bit i represents TF_DataType i.
template <class... DataTypes>
constexpr uint64_t SetOf(DataTypes... types) {
  return ((uint64_t{1} << static_cast<int>(types)) | ...);
}
// Returns whether all of Types are in the set.
template <class... Types>
constexpr bool Allows(uint64_t set) {
  static_assert(sizeof...(Types) > 0, "tfplug: name at least one type");
  return (((set & SetOf(DataTypeOf<Types>())) != 0) && ...);
}

}  // namespace kernel

// A KernelDef for one op of TensorFlow's registry, with names and types that
// the compiler checks. O (ops::SumOp) declares the op's names and a function
// that constrains each of its type attributes:
//
//   ops::Sum().T<float>().Tidx<int32_t, int64_t>().HostMemory(
//       ops::Sum::reduction_indices)
template <class O>
class Op : public O {
 public:
  Op() : def_(kName) {}

  // The op's name in TensorFlow.
  static constexpr const char* kName = kernel_internal::OpName<O>::kName.text;

  // Places the input or output `argument` in host memory.
  template <class E>
  Op HostMemory(E argument) && {
    if constexpr (CheckArgument<E>()) {
      def_ = std::move(def_).HostMemory(kernel_internal::NameOf(argument));
    }
    return std::move(*this);
  }

  // These functions are those of KernelDef.
  Op Device(std::string device_type) && {
    def_ = std::move(def_).Device(std::move(device_type));
    return std::move(*this);
  }
  Op Priority(int32_t priority) && {
    def_ = std::move(def_).Priority(priority);
    return std::move(*this);
  }
  Op Label(std::string label) && {
    def_ = std::move(def_).Label(std::move(label));
    return std::move(*this);
  }
  Op OnlyIf(bool (*condition)()) && {
    def_ = std::move(def_).OnlyIf(condition);
    return std::move(*this);
  }
  template <class... Types>
  Op TypeConstraint(const char* attr) && {
    def_ = std::move(def_).template TypeConstraint<Types...>(attr);
    return std::move(*this);
  }

  operator KernelDef() && { return std::move(def_); }

  // The type attributes that many ops share; O declares the types that it
  // allows. The other attributes are functions of O. (_SHARED in
  // codegen/emit_ops.py.)
#define TFPLUG_INTERNAL_TYPE_ATTR(attr)                            \
  template <class... Types>                                        \
  Op attr()&& {                                                    \
    return Constrain<typename O::TypesOf_##attr, Types...>(#attr); \
  }
  TFPLUG_INTERNAL_TYPE_ATTR(T)
  TFPLUG_INTERNAL_TYPE_ATTR(Tfilter)
  TFPLUG_INTERNAL_TYPE_ATTR(Tidx)
  TFPLUG_INTERNAL_TYPE_ATTR(Tin)
  TFPLUG_INTERNAL_TYPE_ATTR(Tindices)
  TFPLUG_INTERNAL_TYPE_ATTR(Tinput)
  TFPLUG_INTERNAL_TYPE_ATTR(Tout)
  TFPLUG_INTERNAL_TYPE_ATTR(dtype)
  TFPLUG_INTERNAL_TYPE_ATTR(out_type)
#undef TFPLUG_INTERNAL_TYPE_ATTR

 private:
  template <class Set, class... Types>
  Op Constrain(const char* attr) {
    Set::template Check<kernel::Allows<Types...>(Set::kSet)>();
    return std::move(*this).template TypeConstraint<Types...>(attr);
  }

  // Returns whether E enumerates inputs or outputs of this op; fails to compile
  // otherwise.
  template <class E>
  static constexpr bool CheckArgument() {
    if constexpr (!kernel_internal::IsOpEnum<E>()) {
      static_assert(kernel_internal::IsOpEnum<E>(),
                    "tfplug: HostMemory takes an input or output by its typed "
                    "name, such as ops::Sum::reduction_indices");
      return false;
    } else {
      constexpr std::string_view kKind = kernel_internal::kKind<E>;
      constexpr bool kIsArgument =
          kernel_internal::IsInput(kKind) || kernel_internal::IsOutput(kKind);
      constexpr bool kIsOurs =
          kernel_internal::ScopeOf(kernel_internal::SpellingOf<E>()) ==
          kernel_internal::SpellingOf<O>();
      static_assert(kIsArgument,
                    "tfplug: HostMemory takes an input or output of the op; "
                    "this is an attribute");
      static_assert(
          kIsOurs,
          "tfplug: this input or output belongs to another op, not to the "
          "kernel's");
      return kIsArgument && kIsOurs;
    }
  }

  KernelDef def_;
};

namespace kernel {

// Implements the functions in O that constrain a type attribute. `op` is the O
// inside an Op<O>.
template <class... Types, class O>
Op<O> Constrain(O* op, const char* attr) {
  return std::move(*static_cast<Op<O>*>(op))
      .template TypeConstraint<Types...>(attr);
}

}  // namespace kernel
}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_OP_H_
