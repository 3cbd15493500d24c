// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_OPTIONALS_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_OPTIONALS_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Optionals, such as the result of Keras' train function. No plug-in can have a
// kernel that makes or reads one, so TensorFlow computes them on the CPU. It
// nevertheless places a function's result of that type on the device: each step
// of fit() copies the logs from the device to make the optional, back to the
// device to return it, and to the CPU again, after a wait for the whole device,
// to read it. With soft placement off, fit() fails.
namespace tfplug::internal {

inline constexpr char kPythonOptionals[] = R"py(
def keep_optionals_on_host():
  import functools
  from tensorflow.core.framework import attr_value_pb2
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_optional_ops as optionals

  def wrap(name, make_call):
    function = getattr(optionals, name, None)
    if function is not None and not hasattr(function, "tfplug"):
      call = functools.wraps(function)(make_call(function))
      call.tfplug = True
      setattr(optionals, name, call)

  def with_result(function):
    """TensorFlow places a function's result with the op that computes it, if that
    op is colocated with some op: here with itself."""
    def call(*args, **kwargs):
      optional = function(*args, **kwargs)
      if not isinstance(optional, ops.EagerTensor):
        op = optional.op
        if "_class" not in op.node_def.attr:
          op._set_attr("_class", attr_value_pb2.AttrValue(
              list=attr_value_pb2.AttrValue.ListValue(
                  s=[b"loc:@" + op.name.encode()])))
      return optional
    return call

  def where_it_is(function):
    """Runs an eager op on the device of the optional that it reads."""
    def call(optional, *args, **kwargs):
      if not isinstance(optional, ops.EagerTensor):
        return function(optional, *args, **kwargs)
      # In a worker of a cluster, a local device still has the name that it had
      # before the cluster was joined.
      device = optional.backing_device
      if "/job:localhost/" in device:
        device = device[device.index("/device:"):]
      with ops.device(device):
        return function(optional, *args, **kwargs)
    return call

  for name in ("optional_from_value", "optional_none"):
    wrap(name, with_result)
  for name in ("optional_has_value", "optional_get_value"):
    wrap(name, where_it_is)
)py";

// Makes functions in Python return optionals in host memory. Does nothing in a
// process without Python. TensorFlow must have been imported. Any thread;
// acquires Python's GIL.
inline absl::Status KeepOptionalsOnHost() {
  if (RunInPython(kPythonOptionals, "keep_optionals_on_host()")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python functions of optionals; Python printed "
      "the reason above. Keras' fit copies its logs three times in each step, "
      "and needs tf.config.set_soft_device_placement(True)");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_OPTIONALS_H_
