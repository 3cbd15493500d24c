// The computations of the device. tfplug makes the kernels of TensorFlow's ops
// from them.
#pragma once

#include "device.h"
#include "tfplug/host/host_backend.h"
#include "tfplug/primitives/backend.h"

namespace my_device {

// TODO: launch code of your device instead of computing on the host, and
// override the optional primitives, such as MatMul, for which it has libraries.
class Backend : public tfplug::Backend<Stream> {
 public:
  absl::Status Map(Stream&, const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override {
    tfplug::HostMap(expression, inputs, outputs);
    return absl::OkStatus();
  }
  absl::Status Reduce(Stream&, const tfplug::Reduction& reduction,
                      tfplug::Operands inputs,
                      tfplug::Operands outputs) override {
    tfplug::HostReduce(reduction, inputs, outputs);
    return absl::OkStatus();
  }
};

}  // namespace my_device
