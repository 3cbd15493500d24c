// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_VALUE_OR_LOG_H_
#define TFPLUG_DEVICE_INTERNAL_VALUE_OR_LOG_H_

#include "absl/status/statusor.h"
#include "tfplug/base/internal/guard.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Guards a slot that returns a value and has no TF_Status. Returns the value of
// `hook`, whose result is T or absl::StatusOr<T>. After a failure, which is
// logged if `is_logged` returns true, returns `otherwise`.
template <class T, class Hook, class IsLogged = internal::LogEach>
inline T ValueOrLog(const char* slot, T otherwise, Hook&& hook,
                    IsLogged&& is_logged = IsLogged()) {
  internal::GuardOrLog(
      slot, [&]() -> absl::StatusOr<T> { return hook(); },
      [&](T value) { otherwise = value; }, is_logged);
  return otherwise;
}

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_VALUE_OR_LOG_H_
