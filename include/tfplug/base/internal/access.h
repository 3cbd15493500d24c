// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_ACCESS_H_
#define TFPLUG_BASE_INTERNAL_ACCESS_H_

#include <utility>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The only friend of the public classes. It gives tfplug's own code access to
// members that authors do not need. A class grants access with
//
//   friend struct internal::Access;
//
// Every function here except Construct is named after the private member that
// it accesses, so this file lists all the private members that other code uses.
// The functions are templates, because the headers of those classes include
// this one.
struct Access {
  // Calls a private constructor of T.
  template <class T, class... Args>
  static T Construct(Args&&... args) {
    return T(std::forward<Args>(args)...);
  }

  // ---- Allocator, Device, Stream, KernelContext, Node ----------------------

  template <class T>
  static auto& state(T& object) {
    return object.state_;
  }

  // ---- Kernel, AsyncKernel, ShapeInference, OpDef --------------------------

  template <class KernelBase>
  static auto& run_cache(KernelBase& kernel) {
    return kernel.run_cache_;
  }
  template <class KernelBase>
  static auto done_callback(const KernelBase& kernel) {
    return kernel.done_callback_;
  }
  template <class Inference>
  static bool hit_index_limit(const Inference& inference) {
    return inference.hit_index_limit_;
  }
  template <class Def>
  static int* declared_outputs(const Def& def) {
    return def.declared_outputs_;
  }

  // ---- Pattern, Matched, Replacement, Rule ---------------------------------

  template <class Pattern>
  static const auto& output(const Pattern& pattern) {
    return pattern.output_;
  }
  template <class Pattern>
  static auto operand(const Pattern& pattern) {
    return pattern.operand();
  }
  template <class Matched, class Output>
  static auto Find(const Matched& matched, const Output& output) {
    return matched.Find(output);
  }
  template <class Replacement>
  static const auto& source(const Replacement& replacement) {
    return replacement.source_;
  }
  template <class Rule>
  static auto& data(Rule& rule) {
    return rule.data_;
  }
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_ACCESS_H_
