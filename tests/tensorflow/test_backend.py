# SPDX-License-Identifier: Apache-2.0
"""Keras models train on a device whose author supplies two primitives of
tfplug/op_kernels/. test_op_sweep.py compares each op with TensorFlow's CPU kernel."""

import functools

import harness
import numpy as np
import pytest

PLUGIN = {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
          str(harness.small_plugin_path("reference_device"))}


def _mlp(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((20,)), layers.Dense(32, "relu"), layers.Dropout(0.5, seed=1),
        layers.Dense(5)])


def _cnn(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((12, 12, 3)),
        layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(),
        layers.ReLU(), layers.MaxPooling2D(),
        layers.Conv2D(8, 3, strides=2, padding="same"), layers.Activation("gelu"),
        layers.AveragePooling2D(2, padding="same"),
        layers.DepthwiseConv2D(3, padding="same"), layers.GlobalAveragePooling2D(),
        layers.Dense(5)])


MODELS = {"mlp": _mlp, "cnn": _cnn}


def train(name, device):
    """Returns losses, accuracies and predictions of steps without soft placement, and
    of a plain fit."""
    import keras
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        keras.utils.set_random_seed(1)
        model = MODELS[name](keras)
        random = np.random.default_rng(0)
        values = [random.normal(0, 0.2, w.shape).astype(w.dtype)
                  for w in model.weights]
        model.set_weights([
            w.numpy() if "seed" in w.path else
            np.abs(v) if "variance" in w.path else v
            for w, v in zip(model.weights, values)])
        x = random.normal(size=(64, *model.input_shape[1:])).astype(np.float32)
        y = random.integers(0, 5, 64)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # Steps that are called directly would be compiled with XLA.
        model.compile("adam", loss, metrics=["accuracy"], jit_compile=False)
        losses = [float(model.train_on_batch(x[i:i + 16], y[i:i + 16])[0])
                  for _ in range(2) for i in range(0, 64, 16)]
        losses += [float(v) for v in model.test_on_batch(x, y)]
        predictions = [model.predict_on_batch(x).tolist()]
        # fit() itself runs an op on its data set's optional for which only
        # TensorFlow can have a kernel.
        tf.config.set_soft_device_placement(True)
        model.compile("adam", loss, metrics=["accuracy"],
                      **harness.without_xla_on_cpu(device))
        history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return [losses, history.history["loss"], history.history["accuracy"],
                predictions, model.predict(x, verbose=0).tolist()]


@functools.lru_cache(maxsize=None)
def _on_cpu(name):
    cpu = harness.run(train, name, "CPU", plugin=False)
    assert cpu.ok, cpu
    return cpu.value


def check_trains_as_on_the_cpu(name, **environment):
    """Fails if the model has other results on the environment's plug-in than on the CPU."""
    device = harness.run(train, name, "device", plugin=False, env=environment)
    assert device.ok, device
    for here, there in zip(device.value, _on_cpu(name), strict=True):
        np.testing.assert_allclose(here, there, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", MODELS)
def test_keras_trains_as_on_the_cpu(name):
    check_trains_as_on_the_cpu(name, **PLUGIN)
