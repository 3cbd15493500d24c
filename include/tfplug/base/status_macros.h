// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_STATUS_MACROS_H_
#define TFPLUG_BASE_STATUS_MACROS_H_

#include <memory>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Optional macros, for authors whose code base has no such macros.

// Evaluates `expression`, an absl::Status. Unless it is OK, returns it from the
// enclosing function.
#define TFPLUG_RETURN_IF_ERROR(expression)          \
  do {                                              \
    if (absl::Status tfplug_status_ = (expression); \
        ABSL_PREDICT_FALSE(!tfplug_status_.ok())) { \
      return tfplug_status_;                        \
    }                                               \
  } while (false)

// Evaluates an expression of type absl::StatusOr. Returns its status from the
// enclosing function unless it is OK, otherwise moves the value into
// `declaration`:
//
//   TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
//
// The StatusOr is destroyed before `declaration` is initialized. The macro uses
// a statement expression, an extension of g++ and clang.
#define TFPLUG_ASSIGN_OR_RETURN(declaration, ...)             \
  declaration = __extension__({                               \
    ::tfplug::internal::Result tfplug_result_{__VA_ARGS__};   \
    if (ABSL_PREDICT_FALSE(!tfplug_result_.status_or.ok())) { \
      return tfplug_result_.TakeStatus();                     \
    }                                                         \
    tfplug_result_.TakeValue();                               \
  })

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Holds a StatusOr until either its status or its value is taken. There is then
// nothing left to destroy, but g++ would not inline the destructor of StatusOr.
template <class StatusOrT>
union Result {
  StatusOrT status_or;

  ~Result() {}

  [[gnu::always_inline]] auto TakeValue() {
    struct Destroy {
      typename StatusOrT::value_type& value;
      ~Destroy() { std::destroy_at(&value); }
    };
    Destroy destroy{*status_or};  // An OK status owns nothing.
    return std::move(destroy.value);
  }
  [[gnu::cold]] absl::Status TakeStatus() {
    absl::Status status = std::move(status_or).status();
    std::destroy_at(&status_or);
    return status;
  }
};
template <class StatusOrT>
Result(StatusOrT) -> Result<StatusOrT>;

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_STATUS_MACROS_H_
