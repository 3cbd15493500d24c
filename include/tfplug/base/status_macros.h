// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_STATUS_MACROS_H_
#define TFPLUG_BASE_STATUS_MACROS_H_

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
#define TFPLUG_ASSIGN_OR_RETURN(declaration, ...)     \
  declaration = __extension__({                       \
    auto tfplug_statusor_ = __VA_ARGS__;              \
    if (ABSL_PREDICT_FALSE(!tfplug_statusor_.ok())) { \
      return std::move(tfplug_statusor_).status();    \
    }                                                 \
    *std::move(tfplug_statusor_);                     \
  })

#endif  // TFPLUG_BASE_STATUS_MACROS_H_
