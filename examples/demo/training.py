# SPDX-License-Identifier: Apache-2.0
"""A Keras perceptron and its training, on a device of one's choice.

Everything that could differ between two devices but the arithmetic is fixed:
both start from the same weights and see the same batches.
"""

import collections
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

LEARNING_RATE = 0.05
MOMENTUM = 0.9


class HostInitializer:
    """Glorot's uniform weights, drawn by NumPy: the same for every device."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def __call__(self, shape, dtype=None):
        limit = np.sqrt(6 / (shape[0] + shape[-1]))
        return self.random.uniform(-limit, limit, shape).astype(np.float32)


class Trainer:
    """One model on one device, and how it learns."""

    def __init__(self, device, features, classes, seed=0):
        self.device = device
        weights = HostInitializer(seed)
        with tf.device(device):
            self.model = keras.Sequential([
                keras.Input((features,)),
                keras.layers.Dense(128, "relu", kernel_initializer=weights),
                keras.layers.Dense(64, "relu", kernel_initializer=weights),
                keras.layers.Dense(classes, kernel_initializer=weights),
            ])
            self.velocities = [
                tf.Variable(np.zeros(v.shape, np.float32), trainable=False)
                for v in self.model.trainable_variables]
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # XLA is not asked for: it knows no devices of this kind.
        self._step = tf.function(self._compute_step, jit_compile=False)
        self._predict = tf.function(self._compute_logits, jit_compile=False)

    def _compute_step(self, images, labels):
        variables = self.model.trainable_variables
        with tf.device(self.device):
            with tf.GradientTape() as tape:
                logits = self.model(images, training=True)
                loss = self.loss(labels, logits)
            gradients = tape.gradient(loss, variables)
            # assign, not assign_sub: TensorFlow 2.19 to 2.21 runs that on the
            # host, with an address of the device's.
            for variable, velocity, gradient in zip(
                    variables, self.velocities, gradients):
                velocity.assign(MOMENTUM * velocity + gradient)
                variable.assign(variable - LEARNING_RATE * velocity)
        return loss

    def _compute_logits(self, images):
        with tf.device(self.device):
            return self.model(images, training=False)

    def step(self, images, labels):
        """Learns from a batch; returns the loss before that."""
        with tf.device(self.device):
            return float(self._step(tf.constant(images), tf.constant(labels)))

    def predict(self, images):
        """The class of each image."""
        with tf.device(self.device):
            logits = self._predict(tf.constant(images))
        return np.argmax(logits.numpy(), axis=1)

    def ops_per_step(self, images, labels):
        """How many ops TensorFlow runs for one step, and where: counted in the
        graphs that it hands to each device, after all of its rewriting."""
        context.context().enable_run_metadata()
        self.step(images, labels)
        metadata = context.context().export_run_metadata()
        context.context().disable_run_metadata()
        counts = collections.Counter()
        for function in metadata.function_graphs:
            for graph in function.partition_graphs:
                for node in graph.node:
                    device = tf.DeviceSpec.from_string(node.device)
                    counts[f"{device.device_type}:{device.device_index}"] += 1
        return counts
