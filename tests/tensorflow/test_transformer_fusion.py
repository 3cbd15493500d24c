# SPDX-License-Identifier: Apache-2.0
"""The passes that fuse attention, layer normalization and activations: Keras layers
and transformers compute the same with and without them, in inference and in
training, and the graph that runs has the expected fused ops."""

import collections

import harness
import pytest


def _fused(ops):
    return collections.Counter(op for op in ops if op.startswith("Tfplug"))


# ---- One form at a time ------------------------------------------------------

def _forms():
    """Returns arguments, and for each form's name (function, fused op, op that must
    not run any more)."""
    import numpy as np
    import tensorflow as tf
    import keras
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    q, k, v = draw(2, 5, 3, 4), draw(2, 7, 3, 4), draw(2, 7, 3, 6)
    mask = random.uniform(size=(2, 1, 5, 7)) < 0.7
    bias = draw(1, 3, 5, 7)
    x, gate = draw(2, 5, 8), draw(2, 5, 8)

    def heads(value):
        return tf.transpose(value, (0, 2, 1, 3))

    def attend(q, k, v, adapt=lambda scores: scores):
        scores = tf.einsum("btnh,bsnh->bnts", q * 0.5, k)
        return tf.einsum("bnts,bsnh->btnh", tf.nn.softmax(adapt(scores)), v)

    def attend_heads(q, k, v):
        scores = tf.matmul(heads(q), heads(k), transpose_b=True) / 2.0
        return tf.matmul(tf.nn.softmax(scores), heads(v))

    def masked(scores):
        return tf.where(mask, scores, -1e9)

    norm = keras.layers.LayerNormalization(epsilon=0.01)
    norm.build(x.shape)
    norm.set_weights([draw(8), draw(8)])

    forms = {
        "attention": (lambda q, k, v, x, gate: attend(q, k, v),
                      "TfplugAttention", "Softmax"),
        "attention with a mask": (
            lambda q, k, v, x, gate: attend(q, k, v, masked),
            "TfplugAttention", "SelectV2"),
        "attention with a bias": (
            lambda q, k, v, x, gate: attend(q, k, v, lambda s: s + bias),
            "TfplugAttention", "Softmax"),
        "attention by BatchMatMul": (
            lambda q, k, v, x, gate: attend_heads(q, k, v),
            "TfplugAttention", "Softmax"),
        "attention of one query": (
            lambda q, k, v, x, gate: attend(q[:, :1], k, v),
            "TfplugAttention", "Softmax"),
        "layer normalization": (lambda q, k, v, x, gate: norm(x),
                                "TfplugLayerNorm", "Rsqrt"),
        "exact GELU": (lambda q, k, v, x, gate: keras.activations.gelu(x),
                       "TfplugGelu", "Mul"),
        "GELU with tanh": (
            lambda q, k, v, x, gate: tf.nn.gelu(x, approximate=True),
            "TfplugGeluTanh", "Tanh"),
        "SiLU": (lambda q, k, v, x, gate: tf.nn.silu(x), "TfplugSilu",
                 "Sigmoid"),
        "SwiGLU": (lambda q, k, v, x, gate: tf.nn.silu(gate) * x,
                   "TfplugSwiglu", "Mul"),
        "SwiGLU, broadcast": (
            lambda q, k, v, x, gate: tf.nn.silu(gate[:, :1]) * x[0],
            "TfplugSwiglu", "Mul"),
    }
    return [q, k, v, x, gate], forms


def forms():
    """Returns a description of the error of each form that fails."""
    import numpy as np
    import tensorflow as tf
    import graph_runs
    tf.config.set_soft_device_placement(False)
    wrong = {}
    with tf.device("/device:SIM:0"):
        arguments, cases = _forms()
        for name, (function, wanted, gone) in cases.items():
            before, old = graph_runs.run(function, arguments, fuse=False)
            after, new = graph_runs.run(function, arguments, fuse=True)
            if wanted not in new or gone in new:
                wrong[name] = f"{wanted}, no {gone}: runs {sorted(set(new))}"
            elif _fused(old):
                wrong[name] = f"fused without the pass: {sorted(set(old))}"
            for a, b in zip(after, before):
                if not np.allclose(a, b, rtol=1e-5, atol=1e-5):
                    wrong[name] = f"differs by {np.abs(a - b).max()}"
    return wrong


def test_each_form():
    result = harness.run(forms)
    assert result.ok, result
    assert result.value == {}


# ---- Transformers ------------------------------------------------------------

def _transformer(gelu, dropout, gated, frozen):
    """Returns a classifier of vectors with two blocks of attention and dense
    layers."""
    import keras
    import models
    layers = keras.layers
    images, labels = models._batch((4, 12, 16), 5, seed=3)
    inputs = keras.Input((12, 16))
    x = inputs
    for _ in range(2):
        attended = layers.MultiHeadAttention(2, 8, dropout=dropout)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        if gated:
            hidden = layers.Multiply()([layers.Dense(32, "swish")(x),
                                        layers.Dense(32)(x)])
        else:
            hidden = layers.Dense(32, gelu)(x)
        hidden = layers.Dense(16)(hidden)
        x = layers.LayerNormalization()(layers.Add()([x, hidden]))
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(inputs, layers.Dense(5)(x))
    if frozen:
        for layer in model.layers[:-1]:
            layer.trainable = False
    return models._compiled(model, "sgd", images, labels)


def transformer(gelu, dropout, gated, frozen, steps):
    """Returns, without and with fusion: the results of inference, the losses of
    training, and the fused ops of both."""
    import numpy as np
    import tensorflow as tf
    import keras
    import graph_runs
    # Keras 2 places its counters of steps, which are int64, on the CPU.
    tf.config.set_soft_device_placement(keras.__version__.startswith("2"))
    if gelu == "tanh":
        gelu = lambda v: tf.nn.gelu(v, approximate=True)
    outcome = []
    for fuse in (False, True):
        with tf.device("/device:SIM:0"):
            network, inputs, labels = _transformer(gelu, dropout, gated, frozen)
            inferred, ops = graph_runs.run(
                lambda x, n=network: n(x, training=False), [inputs], fuse)
            unknown_batch = tf.function(
                lambda x, n=network: n(x, training=False), autograph=False,
                input_signature=[tf.TensorSpec((None, *inputs.shape[1:]))])
            again, _ = graph_runs.executed(
                lambda f=unknown_batch: f(inputs).numpy())
            np.testing.assert_allclose(again, inferred[0], rtol=1e-4, atol=1e-4)
            step = lambda: float(network.train_on_batch(inputs, labels))
            loss, step_ops = graph_runs.executed(step)
            losses = [loss] + [step() for _ in range(steps - 1)]
        outcome.append([inferred[0].tolist(), losses, _fused(ops),
                        _fused(step_ops)])
    return outcome


# (activation, dropout, gated, frozen): the fused ops in inference and in a training
# step. The gradient of GELU uses its intermediate values. With dropout, attention is
# not a function of its operands. Below frozen layers, there are no gradients.
_ALL = {"TfplugAttention": 2, "TfplugLayerNorm": 4, "TfplugGelu": 2}
TRANSFORMERS = {
    "exact": (["gelu", 0.0, False, False],
              _ALL, {"TfplugAttention": 2, "TfplugLayerNorm": 4}),
    "tanh and dropout": (
        ["tanh", 0.1, False, False],
        {"TfplugAttention": 2, "TfplugLayerNorm": 4, "TfplugGeluTanh": 2},
        {"TfplugLayerNorm": 4}),
    "gated": (["", 0.0, True, False],
              {"TfplugAttention": 2, "TfplugLayerNorm": 4, "TfplugSwiglu": 2},
              {"TfplugAttention": 2, "TfplugLayerNorm": 4, "TfplugSilu": 2}),
    "frozen": (["gelu", 0.0, False, True], _ALL, _ALL),
}
# In Keras 2, the layer normalization of training is a FusedBatchNormV3, whose
# gradient uses more outputs.
_KERAS2 = {
    "exact": {"TfplugAttention": 2},
    "tanh and dropout": {},
    "gated": {"TfplugAttention": 2, "TfplugSilu": 2},
    "frozen": _ALL,
}


def keras_version():
    import keras
    return keras.__version__


@pytest.fixture(name="outcomes", scope="module")
def _outcomes():
    cases = [[*arguments, 20] for arguments, _, _ in TRANSFORMERS.values()]
    results = harness.run_each(transformer, cases)
    version = harness.run(keras_version).value
    return dict(zip(TRANSFORMERS, results)), version


@pytest.mark.parametrize("name", list(TRANSFORMERS))
def test_transformer_has_the_same_results_and_losses_when_fused(outcomes, name):
    import numpy as np
    results, version = outcomes
    result = results[name]
    assert result.ok, result
    _, inference, training = TRANSFORMERS[name]
    if version.startswith("2"):
        training = _KERAS2[name]
    (inferred, losses, *none), (inferred2, losses2, *fused) = result.value
    assert none == [{}, {}]
    assert fused == [inference, training]
    np.testing.assert_allclose(inferred2, inferred, rtol=1e-4, atol=1e-4)
    if "dropout" not in name:
        np.testing.assert_allclose(losses2, losses, rtol=1e-3, atol=1e-3)
        assert losses2[-1] < losses2[0]


# ---- Ops of our own ----------------------------------------------------------

def test_two_plugins_can_register_the_same_op():
    result = harness.run(_load_twice)
    assert result.ok, result
    assert result.value
    assert "TfplugGelu" not in result.log


def _load_twice():
    """Loads a copy of a library that registers the ops; TensorFlow would abort if
    the copy registered them again."""
    import pathlib
    import shutil
    import tempfile
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry
    known = op_def_registry.get("TfplugGelu") is not None
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.so"
        shutil.copy(harness.plugin_path(), copy)
        tf.load_library(str(copy))
    return known
