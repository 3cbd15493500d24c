# SPDX-License-Identifier: Apache-2.0
"""Keras scripts that do not mention XLA, with compile(optimizer, loss) and nothing
else, have the same results on the device as on the CPU. Keras then wraps steps in
functions with jit_compile=True, which XLA cannot compile for the device."""

import harness
import numpy as np
import pytest


def _mlp(keras):
    return keras.Sequential([
        keras.Input((20,)),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(5),
    ])


def _cnn(keras):
    return keras.Sequential([
        keras.Input((12, 12, 3)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(5),
    ])


def _grouped(keras):
    """Keras itself compiles grouped convolutions, as in ConvNeXt."""
    return keras.Sequential([
        keras.Input((8, 8, 4)),
        keras.layers.Conv2D(4, 3, padding="same", groups=4),
        keras.layers.LayerNormalization(),
        keras.layers.Conv2D(8, 1, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5),
    ])


MODELS = {"mlp": _mlp, "cnn": _cnn, "grouped": _grouped}


def _make(name):
    import keras
    model = MODELS[name](keras)
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.2, w.shape).astype(w.dtype)
              for w in model.weights]
    model.set_weights([np.abs(v) if "variance" in w.path else v
                       for w, v in zip(model.weights, values)])
    x = random.normal(size=(64, *model.input_shape[1:])).astype(np.float32)
    return keras, model, x, random.integers(0, 5, 64)


def steps(name, device):
    """Returns the losses of fit and evaluate, and the result of predict."""
    import tensorflow as tf
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        keras, model, x, y = _make(name)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss)
        losses = model.fit(x, y, batch_size=16, epochs=2, shuffle=False,
                           verbose=0).history["loss"]
        losses.append(model.evaluate(x, y, batch_size=16, verbose=0))
        where = model.trainable_variables[0].value.device
        assert where.endswith(f"{device}:0"), where
        return losses, model.predict(x, batch_size=16, verbose=0).tolist()


def predict_uncompiled(name, device):
    import tensorflow as tf
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        _, model, x, _ = _make(name)
        return [], model.predict(x, batch_size=16, verbose=0).tolist()


CASES = {"steps": steps, "predict_uncompiled": predict_uncompiled}


def run(case, name, device):
    return CASES[case](name, device)


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[case, name, device] for case in CASES for name in MODELS
             for device in ("SIM", "CPU")]
    return dict(zip(map(tuple, cases), harness.run_each(run, cases)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_results_match_the_cpu(results, case, name):
    device, cpu = (results[case, name, d] for d in ("SIM", "CPU"))
    assert cpu.ok, cpu
    assert device.ok, device
    for found, expected in zip(device.value, cpu.value):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
