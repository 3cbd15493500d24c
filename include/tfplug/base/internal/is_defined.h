// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_IS_DEFINED_H_
#define TFPLUG_BASE_INTERNAL_IS_DEFINED_H_

#include <type_traits>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// True if T is defined, not only declared.
template <class T, class = void>
inline constexpr bool kIsDefined = false;
template <class T>
inline constexpr bool kIsDefined<T, std::void_t<decltype(sizeof(T))>> = true;

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_IS_DEFINED_H_
