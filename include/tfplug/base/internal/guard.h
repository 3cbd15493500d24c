// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_GUARD_H_
#define TFPLUG_BASE_INTERNAL_GUARD_H_

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/status.h"

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

// Cold: the exception being handled, as a status. Where there is no memory even
// for the words, one without words, which needs none.
[[gnu::cold, gnu::noinline]] inline absl::Status CurrentException() noexcept {
#if defined(__cpp_exceptions)
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(
          "out of host memory (std::bad_alloc)");
    } catch (const absl::BadStatusOrAccess& e) {
      return e.status();
    } catch (const std::exception& e) {
      return absl::InternalError(std::string("C++ exception: ") + e.what());
    } catch (...) {
      return absl::InternalError("C++ exception of an unknown type");
    }
  } catch (...) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
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

[[gnu::cold, gnu::noinline]] inline void Fail(capi::TF_Status* to,
                                              const absl::Status& status,
                                              const char* slot) noexcept {
  TFPLUG_INTERNAL_TRY { SetStatus(to, Annotate(status, slot)); }
  TFPLUG_INTERNAL_CATCH_ALL {
    tensorflow.TF_SetStatus(to, capi::TF_RESOURCE_EXHAUSTED, slot);
  }
}

[[gnu::cold, gnu::noinline]] inline void LogFailure(
    const char* slot, const absl::Status& status) noexcept {
  TFPLUG_INTERNAL_TRY { LogError(slot, status); }
  TFPLUG_INTERNAL_CATCH_ALL { LogError(slot, "out of host memory"); }
}

// What a trampoline itself holds of failure: one call of one of these. An
// `owned` status comes in a register, not as an address in the trampoline's
// frame, which would take a register from the way of success.
[[gnu::cold, gnu::noinline]] inline void FailWith(capi::TF_Status* to,
                                                  const absl::Status* owned,
                                                  const char* slot) noexcept {
  Fail(to, *owned, slot);
  delete owned;
}
[[gnu::cold, gnu::noinline]] inline void FailWithException(
    capi::TF_Status* to, const char* slot) noexcept {
  Fail(to, CurrentException(), slot);
}
[[gnu::cold, gnu::noinline]] inline void LogAndDelete(
    const char* slot, const absl::Status* owned) noexcept {
  LogFailure(slot, *owned);
  delete owned;
}
[[gnu::cold, gnu::noinline]] inline void LogException(
    const char* slot) noexcept {
  LogFailure(slot, CurrentException());
}

// What a hook returned, absl::Status or absl::StatusOr<T>. Not destroyed: where
// it is OK it owns nothing, elsewhere its status has been moved from.
template <class Result>
union Returned {
  Result result;

  template <class Hook>
  explicit Returned(Hook& hook) : result(hook()) {}
  ~Returned() {}
};

// For what a trampoline needs again after the hook. Volatile is: in the frame.
// That is there anyway for what the hook may return, while a register would
// have to be saved first.
template <class T>
using StackSlot = volatile T;

struct DoNothing {
  void operator()() const {}
};

// Slots with a TF_Status. `hook` returns absl::Status; after one that is not OK
// comes `on_failure`, which does not throw.
template <class Hook, class OnFailure = DoNothing>
inline void Guard(capi::TF_Status* status, const char* slot, Hook&& hook,
                  OnFailure&& on_failure = OnFailure()) {
  const StackSlot<capi::TF_Status*> kept = status;
  TFPLUG_INTERNAL_TRY {
    Returned<absl::Status> returned(hook);
    if (ABSL_PREDICT_FALSE(!returned.result.ok())) {
      FailWith(kept, new absl::Status(std::move(returned.result)), slot);
      return on_failure();
    }
  }
  TFPLUG_INTERNAL_CATCH_ALL {
    FailWithException(kept, slot);
    return on_failure();
  }
  tensorflow.TF_SetStatus(kept, capi::TF_OK, "");  // last: it becomes a jump
}

// Slots without a TF_Status. `hook` returns absl::Status; the result says
// whether it was OK, and what went wrong is in the log.
template <class Hook>
inline bool GuardOrLog(const char* slot, Hook&& hook) noexcept {
  TFPLUG_INTERNAL_TRY {
    Returned<absl::Status> returned(hook);
    if (ABSL_PREDICT_TRUE(returned.result.ok())) return true;
    LogAndDelete(slot, new absl::Status(std::move(returned.result)));
  }
  TFPLUG_INTERNAL_CATCH_ALL { LogException(slot); }
  return false;
}

// The same for a hook that returns absl::StatusOr<T>: `use` gets the T.
template <class Hook, class Use>
inline bool GuardOrLog(const char* slot, Hook&& hook, Use&& use) noexcept {
  using Result = decltype(hook());
  static_assert(std::is_trivially_destructible_v<typename Result::value_type>);
  TFPLUG_INTERNAL_TRY {
    Returned<Result> returned(hook);
    if (ABSL_PREDICT_TRUE(returned.result.ok())) {
      use(*returned.result);
      return true;
    }
    LogAndDelete(slot, new absl::Status(std::move(returned.result).status()));
  }
  TFPLUG_INTERNAL_CATCH_ALL { LogException(slot); }
  return false;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_GUARD_H_
