// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_RNN_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_RNN_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Python code with which Keras 3, Keras 2 and tf_keras train their layers LSTM and
// GRU with CudnnRNNV3, a single op instead of a loop, if a plug-in has a kernel for
// it. They do so themselves for GPUs, and only for masks of sequences that are padded
// on the right.
//
// Unless the device's type is GPU, it is for training only: a model that is
// exported, and one that predicts, has ordinary ops, which run everywhere.
namespace tfplug::internal {

inline constexpr char kPythonRnn[] = R"py(
def train_with_rnn_kernels(device_type):
  def device_of_scope(tf):
    """Returns the device on which ops are placed; those of a function have that of
    the call unless their scope says more."""
    from tensorflow.python.eager import context

    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
      with graph.as_default():
        device = tf.constant(0).op.device
      if device:
        return device
      graph = getattr(graph, "outer_graph", None)
    return context.context().device_name or ""

  def device_has_kernel(tf, types, x):
    """Returns whether the current device has a kernel for the type of x."""
    from tensorflow.python.framework import kernels

    scope = tf.DeviceSpec.from_string(device_of_scope(tf)).device_type
    candidates = [t for t in types if scope in (None, t)
                  and tf.config.list_logical_devices(t)]
    found = kernels.get_registered_kernels_for_op("CudnnRNNV3").kernel
    return any(
        kernel.device_type in candidates
        and all(x.dtype.as_datatype_enum in c.allowed_values.list.type
                for c in kernel.constraint if c.name == "T")
        for kernel in found)

  def run(tf, mode, weights, x, states, mask, go_backwards, zero_output_for_mask,
          return_sequences):
    """Returns what Keras' inner_loop returns. Steps that are masked, which leave
    state and output as they are, follow the others for the kernel."""
    kernel, recurrent, bias = (tf.convert_to_tensor(v) for v in weights)
    mask = mask if mask is None else tf.cast(mask, tf.bool)
    if go_backwards:
      x = tf.reverse(x, [1])
      mask = mask if mask is None else tf.reverse(mask, [1])
    steps = tf.shape(x)[1]
    if mask is None:
      lengths = tf.fill([tf.shape(x)[0]], steps)
    else:
      # TensorFlow computes with int32 on the host, where the lengths must be. If the
      # mask is there as well, nothing waits for the device.
      with tf.device("/device:CPU:0"):
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
      order = tf.math.top_k(tf.cast(mask, x.dtype), steps).indices
      x = tf.gather(x, tf.cast(order, tf.int64), axis=1, batch_dims=1)
    # An LSTM of Keras has one bias, a GRU has two.
    biases = [bias, tf.zeros_like(bias)] if mode == "lstm" else [bias]
    params = tf.concat([tf.reshape(v, [-1]) for v in (
        tf.transpose(kernel), tf.transpose(recurrent), *biases)], 0)
    y, h, c, _, _ = tf.raw_ops.CudnnRNNV3(
        input=x, input_h=states[0][:, None],
        input_c=states[1][:, None] if mode == "lstm" else tf.zeros([], x.dtype),
        params=params, sequence_lengths=lengths, rnn_mode=mode, time_major=False)
    last = h = h[:, 0]
    if mask is not None:
      # The output of a masked step is zero, or that of the last one before.
      done = tf.cumsum(tf.cast(mask, tf.int64), 1)
      is_set = mask if zero_output_for_mask else done > 0
      last = tf.where(is_set[:, -1:], h, tf.zeros_like(h))
    if not return_sequences:
      y = last[:, None]
    elif mask is not None:
      y = tf.gather(y, tf.maximum(done - 1, 0), axis=1, batch_dims=1)
      y = tf.where(is_set[:, :, None], y, tf.zeros_like(y))
    return last, y, [h, c[:, 0]] if mode == "lstm" else [h]

  def can_run(tf, types, x, mask):
    return x.shape.rank == 3 and (mask is None or mask.shape.rank == 2) and (
        device_has_kernel(tf, types, x))

  def adapt_inner_loop(module, layer_class, mode, types):
    """Adapts Keras 3."""
    import functools
    import tensorflow as tf
    from keras.src import activations

    original = layer_class.inner_loop

    @functools.wraps(original)
    def inner_loop(layer, sequences, initial_state, mask, training=False):
      cell = layer.cell
      masks, states = tf.nest.flatten(mask), tf.nest.flatten(initial_state)
      mask = masks[0] if masks else None
      is_usual = (
          (training is True or "GPU" in types) and layer.use_cudnn in ("auto", True)
          and not layer.unroll and not layer.recurrent_dropout
          and cell.activation is activations.tanh
          and cell.recurrent_activation is activations.sigmoid
          and cell.bias is not None and getattr(cell, "reset_after", True))
      x = tf.convert_to_tensor(sequences)
      if not is_usual or not can_run(tf, types, x, mask):
        return original(layer, sequences, initial_state, mask, training)
      if training and layer.dropout:
        x *= tf.expand_dims(cell.get_dropout_mask(x[:, 0, :]), 1)
      return run(tf, mode, (cell.kernel, cell.recurrent_kernel, cell.bias), x, states,
                 mask, layer.go_backwards, layer.zero_output_for_mask,
                 layer.return_sequences)

    layer_class.inner_loop = inner_loop

  def adapt_standard(module, layer_class, mode, types):
    """Adapts Keras 2: it calls standard_lstm where a kernel can do the same."""
    import functools
    import inspect
    import threading
    import tensorflow as tf

    call, standard = layer_class.call, getattr(module, f"standard_{mode}")
    scope, signature = threading.local(), inspect.signature(standard)

    @functools.wraps(call)  # Keras reads its arguments.
    def call_in_scope(self, inputs, mask=None, training=None, initial_state=None):
      scope.is_training = training is True
      try:
        return call(self, inputs, mask=mask, training=training,
                    initial_state=initial_state)
      finally:
        scope.is_training = False

    @functools.wraps(standard)
    def standard_or_kernel(*args, **kwargs):
      given = signature.bind(*args, **kwargs).arguments
      x, mask = tf.convert_to_tensor(given["inputs"]), given["mask"]
      if given["time_major"] or given["sequence_lengths"] is not None or not (
          (getattr(scope, "is_training", False) or "GPU" in types)
          and can_run(tf, types, x, mask)):
        return standard(*args, **kwargs)
      last, y, states = run(
          tf, mode, [given[n] for n in ("kernel", "recurrent_kernel", "bias")], x,
          [given[n] for n in ("init_h", "init_c")[:2 if mode == "lstm" else 1]],
          mask, given["go_backwards"], given["zero_output_for_mask"],
          given["return_sequences"])
      utilities = module.gru_lstm_utils
      return (last, y, *states, utilities.runtime(utilities.RUNTIME_GPU))

    layer_class.call = call_in_scope
    setattr(module, f"standard_{mode}", standard_or_kernel)

  def adapt(module, name, mode):
    layer_class = getattr(module, name)
    types = layer_class.__dict__.get("_tfplug_types")
    if types is not None:
      return types.append(device_type)
    if hasattr(module, f"standard_{mode}"):
      adapter = adapt_standard
    elif hasattr(layer_class, "inner_loop") and (
        module.backend.backend() == "tensorflow"):
      adapter = adapt_inner_loop
    else:
      return
    layer_class._tfplug_types = [device_type]
    adapter(module, layer_class, mode, layer_class._tfplug_types)

  for name, mode in (("LSTM", "lstm"), ("GRU", "gru")):
    # Keras 3 and 2.13 to 2.15, Keras 2.12, tf_keras.
    for package in "keras.src", "keras", "tf_keras.src":
      after_import(f"{package}.layers.rnn.{mode}",
                   lambda module, name=name, mode=mode: adapt(module, name, mode))
)py";

// Adapts Keras' layers to devices of the type, now or when they are imported. Does
// nothing in a process without Python. TensorFlow must have been imported. Any
// thread; acquires Python's GIL.
inline absl::Status TrainWithRnnKernels(const std::string& device_type) {
  if (RunInPython(std::string(kPythonAfterImport) + kPythonRnn,
                  "train_with_rnn_kernels(\"" + device_type + "\")")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap Keras' layers LSTM and GRU; Python printed the reason "
      "above. "
      "They train in a loop of ops");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_RNN_H_
