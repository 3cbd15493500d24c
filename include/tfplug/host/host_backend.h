// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_BACKEND_H_
#define TFPLUG_HOST_HOST_BACKEND_H_

#include "absl/status/status.h"
#include "tfplug/host/host.h"
#include "tfplug/host/internal/code.h"
#include "tfplug/primitives/backend.h"

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

// A backend for memory that the host can access. It ignores the stream and
// computes immediately, so the stream must be synchronous.
template <class StreamT>
class HostBackend : public Backend<StreamT> {
 public:
  absl::Status Map(StreamT& /*stream*/, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    HostMap(expression, inputs, outputs);
    return absl::OkStatus();
  }
  absl::Status Reduce(StreamT& /*stream*/, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    HostReduce(reduction, inputs, outputs);
    return absl::OkStatus();
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_BACKEND_H_
