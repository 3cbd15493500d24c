# SPDX-License-Identifier: Apache-2.0
"""Keras 2 and tf_keras train their layers LSTM and GRU with the kernels of CudnnRNN, with
the same results as on the CPU, and predict without them."""

import os
import pathlib
import subprocess
import sys
import tempfile

import harness
import pytest

# The layers of each model, and how many of them have a kernel.
MODELS = {
    "plain": ("LSTM(6, return_sequences=True), GRU(7, go_backwards=True)", 2),
    "masked": ("GRU(6, return_sequences=True), LSTM(7, go_backwards=True)", 2),
    "both directions, masked": ("Bidirectional(LSTM(6, return_sequences=True)), "
                                "Bidirectional(GRU(4))", 4),
    "states": ("LSTM(6, return_state=True)", 1),
    "unusual": ("LSTM(6, activation='relu', return_sequences=True), "
                "GRU(6, reset_after=False, return_sequences=True), "
                "LSTM(6, time_major=True, return_sequences=True), Flatten()", 0),
}


@pytest.fixture(scope="module", name="tf_keras")
def _tf_keras():
    """Returns a folder with tf_keras, or "" where Keras 2 belongs to TensorFlow."""
    if harness.keras_version().startswith("2."):
        return ""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    release = "{}.{}".format(*harness.release())
    folder = cache / f"tfplug/tf_keras-{release}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as new:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                 "--target", f"{new}/packages", f"tf_keras=={release}.*"], check=False,
                stderr=subprocess.PIPE, text=True)
            if "No matching distribution" in done.stderr:
                pytest.skip(f"there is no tf_keras {release} yet")
            assert done.returncode == 0, done.stderr
            try:
                os.rename(f"{new}/packages", folder)
            except OSError:  # another process was faster
                assert folder.is_dir()
    return str(folder)


def train(folder, name, device):
    """Returns losses and predictions, and how often tfplug traced the op while the model
    trained and while it predicted."""
    import numpy as np
    import tensorflow as tf
    if folder:
        sys.path.insert(0, folder)
        import tf_keras as keras
    else:
        keras = tf.keras
    traced, op = [], tf.raw_ops.CudnnRNNV3
    original = getattr(op, "original", op)  # not that of the model before

    def count(**inputs):
        traced.append(1)
        return original(**inputs)

    count.original = original
    tf.raw_ops.CudnnRNNV3 = count
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    tokens, labels = random.integers(1, 50, (64, 12)), random.integers(0, 3, 64)
    if "masked" in name:  # at the end, in the middle, at the beginning and all
        tokens[np.arange(12) >= random.integers(0, 13, (64, 1))] = 0
        tokens[3, 2] = tokens[5, 0] = 0
    with tf.device(device):
        inputs = keras.Input((12,), dtype="int32")
        x = keras.layers.Embedding(50, 8, mask_zero="masked" in name)(inputs)
        names = vars(keras.layers).copy()
        for layer in eval(f"[{MODELS[name][0]}]", names):  # pylint: disable=eval-used
            x = layer(x)
        if isinstance(x, list):
            x = keras.layers.LSTM(6)(keras.layers.Reshape((1, 6))(x[0]), initial_state=x[1:])
        model = keras.Model(inputs, keras.layers.Dense(3)(x))
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      **harness.without_xla_on_cpu(device))
        traced.clear()
        losses = model.fit(tokens, labels, 16, 2, verbose=0, shuffle=False).history["loss"]
        trained = len(traced)
        traced.clear()
        predictions = model.predict(tokens, verbose=0).tolist()
    return losses, predictions, trained, len(traced)


@pytest.fixture(scope="module", name="results")
def _results(tf_keras):
    """Returns {name of a model: its results on the device and on the CPU}."""
    devices = [harness.run_each(train, [[tf_keras, name, device] for name in MODELS])
               for device in ("/device:SIM:0", "/device:CPU:0")]
    return dict(zip(MODELS, zip(*devices)))


@pytest.mark.parametrize("name", MODELS)
def test_keras_2_trains_with_the_kernels(results, name):
    device, cpu = results[name]
    assert device.ok and cpu.ok, (device, cpu)
    assert device.value[0] == pytest.approx(cpu.value[0], rel=1e-5)
    for found, expected in zip(device.value[1], cpu.value[1]):
        assert found == pytest.approx(expected, abs=1e-5)
    kernels = MODELS[name][1] + (name == "states")
    assert cpu.value[2:] == [0, 0] and device.value[3] == 0
    assert device.value[2] >= kernels and bool(device.value[2]) == bool(kernels)
