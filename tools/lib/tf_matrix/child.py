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

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[2] / "tests/tensorflow")]
import models  # noqa: E402
import small_kernels  # noqa: E402

# Ops that read the data set, which belongs on the host, and ops that compute
# nothing or only shapes.
INPUT = re.compile("Dataset|Iterator")
BOOKKEEPING = ("_", "Anonymous", "Const", "Identity", "NoOp", "Iterator", "Optional", "Arg",
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
    """Trains, evaluates and predicts; returns numbers to compare, and the devices
    of the nodes of the training step."""
    keras = tf.keras
    random = np.random.default_rng(5)
    model, x, y = models.MODELS[name](keras, random)
    fill_weights(model, random)
    # No device is named and compile() is as plain as users write it.
    options = {"run_eagerly": True} if name == "eager" else {}
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **options)
    context.context().enable_run_metadata()
    history = model.fit(x, y, batch_size=models.BATCH, epochs=2, shuffle=False,
                        verbose=0).history
    metadata = context.context().export_run_metadata()
    context.context().disable_run_metadata()
    predicted = model.predict(x, batch_size=models.BATCH, verbose=0)
    loss = model.evaluate(x, y, batch_size=models.BATCH, verbose=0)
    values = [*history["loss"], loss, float(np.abs(predicted).astype("d").mean())]
    return {"values": [float(value) for value in values], **places(metadata)}


def places(metadata):
    """Returns the number of nodes by device type, and the ops that computed on the
    CPU although there is a device."""
    nodes, on_cpu = {}, set()
    for function in metadata.function_graphs:
        for graph in function.partition_graphs:
            for node in graph.node:
                kind = tf.DeviceSpec.from_string(node.device).device_type or ""
                nodes[kind] = nodes.get(kind, 0) + 1
                if (kind == "CPU" and not node.op.startswith(BOOKKEEPING) and
                        not INPUT.search(node.op)):
                    on_cpu.add(node.op)
    for device in metadata.step_stats.dev_stats:
        kind = tf.DeviceSpec.from_string(device.device).device_type or ""
        nodes[kind] = nodes.get(kind, 0) + len(device.node_stats)
    return {"nodes": nodes, "on_cpu": sorted(on_cpu)}


def is_clear(message):
    """Returns whether the message of an error contains a remedy."""
    return "instead of" in message or "use " in message


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        try:
            found = {"version": version, "update": update,
                     "model": run_model}[sys.argv[2]](*sys.argv[3:])
        except Exception as error:  # pylint: disable=broad-except
            message = f"{type(error).__name__}: {error}"
            found = {"error": message, "is_clear": is_clear(message)}
        json.dump(found, file)


main()
