// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_GENERIC_HOST_H_
#define TFPLUG_HOST_INTERNAL_GENERIC_HOST_H_

#include "tfplug/base/separate.h"
#include "tfplug/host/host.h"
#include "tfplug/host/internal/code.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// Defines what host_backend.h declares.
namespace tfplug {

TFPLUG_SEPARABLE void HostMap(const Expression& expression, Operands inputs,
                              Operands outputs) {
  HostMap(host_internal::kGenericHostLoops, expression, inputs, outputs);
}
TFPLUG_SEPARABLE void HostReduce(const Reduction& reduction, Operands inputs,
                                 Operands outputs) {
  HostReduce(host_internal::kGenericHostLoops, reduction, inputs, outputs);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_GENERIC_HOST_H_
