# SPDX-License-Identifier: Apache-2.0
"""Kernels made from the primitives of tfplug/backend/: each registered op against
TensorFlow's CPU kernel, and Keras models that train on a device whose author supplies
two primitives."""

import backend_cases
import harness
import numpy as np
import pytest

PLUGIN = {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
          str(harness.small_plugin_path("reference_device"))}


def _run(function, *arguments):
    return harness.run(function, *arguments, env=PLUGIN, plugin=False)


# Errors of TensorFlow's CPU kernels in 2.21: Round of integers returns 0, Erf of an
# infinite double NaN. The device returns the integer, and 1 or -1.
WRONG_ON_THE_CPU = {"Round int32", "Round int64", "Erf float64"}
# Units in the last place. TensorFlow's CPU kernels use approximations, some of which
# are less accurate than the C library's functions.
UNITS = {"Erfc float32": 40, "Pow float32": 8, "Lgamma float32": 64}


def test_elementwise_ops():
    result = _run(backend_cases.elementwise, 1, 6)
    assert result.ok, result
    wrong = {case: found for case, found in result.value.items()
             if not 0 <= found[0] <= UNITS.get(case, 4)
             and case not in WRONG_ON_THE_CPU}
    assert len(result.value) > 500
    assert not wrong


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_ops(seed):
    result = _run(backend_cases.others, seed)
    assert result.ok, result
    wrong = {case: found for case, found in result.value.items()
             if not 0 <= found[0] <= 16}
    assert len(result.value) > 300
    assert not wrong


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
        model.compile("adam", loss, metrics=["accuracy"])
        history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return [losses, history.history["loss"], history.history["accuracy"],
                predictions, model.predict(x, verbose=0).tolist()]


@pytest.mark.parametrize("name", MODELS)
def test_keras_trains_as_on_the_cpu(name):
    device = _run(train, name, "device")
    assert device.ok, device
    cpu = harness.run(train, name, "CPU", plugin=False)
    assert cpu.ok, cpu
    for here, there in zip(device.value, cpu.value, strict=True):
        np.testing.assert_allclose(here, there, rtol=2e-3, atol=2e-3)
