// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_FIT_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_FIT_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Python code with which Keras 3's fit() and evaluate() enqueue a step while the device
// computes the one before, as on a GPU:
//
// * The function of a step returns an Optional of the logs, always with a value unless
//   steps_per_execution is set. Plug-ins can have no kernel that makes an Optional, and
//   on the CPU it would have to wait for the logs, the last results of a step. Here,
//   the function returns the logs themselves, on the device.
// * Keras reads the logs after each step, and throws them away if no callback has a
//   function for the end of a batch. Here, they stay unread then.
// * Where Keras reads them, it ignores errors, such as that of the device's work, which
//   would be lost. Here, they are raised.
namespace tfplug::internal {

inline constexpr char kPythonFit[] = R"py(
STEPS_AHEAD = 32

def fit_without_waiting():
  import collections
  import functools
  import itertools
  import tensorflow as tf
  from tensorflow.python.data.ops import optional_ops
  from tensorflow.python.framework import ops

  steps = itertools.count(1)

  def wait_for(tensors):
    for tensor in tensors:
      if isinstance(tensor, ops.EagerTensor) and tensor.dtype.is_numpy_compatible:
        tensor.numpy()

  class Present(collections.namedtuple("Present", "value")):
    """An Optional that has a value. A function can return it."""

    def has_value(self):
      if next(steps) % STEPS_AHEAD == 0:  # bounds what is enqueued
        wait_for(tf.nest.flatten(self.value, expand_composites=True)[:1])
      return True

    def get_value(self):
      return self.value

  original = optional_ops.Optional.from_value
  if hasattr(original, "tfplug"):  # another plug-in has wrapped it
    return

  @functools.wraps(original)
  def from_value(value):
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if getattr(graph, "name", "") == "multi_step_on_iterator":
      return Present(value)
    return original(value)

  from_value.tfplug = True
  optional_ops.Optional.from_value = staticmethod(from_value)

  def read_logs_if_used(module):
    is_default = getattr(module.utils, "is_default", None)
    if is_default is None:
      return

    def wrap(name, *hooks):
      original = getattr(module.CallbackList, name)

      @functools.wraps(original)
      def call(self, batch, logs=None):
        if not all(is_default(getattr(callback, hook))
                   for callback in self.callbacks for hook in hooks):
          original(self, batch, logs)

      setattr(module.CallbackList, name, call)

    wrap("on_train_batch_end", "on_train_batch_end", "on_batch_end")
    wrap("on_test_batch_end", "on_test_batch_end")

  def raise_errors_of_logs(module):
    def read(original, names, args, kwargs):
      wait_for(tf.nest.flatten((args, kwargs)))
      return original(*args, **kwargs)

    replace_function(module.pythonify_logs, "_tfplug_pythonify_logs", read)

  after_import("keras.src.callbacks.callback_list", read_logs_if_used)
  after_import("keras.src.utils.python_utils", raise_errors_of_logs)
)py";

// Adapts Keras, now or when it is imported. Does nothing in a process without
// Python. TensorFlow must have been imported. Any thread; acquires Python's GIL.
inline absl::Status FitWithoutWaiting() {
  if (RunInPython(std::string(kPythonReplace) + kPythonAfterImport + kPythonFit,
                  "fit_without_waiting()")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap the functions of Keras' fit; Python printed the reason "
      "above. fit() waits for the device after each step");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_FIT_H_
