// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_PYTHON_JIT_H_
#define TFPLUG_PASSES_INTERNAL_PYTHON_JIT_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Calls of functions with jit_compile=True in Python. DisableXla edits calls
// within graphs, which leaves three gaps. A call from Python is not part of a
// graph, and TensorFlow fails with "No JIT device registered". A session's graph
// of fewer than four nodes reaches no pass. And TensorFlow
// traces such a function for XLA: its loops and conditions stay functional ops,
// whose bodies no graph pass can edit. In a Python process, tfplug therefore
// wraps tf.function: a function that is called for this device, eagerly or
// while a graph is made, is traced and runs without XLA. Calls for
// other devices are unchanged, except that a function whose first call is for
// this device runs without XLA everywhere.
namespace tfplug::passes_internal {

inline constexpr char kPythonJit[] = R"py(
def disable_xla(device_type):
  import functools
  from tensorflow.python.eager import context
  from tensorflow.python.eager.polymorphic_function import polymorphic_function
  from tensorflow.python.framework import ops

  function_class = polymorphic_function.Function

  class Probe:
    """The part of an op that takes the device of the tf.device around it."""
    device, name, type = "", "", "PartitionedCall"

    def _set_device_from_string(self, device):
      self.device = device

  def device_name():
    """The device of the innermost tf.device around a call, "" without one. A
    function's graph ignores those around the function."""
    graph = None if context.executing_eagerly() else ops.get_default_graph()
    while graph is not None:
      probe = Probe()
      try:
        graph._apply_device_functions(probe)
      except AttributeError:
        pass  # A device function of the user that needs a real op.
      if "/device:" in probe.device:
        return probe.device
      graph = getattr(graph, "outer_graph", None)
    return context.context().device_name or ""

  def is_on_device():
    """Whether a call now runs on the device: TensorFlow prefers it to the CPU
    where no tf.device is given."""
    name = device_name()
    if name:
      return f"/device:{device_type}:" in name
    # Unlike logical devices, these need no device of the eager context, which
    # a process with sessions only never makes.
    return bool(context.context().get_visible_devices(device_type))

  def without_xla(function):
    if not function._jit_compile or not is_on_device():
      return function
    is_traced = any(getattr(function, name, None) is not None for name in (
        "_variable_creation_config", "_no_variable_creation_config",
        "_variable_creation_fn", "_no_variable_creation_fn"))
    if not is_traced:
      function._jit_compile = False
      return function
    twin = getattr(function, "_tfplug_without_xla", None)
    if twin is None:
      twin = function._clone(None)
      twin._jit_compile = False
      function._tfplug_without_xla = twin
    return twin

  def wrap(method):
    original = getattr(function_class, method)

    @functools.wraps(original)
    def call(self, *args, **kwargs):
      return original(without_xla(self), *args, **kwargs)

    setattr(function_class, method, call)

  wrap("__call__")
  wrap("get_concrete_function")
)py";

// Wraps tf.function for the device type. Does nothing in a process without
// Python. TensorFlow must have been imported. Any thread.
inline absl::Status DisableXlaInPython(const std::string& device_type) {
  if (internal::RunInPython(kPythonJit,
                            "disable_xla(\"" + device_type + "\")")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's tf.function for " + device_type +
      "; Python printed the reason above. Call functions with jit_compile=True "
      "from another function, or leave out jit_compile=True");
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PYTHON_JIT_H_
