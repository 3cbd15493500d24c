// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_BACKEND_H_
#define TFPLUG_HOST_HOST_BACKEND_H_

#include "tfplug/base/separate.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/synchronous_backend.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/host/internal/generic_host.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// HostMap and HostReduce of host.h with loops that are compiled for any processor.
TFPLUG_SEPARABLE void HostMap(const Expression& expression, Operands inputs,
                              Operands outputs);
TFPLUG_SEPARABLE void HostReduce(const Reduction& reduction, Operands inputs,
                                 Operands outputs);

// A backend of HostMap and HostReduce, for a synchronous stream.
template <class StreamT>
class HostBackend
    : public primitives::SynchronousBackend<StreamT, &HostMap, &HostReduce> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_BACKEND_H_
