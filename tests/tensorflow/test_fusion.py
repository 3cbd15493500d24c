# SPDX-License-Identifier: Apache-2.0
"""The passes that fuse, fold and cancel ops: functions and models have the same
results with and without them, and the graph that runs has the expected fused ops."""

import collections

import harness
import pytest


# ---- One rule at a time ------------------------------------------------------

def _cases():
    """Returns the arguments of all cases, and {name: (function, op that must run, op
    that must no longer run)}."""
    import numpy as np
    import tensorflow as tf
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    arguments = [draw(4, 6), draw(2, 9, 9, 3)]
    w, b = tf.Variable(draw(6, 5)), tf.Variable(draw(5))
    filters, fb = tf.Variable(draw(3, 3, 3, 4)), tf.Variable(draw(4))
    depth, db = tf.Variable(draw(3, 3, 3, 2)), tf.Variable(draw(6))
    fixed, dfixed = draw(3, 3, 3, 4), draw(3, 3, 3, 2)

    def norm(x, *parts):
        return tf.raw_ops.FusedBatchNormV3(
            x=x, scale=parts[0], offset=parts[1], mean=parts[2],
            variance=parts[3], is_training=False, epsilon=0.01).y

    learned = [tf.Variable(np.abs(draw(4)) + 0.5) for _ in range(4)]
    statistics = [np.abs(draw(4)) + 0.5 for _ in range(4)]
    dstatistics = [np.abs(draw(6)) + 0.5 for _ in range(4)]
    activations = [tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.tanh,
                   tf.nn.sigmoid, lambda v: tf.nn.leaky_relu(v, 0.3)]

    def pad(v):
        return tf.pad(v, [[0, 0], [1, 2], [0, 1], [0, 0]])

    square, sb = tf.Variable(draw(6, 6)), tf.Variable(draw(6))

    def layer(v):
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(v, square), sb))

    def loop(x, image):
        return tf.while_loop(lambda i, v: i < 3,
                             lambda i, v: (i + 1, layer(v)), [0, x])[1]

    def gradient(x, image):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(x)))
        return tape.gradient(loss, [square, sb])

    cases = {
        "in a loop": (loop, "_FusedMatMul", "BiasAdd"),
        "in a branch": (
            lambda x, image: tf.cond(tf.reduce_sum(x) > 0, lambda: layer(x),
                                     lambda: layer(-x)),
            "_FusedMatMul", "BiasAdd"),
        "in a function": (
            lambda x, image: tf.function(layer, autograph=False)(x) * 2.0,
            "_FusedMatMul", "BiasAdd"),
        "with its gradient": (gradient, "_FusedMatMul", "BiasAdd"),
        "matmul + bias": (lambda x, image: tf.nn.bias_add(tf.matmul(x, w), b),
                          "_FusedMatMul", "BiasAdd"),
        "matmul + sum": (lambda x, image: b + tf.matmul(x, w),
                         "_FusedMatMul", "AddV2"),
        "matmul + constant": (
            lambda x, image: tf.matmul(x, w) + np.ones((1, 5), np.float32) * 3,
            "_FusedMatMul", "AddV2"),
        "matmul + scalar": (lambda x, image: tf.matmul(x, w) + 1.0, "AddV2",
                            "_FusedMatMul"),
        "matmul twice": (
            lambda x, image: (lambda p: (tf.nn.bias_add(p, b), p * 2.0))(
                tf.matmul(x, w)), "BiasAdd", "_FusedMatMul"),
        "conv + reshaped": (
            lambda x, image: tf.nn.relu(tf.nn.conv2d(image, filters, 2, "SAME")
                               + tf.reshape(fb, (1, 1, 1, 4))),
            "_FusedConv2D", "AddV2"),
        "pad + conv + bias": (
            lambda x, image: tf.nn.bias_add(
                tf.nn.conv2d(pad(image), filters, 2, "VALID"), fb),
            "_FusedConv2D", "Pad"),
        "pad + depthwise": (
            lambda x, image: tf.nn.depthwise_conv2d(
                pad(image), depth, [1, 2, 2, 1], "VALID"),
            "DepthwiseConv2dNative", "Pad"),
        "depthwise + bias": (
            lambda x, image: tf.nn.relu6(tf.nn.bias_add(tf.nn.depthwise_conv2d(
                image, depth, [1, 1, 1, 1], "SAME"), db)),
            "_FusedDepthwiseConv2dNative", "BiasAdd"),
        "conv + norm": (
            lambda x, image: tf.nn.elu(norm(
                tf.nn.conv2d(image, filters, 1, "SAME"), *learned)),
            "_FusedConv2D", "FusedBatchNormV3"),
        "constant conv + norm": (
            lambda x, image: tf.nn.relu(norm(
                tf.nn.conv2d(image, fixed, 1, "SAME"), *statistics)),
            "_FusedConv2D", "FusedBatchNormV3"),
        "constant depthwise + norm": (
            lambda x, image: norm(tf.nn.depthwise_conv2d(
                image, dfixed, [1, 1, 1, 1], "SAME"), *dstatistics),
            "_FusedDepthwiseConv2dNative", "FusedBatchNormV3"),
        "depthwise * factors + sum": (
            lambda x, image: tf.nn.depthwise_conv2d(
                image, dfixed, [1, 1, 1, 1], "SAME") * dstatistics[0]
            + dstatistics[1],
            "_FusedDepthwiseConv2dNative", "Mul"),
        "casts": (
            lambda x, image: tf.sqrt(tf.abs(tf.cast(tf.cast(x, tf.float64),
                                           tf.float32))), "Sqrt", "Cast"),
        "transposes": (
            lambda x, image: tf.sqrt(tf.abs(tf.transpose(tf.transpose(
                image, [0, 3, 1, 2]), [0, 2, 3, 1]))), "Sqrt", "Transpose"),
    }
    for activation, name in zip(activations, "Relu Relu6 Elu Tanh Sigmoid "
                                "LeakyRelu".split()):
        def run(x, image, activation=activation):
            return activation(tf.nn.bias_add(tf.matmul(x, w), b))
        cases[f"matmul + bias + {name}"] = (run, "_FusedMatMul", name)
    return arguments, cases


def rules():
    """Returns a description of the error of each case that fails."""
    import numpy as np
    import tensorflow as tf
    import graph_runs
    tf.config.set_soft_device_placement(False)
    wrong = {}
    with tf.device("/device:SIM:0"):
        arguments, cases = _cases()
        # TensorFlow's remapper would first decompose constant normalizations into
        # ops that its constant folding may or may not combine.
        tf.config.optimizer.set_experimental_options({"remapping": False})
        for name, (function, wanted, gone) in cases.items():
            before, old = graph_runs.run(function, arguments, fuse=False)
            after, new = graph_runs.run(function, arguments, fuse=True)
            if wanted not in new or gone in new:
                wrong[name] = f"{wanted}, no {gone}: runs {sorted(set(new))}"
            if any(op.startswith("_Fused") for op in old):
                wrong[name] = f"fused without the pass: {sorted(set(old))}"
            for a, b in zip(after, before):
                if not np.allclose(a, b, rtol=1e-5, atol=1e-5):
                    wrong[name] = f"differs by {np.abs(a - b).max()}"
    return wrong


def test_each_rule():
    result = harness.run(rules)
    assert result.ok, result
    assert result.value == {}


# ---- Models ------------------------------------------------------------------

def _mobile():
    """Returns a small model with the blocks of MobileNetV2."""
    import keras
    import models
    layers = keras.layers
    images, labels = models._batch((4, 16, 16, 3), 10, seed=11)
    inputs = keras.Input((16, 16, 3))
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(inputs)
    x = layers.Conv2D(8, 3, strides=2, activation="relu6")(x)
    for stride in (1, 2):
        y = layers.Conv2D(24, 1, activation="relu6")(x)
        if stride == 2:
            y = layers.ZeroPadding2D(((0, 1), (0, 1)))(y)
        y = layers.DepthwiseConv2D(
            3, strides=stride, activation="relu6",
            padding="same" if stride == 1 else "valid")(y)
        y = layers.Conv2D(8, 1)(y)
        x = layers.Add()([x, y]) if stride == 1 else y
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(10)(x))
    return models._compiled(model, "sgd", images, labels)


def model(name, steps):
    """Returns, without and with fusion: the results of inference, the losses of
    training, and the fused ops of both."""
    import tensorflow as tf
    import graph_runs
    import models
    tf.config.set_soft_device_placement(False)
    make = _mobile if name == "mobile" else lambda: getattr(models, name)("sgd")
    outcome = []
    for fuse in (False, True):
        with tf.device("/device:SIM:0"):
            network, inputs, labels = make()
            inferred, ops = graph_runs.run(
                lambda x, n=network: n(x, training=False), [inputs], fuse)
            step = lambda: float(network.train_on_batch(inputs, labels))
            loss, step_ops = graph_runs.executed(step)
            losses = [loss] + [step() for _ in range(steps - 1)]
        outcome.append([inferred[0].tolist(), losses, _fused(ops),
                        _fused(step_ops)])
    return outcome


def _fused(ops):
    return collections.Counter(op for op in ops if op.startswith("_Fused"))


# The fused ops of each model in inference, and in a training step.
MODELS = {
    "mlp": ({"_FusedMatMul": 3}, {"_FusedMatMul": 3}),
    "cnn": ({"_FusedConv2D": 2, "_FusedMatMul": 1},
            {"_FusedConv2D": 2, "_FusedMatMul": 1}),
    "mobile": ({"_FusedConv2D": 5, "_FusedDepthwiseConv2dNative": 2,
                "_FusedMatMul": 1},
               {"_FusedConv2D": 5, "_FusedDepthwiseConv2dNative": 2,
                "_FusedMatMul": 1}),
}


@pytest.fixture(name="outcomes", scope="module")
def _outcomes():
    results = harness.run_each(model, [[name, 50] for name in MODELS])
    return dict(zip(MODELS, results))


@pytest.mark.parametrize("name", list(MODELS))
def test_model_has_the_same_results_and_losses_when_fused(outcomes, name):
    import numpy as np
    result = outcomes[name]
    assert result.ok, result
    (inferred, losses, *none), (inferred2, losses2, *fused) = result.value
    assert none == [{}, {}]
    assert tuple(fused) == MODELS[name]
    np.testing.assert_allclose(inferred2, inferred, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(losses2, losses, rtol=1e-3, atol=1e-3)
    assert losses[-1] < losses[0]


# ---- Random graphs -----------------------------------------------------------

def random(seeds):
    import random_graphs
    return random_graphs.compare(seeds)


def test_random_graphs_compute_the_same():
    """Runs 40 graphs; random_graphs.py runs any number."""
    result = harness.run(random, list(range(40)))
    assert result.ok, result
    differences, fused = result.value
    assert max(differences) < 1e-5, differences
    assert fused > 30
