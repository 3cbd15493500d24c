// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_STATUS_MACROS_H_
#define TFPLUG_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Opt-in: for authors whose own code base has no such macros.

// Returns the status of `expression` from the enclosing function unless it is
// OK.
#define TFPLUG_RETURN_IF_ERROR(expression)          \
  do {                                              \
    if (absl::Status tfplug_status_ = (expression); \
        ABSL_PREDICT_FALSE(!tfplug_status_.ok())) { \
      return tfplug_status_;                        \
    }                                               \
  } while (false)

// Evaluates `expression`, an absl::StatusOr; returns its status unless it is
// OK, else moves the value into `declaration`:
//
//   TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
//
// What the expression gave is gone again before `declaration` is initialised:
// that is why it is a statement within an expression, which g++ and clang have.
#define TFPLUG_ASSIGN_OR_RETURN(declaration, ...)     \
  declaration = __extension__({                       \
    auto tfplug_statusor_ = __VA_ARGS__;              \
    if (ABSL_PREDICT_FALSE(!tfplug_statusor_.ok())) { \
      return std::move(tfplug_statusor_).status();    \
    }                                                 \
    *std::move(tfplug_statusor_);                     \
  })

#endif  // TFPLUG_BASE_STATUS_MACROS_H_
