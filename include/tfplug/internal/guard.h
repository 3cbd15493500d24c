// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GUARD_H_
#define TFPLUG_INTERNAL_GUARD_H_

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/internal/log.h"
#include "tfplug/status.h"

// The one error boundary between an author's C++ and core's C: whatever a hook
// does, core gets a filled TF_Status (or the slot's own way to say failure) and
// no exception. `slot` is the C name, for the message.
namespace tfplug::internal {

#if defined(__cpp_exceptions)
#define TFPLUG_INTERNAL_TRY try
#define TFPLUG_INTERNAL_CATCH_ALL catch (...)
#else
#define TFPLUG_INTERNAL_TRY if constexpr (true)
#define TFPLUG_INTERNAL_CATCH_ALL else
#endif

// Cold: the exception being handled, as a status.
[[gnu::cold, gnu::noinline]] inline absl::Status CurrentException() noexcept {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of host memory (std::bad_alloc)");
  } catch (const absl::BadStatusOrAccess& e) {
    return e.status();
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("C++ exception: ") + e.what());
  } catch (...) {
    return absl::InternalError("C++ exception of an unknown type");
  }
#else
  return absl::InternalError("unreachable: built without exceptions");
#endif
}

// Cold: `status` with the slot's name before the author's words.
[[gnu::cold, gnu::noinline]] inline absl::Status Annotate(
    const absl::Status& status, const char* slot) {
  std::string message(slot);
  message.append(": ").append(status.message().data(), status.message().size());
  absl::Status annotated(status.code(), message);
  status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    annotated.SetPayload(key, value);
  });
  return annotated;
}

[[gnu::cold, gnu::noinline]] inline void Fail(abi::TF_Status* to,
                                              const absl::Status& status,
                                              const char* slot) noexcept {
  TFPLUG_INTERNAL_TRY { SetStatus(to, Annotate(status, slot)); }
  TFPLUG_INTERNAL_CATCH_ALL {
    core.TF_SetStatus(to, abi::TF_RESOURCE_EXHAUSTED, slot);
  }
}

[[gnu::cold, gnu::noinline]] inline void LogFailure(
    const char* slot, const absl::Status& status) noexcept {
  TFPLUG_INTERNAL_TRY { LogError(slot, status); }
  TFPLUG_INTERNAL_CATCH_ALL { LogError(slot, "out of host memory"); }
}

// Slots with a TF_Status. `hook` returns absl::Status; the result says whether
// it was OK.
template <class Hook>
inline bool Guard(abi::TF_Status* status, const char* slot,
                  Hook&& hook) noexcept {
  TFPLUG_INTERNAL_TRY {
    const absl::Status result = std::forward<Hook>(hook)();
    if (ABSL_PREDICT_TRUE(result.ok())) {
      core.TF_SetStatus(status, abi::TF_OK, "");
      return true;
    }
    Fail(status, result, slot);
  }
  TFPLUG_INTERNAL_CATCH_ALL { Fail(status, CurrentException(), slot); }
  return false;
}

// Slots without a TF_Status. `hook` returns absl::Status; the result says
// whether it was OK, and what went wrong is in the log.
template <class Hook>
inline bool GuardOrLog(const char* slot, Hook&& hook) noexcept {
  TFPLUG_INTERNAL_TRY {
    const absl::Status result = std::forward<Hook>(hook)();
    if (ABSL_PREDICT_TRUE(result.ok())) return true;
    LogFailure(slot, result);
  }
  TFPLUG_INTERNAL_CATCH_ALL { LogFailure(slot, CurrentException()); }
  return false;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GUARD_H_
