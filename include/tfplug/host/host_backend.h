// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_BACKEND_H_
#define TFPLUG_HOST_HOST_BACKEND_H_

#include "tfplug/host/host.h"
#include "tfplug/host/internal/code.h"
#include "tfplug/primitives/synchronous_backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// HostMap and HostReduce with loops that are compiled for any processor.
inline void HostMap(const Expression& expression, Operands inputs,
                    Operands outputs) {
  HostMap(host_internal::kGenericHostLoops, expression, inputs, outputs);
}
inline void HostReduce(const Reduction& reduction, Operands inputs,
                       Operands outputs) {
  HostReduce(host_internal::kGenericHostLoops, reduction, inputs, outputs);
}

// A backend of HostMap and HostReduce, for a synchronous stream.
template <class StreamT>
class HostBackend
    : public primitives::SynchronousBackend<StreamT, &HostMap, &HostReduce> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_BACKEND_H_
