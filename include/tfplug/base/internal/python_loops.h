// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_LOOPS_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_LOOPS_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Loops that TensorFlow's Python code makes with functional_ops.While, such as
// those of tf.nn.ctc_loss. TensorFlow marks its other loops for lowering, so
// that they become part of the graph. An op While calls two functions in each
// iteration, copies the condition to the device, and waits for the whole device
// to read it.
namespace tfplug::internal {

inline constexpr char kPythonLoops[] = R"py(
def lower_loops():
  import functools
  from tensorflow.python.eager import context
  from tensorflow.python.ops import control_flow_util_v2
  from tensorflow.python.ops import functional_ops

  function = functional_ops.While
  if hasattr(function, "tfplug"):
    return

  @functools.wraps(function)
  def call(*args, **kwargs):
    results = function(*args, **kwargs)
    if results and not context.executing_eagerly():
      op = results[0].op
      if op.type == "While" and "device:CPU" not in op.device:
        control_flow_util_v2.maybe_set_lowering_attr(op)
    return results

  call.tfplug = True
  functional_ops.While = call
)py";

// Marks these loops for lowering, too. Does nothing in a process without
// Python. TensorFlow must have been imported. Any thread; acquires Python's
// GIL.
inline absl::Status LowerLoops() {
  if (RunInPython(kPythonLoops, "lower_loops()")) return absl::OkStatus();
  return absl::InternalError(
      "cannot wrap TensorFlow's Python function of loops; Python printed the "
      "reason above. tf.nn.ctc_loss waits for the device in each iteration");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_LOOPS_H_
