# SPDX-License-Identifier: Apache-2.0
"""The program that tools/tf-matrix runs in each TensorFlow, with or without a
plug-in in the directory where TensorFlow looks for plug-ins:

  child.py RESULT version | update | model NAME

Writes one JSON object to the file RESULT."""

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
BOOKKEEPING = ("_Arg", "_Retval", "_Send", "_Recv", "_Host", "Anonymous", "Const", "Identity", "NoOp", "Iterator", "Optional", "Arg",
               "VarHandle", "Placeholder", "Read", "PartitionedCall", "Stateful",
               "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond",
               "Shape", "StridedSlice", "Pack", "Cast", "Range", "Prod")


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


def run_model(name):
    """Trains, evaluates and predicts; returns numbers to compare, how many ops of
    a training step ran on the device, and the names of those on the CPU."""
    keras = tf.keras
    random = np.random.default_rng(5)
    model, x, y = models.MODELS[name](keras, random)
    fill_weights(model, random)
    # No device is named and compile() is as plain as users write it.
    options = {"run_eagerly": True} if name == "eager" else {}
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **options)
    history = model.fit(x, y, batch_size=models.BATCH, epochs=2, shuffle=False,
                        verbose=0).history
    predicted = model.predict(x, batch_size=models.BATCH, verbose=0)
    loss = model.evaluate(x, y, batch_size=models.BATCH, verbose=0)
    values = [*history["loss"], loss, float(np.abs(predicted).astype("d").mean())]
    computed = (eager_ops if name == "eager" else graph_ops)(
        model, x[:models.BATCH], y[:models.BATCH])
    on_cpu = sorted({op for kind, op in computed if kind == "CPU"})
    return {"values": [float(value) for value in values], "on_cpu": on_cpu,
            "on_device": sum(kind == "SIM" for kind, _ in computed)}


def computes(op):
    """Returns whether the op computes values that depend on the model."""
    return not op.startswith(BOOKKEEPING) and not INPUT.search(op)


def device_type(name):
    return tf.DeviceSpec.from_string(name).device_type or ""


def graph_ops(model, x, y):
    """Returns (device type, op) of each node that computes in a training step."""
    # TensorFlow's metadata lacks the graphs of functions with jit_compile=True, in
    # which Keras 3 wraps the step. The same step is therefore traced without it.
    if hasattr(model, "jit_compile"):
        model.jit_compile = False
    model.train_function = None
    context.context().enable_run_metadata()
    context.context().export_run_metadata()  # discards earlier metadata
    model.fit(x, y, batch_size=models.BATCH, epochs=1, verbose=0)
    metadata = context.context().export_run_metadata()
    context.context().disable_run_metadata()
    return [(device_type(node.device), node.op)
            for function in metadata.function_graphs
            for graph in function.partition_graphs
            for node in graph.node if computes(node.op)]


def eager_ops(model, x, y):
    """Returns (device type, op) of each eager op that computes in a training step."""
    found = []

    def note(op, inputs, attrs, outputs, *_, **__):
        del inputs, attrs
        op = op.decode() if isinstance(op, bytes) else op
        if outputs and hasattr(outputs[0], "device") and computes(op):
            found.append((device_type(outputs[0].device), op))

    op_callbacks.add_op_callback(note)
    try:
        model.fit(x, y, batch_size=models.BATCH, epochs=1, verbose=0)
    finally:
        op_callbacks.remove_op_callback(note)
    return found


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        try:
            found = {"version": version, "update": update,
                     "model": run_model}[sys.argv[2]](*sys.argv[3:])
        except Exception as error:  # pylint: disable=broad-except
            message = f"{type(error).__name__}: {error}"
            found = {"error": message, "is_clear": remedies.names_remedy(message)}
        json.dump(found, file)


main()
