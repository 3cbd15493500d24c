// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_OVERRIDE_H_
#define TFPLUG_BASE_INTERNAL_OVERRIDE_H_

#include <type_traits>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether a class overrides a hook. The check is possible at compile
// time because the type of &D::Hook contains the class that defines Hook: D if
// D overrides Hook, otherwise a base class of D.
//
//   Overrides(&D::BlockHostUntilDone, &Base::BlockHostUntilDone)
template <class Derived, class Base>
constexpr bool Overrides(Derived, Base) {
  return !std::is_same_v<Derived, Base>;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_OVERRIDE_H_
