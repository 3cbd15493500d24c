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
// * Keras reads the logs after each step, for all callbacks. Here, they stay unread if
//   no callback uses them, and the progress bar reads them when it shows them, 20 times
//   a second.
// * Where Keras reads them, it ignores errors, such as that of the device's work, which
//   would be lost. Here, they are raised.
// * TensorFlow examines the iterator, the only argument of that function, in each call
//   to find the trace for it: a third of a small model's step. Here, it does so once for
//   each iterator.
namespace tfplug::internal {

inline constexpr char kPythonFit[] = R"py(
STEPS_AHEAD = 32

def fit_without_waiting():
  import collections
  import functools
  import itertools
  import numpy as np
  import tensorflow as tf
  import weakref
  from tensorflow.python.data.ops import iterator_ops, optional_ops
  from tensorflow.python.eager import context
  from tensorflow.python.framework import ops

  steps = itertools.count(1)

  def in_host_memory(value):
    """Waits for a tensor, and raises its error."""
    is_array = isinstance(value, ops.EagerTensor) and value.dtype.is_numpy_compatible
    return value.__array__() if is_array else value

  class Present(collections.namedtuple("Present", "value")):
    """An Optional that has a value. A function can return it."""

    def has_value(self):
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

  class Unread:
    """A value of the logs, which the progress bar reads when it shows it."""

    def __init__(self, value):
      self.value = value

    def __array__(self, *args, **kwargs):
      from keras.src.utils import python_utils
      number = python_utils.pythonify_logs({"": self.value})[""]
      return np.array(number, *args, **kwargs)

  def flat(logs):
    """Returns {name: tensor} in the order of pythonify_logs."""
    result = {}
    for name, value in sorted((logs or {}).items()):
      result.update(flat(value) if isinstance(value, dict) else {name: value})
    return result

  def read_logs_if_used(module):
    # Before 3.6, Keras reads the logs before it calls the callbacks.
    is_default = getattr(getattr(module, "utils", None), "is_default", None)
    progress = getattr(module, "ProgbarLogger", None)
    if is_default is None:
      return

    def takes_tensors(callback):
      """Whether it is Keras' own and saves or writes something after each epoch."""
      return (type(callback).__module__.startswith("keras.src.callbacks.")
              and "epoch" in (getattr(callback, "save_freq", None),
                              getattr(callback, "update_freq", None)))

    def keeps_last_values(callback):
      """Whether it is a progress bar that computes nothing from the logs."""
      bar = type(callback) is progress and callback.progbar
      return (bar and getattr(bar, "stateful_metrics", bar) is None
              and getattr(bar, "stateless_metrics", None) == set())

    def wrap(*hooks):
      original = getattr(module.CallbackList, hooks[0])

      @functools.wraps(original)
      def call(self, batch, logs=None):
        called = [callback for callback in self.callbacks
                  if not all(is_default(getattr(callback, hook)) for hook in hooks)]
        bars = list(filter(keeps_last_values, called))
        if not all(callback in bars or takes_tensors(callback) for callback in called):
          return original(self, batch, logs)
        if next(steps) % STEPS_AHEAD == 0:  # bounds what is enqueued
          for log in tf.nest.flatten(logs)[:1]:
            in_host_memory(log)
        logs = flat(logs)
        for callback in called:
          getattr(callback, hooks[0])(
            batch, {name: Unread(log) for name, log in logs.items()}
            if callback in bars else logs)

      setattr(module.CallbackList, hooks[0], call)

    wrap("on_train_batch_end", "on_batch_end")
    wrap("on_test_batch_end")
    wrap("on_predict_batch_end")

  def raise_errors_of_logs(module):
    def read(original, _, args, kwargs):
      if not any(args):  # before a batch
        return original(*args, **kwargs)
      args, kwargs = tf.nest.map_structure(in_host_memory, (args, kwargs))
      return original(*args, **kwargs)

    if hasattr(module, "pythonify_logs"):  # since Keras 3.7
      replace_function(module.pythonify_logs, "_tfplug_pythonify_logs", read)

  class Step:
    """A tf.function whose argument is an iterator."""

    def __init__(self, function):
      self.function = function
      self.place = None  # where the trace is valid
      self.trace = None

    def __call__(self, iterator):
      if (not isinstance(iterator, iterator_ops.OwnedIterator)
          or tf.config.functions_run_eagerly() or tf.distribute.has_strategy()):
        return self.function(iterator)
      place = weakref.ref(iterator), context.context().device_name
      if self.place != place:
        # The first call creates variables.
        self.place, self.trace = place, None
        return self.function(iterator)
      if self.trace is None:
        self.trace = self.function.get_concrete_function(iterator)
      # What a ConcreteFunction calls after it has examined its arguments.
      call = getattr(self.trace, "_call_flat", None)
      if call is None:
        return self.trace(iterator)
      with tf.profiler.experimental.Trace(self.function.__name__):
        return call(tf.nest.flatten(iterator, expand_composites=True),
                    self.trace.captured_inputs)

    def __getattr__(self, name):
      return getattr(self.function, name)

  def find_trace_once(module):
    # Keras 3.16 calls it Trainer, and uses an iterator for several steps only.
    trainer = getattr(module, "TensorFlowTrainer", None) or module.Trainer
    original = getattr(trainer, "_make_function", None)
    if original is None:  # before Keras 3.7
      return

    @functools.wraps(original)
    def make_function(self, *args, **kwargs):
      made = original(self, *args, **kwargs)
      for cell in getattr(made, "__closure__", None) or ():
        function = cell.cell_contents
        if (getattr(function, "__name__", "") == "multi_step_on_iterator"
            and hasattr(function, "get_concrete_function")):
          cell.cell_contents = Step(function)
      return made

    trainer._make_function = make_function

  after_import("keras.src.backend.tensorflow.trainer", find_trace_once)
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
