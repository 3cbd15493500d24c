# SPDX-License-Identifier: Apache-2.0
"""What tools/tf-matrix runs in each TensorFlow, with a plug-in in the folder where
TensorFlow looks for them: `train` with cpu_sim, `update` with the toys of tests/.
Writes one JSON object to the file named behind that."""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] /
                    "tests/tensorflow"))
import toys  # noqa: E402

DEVICE = "/device:SIM:0"
STEPS = 20
RATE = 0.5


def run_op():
    """An op, on the device, with what it gave."""
    x = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(10, 100)
    with tf.device(DEVICE):
        y = tf.linalg.matmul(x, x, transpose_b=True) + 1.0
    if "SIM" not in y.device:
        return "ran on " + y.device
    error = np.abs(y.numpy() - (x @ x.T + 1)).max() / np.abs(x @ x.T).max()
    return "ran" if error < 1e-5 else f"wrong by {error:.1e}"


def train(device):
    """The losses of a small perceptron's training, same start, same batches."""
    random = np.random.RandomState(7)
    sizes = [(16, 32), (32, 4)]
    start = [random.normal(0, 0.3, size).astype(np.float32) for size in sizes]
    data = random.normal(0, 1, (STEPS, 24, 16)).astype(np.float32)
    labels = np.argmax(data[:, :, :4], axis=2).astype(np.int64)
    with tf.device(device):
        weights = [tf.Variable(w) for w in start]
        biases = [tf.Variable(np.zeros(n, np.float32)) for _, n in sizes]

        @tf.function
        def step(x, y):
            with tf.device(device), tf.GradientTape() as tape:
                hidden = tf.nn.relu(tf.matmul(x, weights[0]) + biases[0])
                logits = tf.matmul(hidden, weights[1]) + biases[1]
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
            variables = weights + biases
            with tf.device(device):
                for v, g in zip(variables, tape.gradient(loss, variables)):
                    v.assign(v - RATE * g)
            return loss

        losses = [float(step(tf.constant(x), tf.constant(y)))
                  for x, y in zip(data, labels)]
    if any(device not in v.device for v in weights):
        raise RuntimeError("variables are on " + weights[0].device)
    return losses


def run_and_train():
    """With cpu_sim: its devices, an op, a training."""
    ours, cpu = train(DEVICE), train("/device:CPU:0")
    return {"numpy": np.__version__,
            "devices": [d.name for d in tf.config.list_physical_devices("SIM")],
            "op": run_op(), "first_loss": cpu[0], "last_loss": cpu[-1],
            "difference": max(abs(a - b) / abs(b) for a, b in zip(ours, cpu))}


def update_variables():
    """With the toys: whether a plug-in can update a variable in place."""
    said = toys.variables()
    problem = toys.variables_problem(said)
    if problem:
        raise RuntimeError(problem)
    return {"updates": "an error in words" if toys.updates_are_refused(said)
            else "in place"}


def main():
    tf.config.set_soft_device_placement(False)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        try:
            found = {"train": run_and_train,
                     "update": update_variables}[sys.argv[1]]()
        except Exception as error:  # pylint: disable=broad-except
            found = {"error": f"{type(error).__name__}: {error}"}
        json.dump(found, file)


main()
