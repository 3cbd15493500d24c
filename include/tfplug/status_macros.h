// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_STATUS_MACROS_H_
#define TFPLUG_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Opt-in: for authors whose own code base has no such macros.

// Returns the status of `expression` from the enclosing function unless it is
// OK.
#define TFPLUG_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (absl::Status tfplug_status_ = (expression); !tfplug_status_.ok()) { \
      return tfplug_status_;                                                \
    }                                                                       \
  } while (false)

// Evaluates `expression`, an absl::StatusOr; returns its status unless it is
// OK, else moves the value into `declaration`:
//
//   TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.input(0));
#define TFPLUG_ASSIGN_OR_RETURN(declaration, ...)                      \
  TFPLUG_INTERNAL_ASSIGN_OR_RETURN(                                    \
      TFPLUG_INTERNAL_CONCAT(tfplug_statusor_, __LINE__), declaration, \
      (__VA_ARGS__))

#define TFPLUG_INTERNAL_CONCAT_(a, b) a##b
#define TFPLUG_INTERNAL_CONCAT(a, b) TFPLUG_INTERNAL_CONCAT_(a, b)
#define TFPLUG_INTERNAL_ASSIGN_OR_RETURN(temporary, declaration, expression) \
  auto temporary = expression;                                               \
  if (!temporary.ok()) return std::move(temporary).status();                 \
  declaration = *std::move(temporary)

#endif  // TFPLUG_STATUS_MACROS_H_
