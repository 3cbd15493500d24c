// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_GUARD_H_
#define TFPLUG_BASE_INTERNAL_GUARD_H_

#if defined(__cpp_exceptions) && __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

// The error boundary between the author's C++ and TensorFlow's C. However a
// hook fails, TensorFlow receives an error in the TF_Status, or the failure
// value of the C function if it has no TF_Status, and never an exception.
// `slot` is the name of the C field, which begins the message.
namespace tfplug::internal {

#if defined(__cpp_exceptions)
#define TFPLUG_INTERNAL_TRY try
#define TFPLUG_INTERNAL_CATCH_ALL catch (...)
#else
#define TFPLUG_INTERNAL_TRY if constexpr (true)
#define TFPLUG_INTERNAL_CATCH_ALL else
#endif

// Describes the exception being handled, which is no std::exception.
[[gnu::cold, gnu::noinline]] inline std::string NameOfException() {
#if defined(__cpp_exceptions) && __has_include(<cxxabi.h>)
  if (const std::type_info* type = abi::__cxa_current_exception_type()) {
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr),
        &std::free);
    return std::string("type ") + (name != nullptr ? name.get() : type->name());
  }
#endif
  return "an unknown type";
}

// Converts the exception being handled to a status. The message is empty if
// there is not enough memory for it.
//
// It is noexcept, like the functions below that call it: if they could throw,
// each trampoline would save a register on its fast path to clean up after
// them. The exception with which glibc's pthread_exit unwinds the stack
// therefore aborts here, after a message: no thread of TensorFlow may end in a
// hook.
//
// The object of that exception does not exist: libstdc++ binds the reference to
// null, which sanitizers would report.
[[gnu::cold,
  gnu::noinline]] __attribute__((no_sanitize("null"))) inline absl::Status
CurrentException() noexcept {
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
      const char* const what = e.what();
      return absl::InternalError(std::string("C++ exception: ") +
                                 (what != nullptr ? what : "(no message)"));
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind&) {
      LogError("pthread_exit or pthread_cancel",
               "ended a thread inside a hook, which TensorFlow cannot survive; "
               "return an error from the hook instead");
      std::terminate();
#endif
    } catch (...) {
      return absl::InternalError("C++ exception of " + NameOfException());
    }
  } catch (...) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
#else
  return absl::InternalError("unreachable: built without exceptions");
#endif
}

// Prepends the name of the slot to the message of `status`.
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

// Writes `status` to `*to`, with the name of the slot. Without enough memory
// for the message, writes RESOURCE_EXHAUSTED and the slot alone.
[[gnu::cold, gnu::noinline]] inline void Fail(capi::TF_Status* to,
                                              const absl::Status& status,
                                              const char* slot) noexcept {
  TFPLUG_INTERNAL_TRY { SetStatus(to, Annotate(status, slot)); }
  TFPLUG_INTERNAL_CATCH_ALL {
    tensorflow.TF_SetStatus(to, capi::TF_RESOURCE_EXHAUSTED, slot);
  }
}

// Logs nothing if `slot` is null.
[[gnu::cold, gnu::noinline]] inline void LogFailure(
    const char* slot, const absl::Status& status) noexcept {
  if (slot == nullptr) return;
  TFPLUG_INTERNAL_TRY { LogError(slot, status); }
  TFPLUG_INTERNAL_CATCH_ALL { LogError(slot, "out of host memory"); }
}

// A trampoline (the static function in a C slot) contains one call of one of
// these functions for each kind of failure. The status is passed as an owning
// pointer: the address of a status in the trampoline's frame would occupy a
// register on the fast path.
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

// Holds the result of a hook, absl::Status or absl::StatusOr<T>, and does not
// destroy it: an OK result owns nothing, and an error is moved from.
template <class Result>
union Returned {
  Result result;

  template <class Hook>
  explicit Returned(Hook& hook) : result(hook()) {}
  ~Returned() {}
};

// Holds a value that a trampoline needs again after the hook. `volatile` forces
// it into a stack slot: the frame exists anyway for the result of the hook,
// while a callee-saved register would have to be saved first.
template <class T>
using StackSlot = volatile T;

struct DoNothing {
  void operator()() const {}
};

// Runs `hook`, which returns absl::Status, on a thread whose functions accept no
// exception, and returns an exception as a status.
template <class Hook>
absl::Status Guarded(Hook&& hook) noexcept {
  TFPLUG_INTERNAL_TRY { return hook(); }
  TFPLUG_INTERNAL_CATCH_ALL { return CurrentException(); }
}

// Runs `hook`, which returns absl::Status, for a slot with a TF_Status, and
// writes the result to `*status`. After a failure, calls `on_failure`, which
// must not throw.
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
  tensorflow.TF_SetStatus(kept, capi::TF_OK, "");  // a tail call
}

// Runs `hook`, which returns absl::Status, for a slot without a TF_Status.
// Returns whether it succeeded, and logs a failure.
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

struct LogEach {
  bool operator()() const { return true; }
};

// Does the same for a hook that returns absl::StatusOr<T>, and passes the T to
// `use`. `is_logged`, which must not throw, is called for each failure.
template <class Hook, class Use, class IsLogged = LogEach>
inline bool GuardOrLog(const char* slot, Hook&& hook, Use&& use,
                       IsLogged&& is_logged = IsLogged()) noexcept {
  using Result = decltype(hook());
  static_assert(std::is_trivially_destructible_v<typename Result::value_type>);
  TFPLUG_INTERNAL_TRY {
    Returned<Result> returned(hook);
    if (ABSL_PREDICT_TRUE(returned.result.ok())) {
      use(*returned.result);
      return true;
    }
    LogAndDelete(is_logged() ? slot : nullptr,
                 new absl::Status(std::move(returned.result).status()));
  }
  TFPLUG_INTERNAL_CATCH_ALL { LogException(is_logged() ? slot : nullptr); }
  return false;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_GUARD_H_
