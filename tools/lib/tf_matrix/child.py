# SPDX-License-Identifier: Apache-2.0
"""The program that tools/tf-matrix runs in each TensorFlow, with or without a
plug-in in the directory where TensorFlow looks for plug-ins:

  child.py RESULT version | update | models NAME...

Writes JSON objects to the file RESULT, one per line; "models" writes one for each
model, as soon as it is finished."""

import json
import pathlib
import re
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[2] / "tests/tensorflow")]
import models  # noqa: E402
import remedies  # noqa: E402
import small_kernels  # noqa: E402

# Ops that read the data set, which belongs on the host, and ops that compute
# nothing or only shapes.
INPUT = re.compile("Dataset|Iterator")
BOOKKEEPING = ("_Arg", "_DeviceArg", "_Retval", "_DeviceRetval", "_Send", "_Recv",
               "_Host", "Anonymous", "Const", "Identity", "NoOp", "Iterator",
               "Optional", "Arg", "VarHandle", "Placeholder", "Read",
               "PartitionedCall", "Stateful", "Switch", "Merge", "Enter", "Exit",
               "NextIteration", "LoopCond", "Shape", "StridedSlice", "Pack", "Cast",
               "Range", "Prod")


def version():
    """Returns the releases of TensorFlow and NumPy."""
    return {"tensorflow": tf.__version__, "numpy": np.__version__}


def update():
    """Returns whether a plug-in can update a variable in place or gets a clear
    error; raises RuntimeError in any other case."""
    found = small_kernels.variables()
    problem = small_kernels.variables_problem(found)
    if problem:
        raise RuntimeError(problem)
    return {"updates": "a clear error" if small_kernels.updates_are_rejected(found)
            else "in place"}


def fill_weights(model, random):
    """Draws the weights on the host: devices may draw other random numbers."""
    weights = []
    for have in model.get_weights():
        fan_in = np.prod(have.shape[:-1]) if have.ndim > 1 else 0
        weights.append(random.normal(0, fan_in**-0.5, have.shape).astype(
            have.dtype) if fan_in else have)
    model.set_weights(weights)


def loss_function():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(model, x, y, **options):
    """Trains, evaluates and predicts; returns numbers to compare."""
    # No device is named and compile() is as plain as users write it.
    if tf.config.list_logical_devices("SIM"):
        model.compile("adam", loss_function(), **options)
    else:
        # The reference need not wait for XLA.
        model.compile("adam", loss_function(), jit_compile=False, **options)
    history = model.fit(x, y, batch_size=models.BATCH, epochs=2, shuffle=False,
                        verbose=0).history
    predicted = model.predict(x, batch_size=models.BATCH, verbose=0)
    loss = model.evaluate(x, y, batch_size=models.BATCH, verbose=0)
    return [*history["loss"], loss, np.abs(predicted).astype("d").mean()]


def fit_by_hand(model, x, y):
    """Trains with the user's own loop, clipped gradients and moving averages of the
    weights, then with Keras' functions for single batches; returns numbers."""
    batch, loss_of = models.BATCH, loss_function()
    optimizer = tf.keras.optimizers.Adam(use_ema=True, ema_momentum=0.9)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        weights = model.trainable_variables
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 1.0)
        optimizer.apply_gradients(zip(gradients, weights))
        return loss

    losses = [train(x[i:i + batch], y[i:i + batch])
              for i in range(0, len(x), batch)]
    optimizer.finalize_variable_values(model.trainable_variables)
    model.compile("sgd", loss_of)
    x, y = x[:batch], y[:batch]
    losses += [model.train_on_batch(x, y), model.test_on_batch(x, y)]
    return [*losses, np.abs(model.predict_on_batch(x)).astype("d").mean()]


def run_model(name):
    """Returns numbers to compare, how many ops ran on the device, and the names of
    those on the CPU."""
    keras = tf.keras
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    random = np.random.default_rng(5)
    model, x, y = models.MODELS[name](keras, random)
    fill_weights(model, random)
    if name == "eager":
        values, computed = eager_ops(lambda: fit(model, x, y, run_eagerly=True))
    else:
        train = fit_by_hand if name == "tape" else fit
        values, computed = graph_ops(lambda: train(model, x, y))
    on_cpu = sorted({op for kind, op in computed if kind == "CPU"})
    return {"values": [float(value) for value in values], "on_cpu": on_cpu,
            "on_device": sum(kind == "SIM" for kind, _ in computed)}


def computes(op):
    """Returns whether the op computes values that depend on the model."""
    return not op.startswith(BOOKKEEPING) and not INPUT.search(op)


def device_type(name):
    return tf.DeviceSpec.from_string(name).device_type or ""


def graph_ops(train):
    """Returns train's result and (device type, op) of each node that computes."""
    context.context().enable_run_metadata()
    context.context().export_run_metadata()  # discards earlier metadata
    try:
        result = train()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    return result, [(device_type(node.device), node.op)
                    for function in metadata.function_graphs
                    for graph in function.partition_graphs
                    for node in graph.node if computes(node.op)]


def eager_ops(train):
    """Returns train's result and (device type, op) of each eager op that computes."""
    found = []

    def note(op, inputs, attrs, outputs, *_, **__):
        del inputs, attrs
        op = op.decode() if isinstance(op, bytes) else op
        if outputs and hasattr(outputs[0], "device") and computes(op):
            found.append((device_type(outputs[0].device), op))

    op_callbacks.add_op_callback(note)
    try:
        return train(), found
    finally:
        op_callbacks.remove_op_callback(note)


def attempt(function, *arguments):
    """Returns the function's result, or a description of its error."""
    try:
        return function(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        message = f"{type(error).__name__}: {error}"
        return {"error": message, "is_clear": remedies.names_remedy(message)}


def main():
    _, path, what, *names = sys.argv
    with open(path, "w", encoding="utf-8") as file:
        if what == "models":
            found = (attempt(run_model, name) for name in names)
        else:
            found = [attempt({"version": version, "update": update}[what])]
        for result in found:
            print(json.dumps(result), file=file, flush=True)


main()
