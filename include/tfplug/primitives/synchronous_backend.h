// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_SYNCHRONOUS_BACKEND_H_
#define TFPLUG_PRIMITIVES_SYNCHRONOUS_BACKEND_H_

#include "absl/status/status.h"
#include "tfplug/primitives/backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives {

// A backend of two functions on memory that the host can access. It ignores the
// stream and computes immediately, so the stream must be synchronous.
template <class StreamT, void (*kMap)(const Expression&, Operands, Operands),
          void (*kReduce)(const Reduction&, Operands, Operands)>
class SynchronousBackend : public Backend<StreamT> {
 public:
  absl::Status Map(StreamT& /*stream*/, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    kMap(expression, inputs, outputs);
    return absl::OkStatus();
  }
  absl::Status Reduce(StreamT& /*stream*/, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    kReduce(reduction, inputs, outputs);
    return absl::OkStatus();
  }
};

}  // namespace tfplug::primitives

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_SYNCHRONOUS_BACKEND_H_
