# SPDX-License-Identifier: Apache-2.0
"""CompileRegions, the pass that collapses ops on the device into regions: functions and
models have the same results with and without it, bit by bit, and TensorFlow runs fewer
ops. The first run of a region records it; the others repeat the record."""

import harness
import numpy as np
import pytest

REGION = "TfplugRegionV1"
ON, OFF = {"TFPLUG_REGIONS": "1"}, {"TFPLUG_REGIONS": "0"}


def _bytes(tf, results):
    return [[str(x.dtype), list(x.shape), x.numpy().tobytes().hex()]
            for x in tf.nest.flatten(results)]


def _cases(tf):
    """Returns {name: (function, a list of arguments for each run)}."""
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    weights = tf.Variable(draw(6, 5)), tf.Variable(draw(5))
    image_filter = tf.constant(draw(3, 3, 2, 4))

    def gradient(x):
        with tf.GradientTape() as tape:
            y = tf.nn.softmax(tf.matmul(x, weights[0]) + weights[1])
            loss = tf.reduce_sum(y * y, axis=[1]) + tf.reduce_max(y, 1)
        return [loss, *tape.gradient(loss, weights)]

    def update(x):
        weights[1].assign_add(tf.reduce_mean(x, 0)[:5] * 0.1)
        y = tf.matmul(x, weights[0]) + weights[1]
        weights[1].assign_sub(tf.reduce_mean(y, 0) * 0.01)
        return y, tf.identity(weights[1])

    def shapes(x):
        rows = tf.shape(x)[0]
        flat = tf.reshape(x, [-1])
        return (tf.reshape(flat, tf.stack([2, rows * 3])), tf.transpose(x),
                tf.expand_dims(flat, 0), tf.squeeze(x[:1]), tf.size(x), rows * 2)

    def loop(x):
        _, y = tf.while_loop(
            lambda i, y: i < 4,
            lambda i, y: (i + 1, tf.tanh(tf.matmul(y, y, transpose_b=True)) @ y + x),
            [0, x])
        return y

    def branches(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(-tf.square(x)) * 2,
                       lambda: tf.sqrt(tf.abs(x)) + tf.tanh(x))

    def order(x):
        a = tf.tanh(x) * 2
        with tf.control_dependencies([a, weights[1].assign(tf.reduce_sum(x, 0)[:5])]):
            b = tf.exp(x) + weights[1][0]
        with tf.control_dependencies([b]):
            return tf.square(a) - b, weights[1] + 1

    def image(x):
        y = tf.nn.conv2d(x, image_filter, 1, "SAME")
        y = tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "VALID")
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        return tf.nn.batch_normalization(y, mean, variance, None, None, 1e-3)

    def same(x, y):
        # The inputs are one tensor in the first run only.
        return tf.tanh(x - y) * 3 + tf.square(y), tf.reduce_sum(x * y)

    rows = [[draw(n, 6)] for n in (4, 4, 7, 4, 1, 0, 7)]
    shared = draw(4, 4)
    return {
        "gradient": (gradient, rows),
        "update": (update, rows[:5]),
        "shapes": (shapes, [[draw(n, 6)] for n in (2, 3, 2, *range(4, 16), 3)]),
        "loop": (loop, [[draw(3, 3)] for _ in range(3)]),
        "branches": (branches, [[draw(3, 3)], [-np.abs(draw(3, 3))],
                                [np.abs(draw(3, 3))], [draw(3, 3)]]),
        "order": (order, rows[:4]),
        "image": (image, [[draw(2, 8, 8, 2)] for _ in range(3)]),
        "same": (same, [[shared, None], [shared, draw(4, 4)], [draw(4, 4), shared]]),
    }


def functions():
    import graph_runs
    import tensorflow as tf
    results = {}
    with tf.device("/device:SIM:0"):
        for name, (function, runs) in _cases(tf).items():
            traced = tf.function(function, autograph=False, jit_compile=False,
                                 reduce_retracing=True)
            outputs, counts = [], []
            for arguments in runs:
                tensors = [None if x is None else tf.constant(x) for x in arguments]
                tensors = [tensors[0] if x is None else x for x in tensors]
                output, ops = graph_runs.executed(
                    lambda t=tensors: _bytes(tf, traced(*t)))  # noqa: B023
                outputs.append(output)
                counts.append([len(ops), ops.count(REGION)])
            results[name] = [outputs, counts]
    return results


def test_functions_have_the_same_results():
    on, off = (harness.run(functions, env=env) for env in (ON, OFF))
    assert on.ok, on
    assert off.ok, off
    ops = {ON["TFPLUG_REGIONS"]: 0, OFF["TFPLUG_REGIONS"]: 0}
    for name, (outputs, counts) in on.value.items():
        expected, before = off.value[name]
        assert outputs == expected, name
        assert all(n[1] == 0 for n in before), name
        assert any(n[1] > 0 for n in counts), (name, counts)
        ops["1"] += sum(n[0] for n in counts)
        ops["0"] += sum(n[0] for n in before)
    assert ops["1"] < ops["0"]


def random_graphs_of(seeds):
    import random_graphs
    import tensorflow as tf
    results = []
    with tf.device("/device:SIM:0"):
        for seed in seeds:
            function, arguments = random_graphs.make(tf, seed)
            traced = tf.function(function, autograph=False, jit_compile=False)
            results.append([_bytes(tf, traced(*arguments)) for _ in range(3)])
    return results


def test_random_graphs_have_the_same_results():
    seeds = list(range(30))
    on, off = (harness.run(random_graphs_of, seeds, env=env) for env in (ON, OFF))
    assert on.ok, on
    assert off.ok, off
    for seed, results, expected in zip(seeds, on.value, off.value, strict=True):
        assert results == expected, seed


def train(kind):
    import graph_runs
    import keras
    import tensorflow as tf
    keras.utils.set_random_seed(0)
    layers = keras.layers

    class _Attention(layers.Layer):
        def __init__(self):
            super().__init__()
            self.attention = layers.MultiHeadAttention(2, 4)

        def call(self, x):
            return x + self.attention(x, x)

    with tf.device("/device:SIM:0"):
        inputs, model = {
            "mlp": ((12,), [layers.Dense(16, activation="relu"), layers.Dense(4)]),
            "cnn": ((8, 8, 2), [
                layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(),
                layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.3),
                layers.Dense(4)]),
            "lstm": ((6, 3), [layers.LSTM(8), layers.Dense(4)]),
            "dropout": ((6, 3), [
                layers.LSTM(8, dropout=0.3, recurrent_dropout=0.3), layers.Dense(4)]),
            "transformer": ((6, 8), [
                _Attention(), layers.LayerNormalization(epsilon=1e-3),
                layers.Flatten(), layers.Dense(4)]),
        }[kind]
        model = keras.Sequential([keras.Input(inputs), *model])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(True),
                      metrics=["accuracy"])
        random = np.random.default_rng(1)
        # The last batch is smaller.
        x = random.normal(size=(75, *inputs)).astype(np.float32)
        y = random.integers(0, 4, 75)
        history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
        predicted = model.predict(x, batch_size=32, verbose=0)
        step = tf.function(lambda x: model(x, training=False), jit_compile=False)
        ops = graph_runs.executed(lambda: step(x[:16]))[1]
    return [history.history["loss"], predicted.tobytes().hex(),
            [w.tobytes().hex() for w in model.get_weights()]], ops


@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "dropout", "transformer"])
def test_models_train_alike(kind):
    on, off = (harness.run(train, kind, env=env) for env in (ON, OFF))
    assert on.ok, on
    assert off.ok, off
    assert on.value[0] == off.value[0]
    # Keras 2 calls the LSTM as a function, whose ops are not listed.
    is_listed = kind != "lstm" or harness.keras_version() >= "3"
    assert (REGION in on.value[1]) == is_listed and REGION not in off.value[1]
    if kind == "transformer":
        own = {"TfplugAttention", "TfplugLayerNorm"}
        assert own <= set(off.value[1]) and not own & set(on.value[1])


def failing():
    import tensorflow as tf

    @tf.function(autograph=False, jit_compile=False, input_signature=[
        tf.TensorSpec([None, 2]), tf.TensorSpec([2], tf.int32)])
    def function(x, shape):
        return tf.tanh(tf.reshape(tf.exp(x), shape, name="bad_shape")) * 2

    with tf.device("/device:SIM:0"):
        fine = function(tf.ones([2, 2]), [4, 1]).numpy().tolist()
        try:
            function(tf.ones([2, 2]), [3, 1])
        except tf.errors.InvalidArgumentError as error:
            message = str(error)
        else:
            message = ""
        again = function(tf.ones([2, 2]), [4, 1]).numpy().tolist()
    return fine, message, again


def test_errors_name_the_node():
    result = harness.run(failing, env=ON)
    assert result.ok, result
    fine, message, again = result.value
    assert "bad_shape" in message and "4 values" in message, message
    assert fine == again


def explained():
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        tf.function(lambda x: tf.nn.softmax(tf.tanh(x) @ x), autograph=False,
                    jit_compile=False)(tf.ones([2, 2]))


def test_decisions_are_logged():
    result = harness.run(explained, env={**ON, "TFPLUG_LOG_REGIONS": "1"})
    assert result.ok, result
    assert "tfplug: the region '" in result.log, result.log
