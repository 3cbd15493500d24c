// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_BACKEND_H_
#define TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_BACKEND_H_

#include "reference_device.h"
#include "tfplug/primitives/backend.h"
#include "tfplug/primitives/reference.h"

namespace reference {

// All that the author of a device supplies for its kernels.
class Backend : public tfplug::Backend<Stream> {
 public:
  absl::Status Map(Stream&, const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override {
    tfplug::ReferenceMap(expression, inputs, outputs);
    return absl::OkStatus();
  }
  absl::Status Reduce(Stream&, const tfplug::Reduction& reduction,
                      tfplug::Operands inputs,
                      tfplug::Operands outputs) override {
    tfplug::ReferenceReduce(reduction, inputs, outputs);
    return absl::OkStatus();
  }
};

}  // namespace reference

#endif  // TFPLUG_TESTS_TENSORFLOW_PLUGINS_REFERENCE_BACKEND_H_
