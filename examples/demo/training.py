# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras perceptron with model.fit on a given device.

Devices can differ only in their arithmetic: all start from the same weights and
train on the same batches.
"""

import collections
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

# Losses are compared with those of the CPU, which does not round factors.
tf.config.experimental.enable_tensor_float_32_execution(False)

OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.002),
}
# Ops without arithmetic, which pass batches to a step and return its results.
FEEDING = {"_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv",
           "Const", "NoOp", "Identity", "IteratorGetNext", "OptionalFromValue",
           "OptionalGetValue", "OptionalHasValue", "OptionalNone"}


class HostInitializer:
    """Glorot uniform weights drawn by NumPy, equal on every device."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def __call__(self, shape, dtype=None):
        limit = np.sqrt(6 / (shape[0] + shape[-1]))
        return self.random.uniform(-limit, limit, shape).astype(np.float32)


class Losses(keras.callbacks.Callback):
    """Records the loss that Keras reports after each batch: the mean of the
    epoch so far."""

    def __init__(self, on_step=None):
        super().__init__()
        self.means, self.on_step = [], on_step

    def on_train_batch_end(self, batch, logs=None):
        self.means.append(float(logs["loss"]))
        if self.on_step is not None:
            self.on_step(self.means[-1])

    def of_batches(self, steps_per_epoch):
        """Returns the loss of each batch by itself."""
        sums = np.reshape(self.means, (-1, steps_per_epoch)) * np.arange(
            1, steps_per_epoch + 1)
        return np.diff(sums, prepend=0).ravel()


class Trainer:
    """Trains one model on one device of a type such as "SIM" or "CPU"."""

    def __init__(self, device, optimizer, features, classes, seed=0):
        # With the plug-in installed, its device is TensorFlow's default, so any
        # Keras script uses it.
        self.scope = "/device:CPU:0" if device == "CPU" else None
        weights = HostInitializer(seed)
        with tf.device(self.scope):
            self.model = keras.Sequential([
                keras.Input((features,)),
                keras.layers.Dense(128, "relu", kernel_initializer=weights),
                keras.layers.Dense(64, "relu", kernel_initializer=weights),
                keras.layers.Dense(classes, kernel_initializer=weights),
            ])
            self.model.compile(
                OPTIMIZERS[optimizer](),
                loss=keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True))
        where = self.model.trainable_variables[0].value.device
        assert where.endswith(f"/device:{device}:0"), where

    def fit(self, images, labels, batch, epochs, on_step=None):
        """Trains the model and returns the Losses."""
        losses = Losses(on_step)
        with tf.device(self.scope):
            self.model.fit(images, labels, batch_size=batch, epochs=epochs,
                           shuffle=False, verbose=0, callbacks=[losses])
        return losses

    def predict(self, images):
        """Returns the class of each image."""
        with tf.device(self.scope):
            logits = self.model.predict(images, verbose=0)
        return np.argmax(logits, axis=1)

    def ops_per_step(self, images, labels):
        """Returns the number of ops per training step by device type, counted in
        the graphs that each device runs, and the names of the ops that compute on
        the CPU."""
        context.context().enable_run_metadata()
        context.context().export_run_metadata()  # discards earlier metadata
        self.fit(images, labels, len(images), 1)
        metadata = context.context().export_run_metadata()
        context.context().disable_run_metadata()
        counts, cpu_ops = collections.Counter(), set()
        for function in metadata.function_graphs:
            nodes = [(n.op, tf.DeviceSpec.from_string(n.device).device_type)
                     for g in function.partition_graphs for n in g.node]
            # tfplug and TensorFlow have other names for fused products.
            if not any("MatMul" in op for op, _ in nodes):
                continue  # not part of the step
            for op, device in nodes:
                counts[device] += 1
                if device == "CPU" and op not in FEEDING:
                    cpu_ops.add(op)
        return counts, sorted(cpu_ops)
