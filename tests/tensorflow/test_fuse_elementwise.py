# SPDX-License-Identifier: Apache-2.0
"""FuseElementwise, the pass that fuses element-wise ops on every device with a backend:
functions and models have the same results with and without it, and run fewer ops."""

import os

import harness
import numpy as np
import pytest

REFERENCE = str(harness.small_plugin_path("reference_device"))
FUSED = "TfplugFusedMapV2"
REDUCED = "TfplugFusedReduceV3"
PRODUCT = "TfplugFusedMatMulV2"
# Ops without a launch.
BOOKKEEPING = {
    "_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv", "Const", "NoOp",
    "Identity", "ReadVariableOp", "AssignVariableOp", "VarHandleOp",
    "VarIsInitializedOp", "Reshape", "Switch", "Merge", "Enter", "Exit",
    "NextIteration", "LoopCond"}
# Launches of their own from 2.22 on, where LowerVariableUpdates does nothing.
UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")


def _device(tf):
    return [d.device_type for d in tf.config.list_physical_devices()
            if d.device_type in ("SIM", "REFERENCE")][0]


def _set_fusion(fuse):
    os.environ["TFPLUG_FUSION"] = "1" if fuse else "0"


def _run(tf, function, arguments, fuse):
    """Returns the results as arrays, and the ops with a launch."""
    import graph_runs
    _set_fusion(fuse)
    traced = tf.function(function, autograph=False, jit_compile=False)
    device = _device(tf)
    with tf.device(f"/device:{device}:0"):
        result, ops = graph_runs.executed(lambda: [
            x.numpy() for x in tf.nest.flatten(traced(*arguments))])
    return result, [op for op in ops if op not in BOOKKEEPING]


def _on_cpu(tf, function, arguments):
    with tf.device("CPU:0"):
        results = tf.function(function, autograph=False)(*map(tf.identity, arguments))
        return [x.numpy() for x in tf.nest.flatten(results)]


# ---- Functions ---------------------------------------------------------------

def _cases(tf):
    """Returns {name: (function, arguments, the number of fused maps, and, if not 0, of
    fused reductions and of products)}."""
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    x, y, row, column = draw(4, 6), draw(4, 6), draw(6), draw(4, 1)
    variable = tf.Variable(draw(4, 6))

    def shared(x, y):
        a = tf.tanh(x + y)
        return a, tf.exp(a) * y, tf.reduce_sum(a)

    def mixed(x, y):
        low = tf.cast(x, tf.float16) * tf.cast(y, tf.float16)
        return tf.cast(tf.tanh(low + 0.1), tf.float32) * 2.0, low

    def integers(x):
        n = tf.cast(x * 10.0, tf.int64)
        return tf.where(n % 3 == 0, x, -x), n, tf.logical_and(n > 2, x < 0.5)

    def gradient(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(tf.sigmoid(x * y) * tf.tanh(x) + tf.nn.softplus(y))
        return tape.gradient(loss, [x, y])

    def loop(x):
        return tf.while_loop(
            lambda i, v, w: i < 3,
            lambda i, v, w: (i + 1, tf.tanh(v) * 0.5 + w, tf.sigmoid(w) * tf.tanh(v)),
            [0, x, x + 1.0])[1:]

    def branch(x, y):
        a = tf.tanh(x) * 2.0
        return tf.cond(tf.reduce_sum(x) > 0, lambda: (tf.exp(a) * y + a, a),
                       lambda: (a - 1.0, a * y))

    def update(x):
        variable.assign(x)
        before = tf.tanh(variable * x) + 1.0
        with tf.control_dependencies([before]):
            variable.assign(tf.exp(before) * 0.25)
        return tf.exp(variable.read_value() - x) * 2.0, before

    def dense(activation):
        def layers(x, first, row, second, column):
            hidden = activation(tf.matmul(x, first) + row)
            return activation(tf.matmul(hidden, second, transpose_b=True) * column)
        return layers

    def own(x):
        return x * tf.tanh(tf.nn.softplus(x)) + 0.1 * tf.minimum(x, 0.0)

    def dense_gradient(activation):
        def layers(*arguments):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                loss = tf.reduce_sum(tf.square(dense(activation)(*arguments)))
            return tape.gradient(loss, arguments)
        return layers

    def recurrent(x, w):
        return tf.while_loop(
            lambda i, h: i < 3,
            lambda i, h: (i + 1, tf.tanh(tf.matmul(x, w) + tf.matmul(h, w)) * 0.5),
            [0, x])[1]

    def residual(x, w):
        y = tf.matmul(x, w)
        return y, tf.exp(y) + x

    weights = [x, draw(6, 6), row, draw(5, 6), column]

    def unknown(x, y, row):
        v = tf.tanh(x) * y  # y may be broadcast, or broadcast x
        return v, tf.exp(v) + row

    dynamic = tf.function(
        unknown, autograph=False, jit_compile=False, input_signature=[
            tf.TensorSpec([None, None]), tf.TensorSpec([None, None]),
            tf.TensorSpec([None])])
    dynamic_matmul = tf.function(
        lambda x, w, y: tf.exp(tf.matmul(x, w)) + y, autograph=False,
        jit_compile=False, input_signature=[tf.TensorSpec([None, None])] * 3)
    dynamic_sum = tf.function(
        lambda x, y: tf.exp(tf.reduce_sum(x, 1, True)) + y, autograph=False,
        jit_compile=False, input_signature=[tf.TensorSpec([None, None])] * 2)
    products = {
        f"dense layers with {name}{suffix}": (make(f), weights, 0, 0, count)
        for name, f, counts in [("relu", tf.nn.relu, (2, 3)),
                                ("gelu", tf.nn.gelu, (2, 3)), ("own", own, (2, 3))]
        for suffix, make, count in [("", dense, counts[0]),
                                    ("'s gradient", dense_gradient, counts[1])]}
    return {
        **products,
        "products in a batch": (
            lambda x, w, r: tf.exp(tf.matmul(x, w, adjoint_a=True) * 0.1) - r,
            [draw(2, 6, 4), draw(1, 6, 3), draw(3)], 0, 0, 1),
        "a product in a loop": (recurrent, [x, weights[1]], 0, 0, 1),
        "a product with other users": (residual, [x, weights[1]], 1),
        "a dynamic product": (
            lambda *a: dynamic_matmul(*a), [x, weights[1], x], 0, 0, 1),
        "a product that is broadcast": (
            lambda *a: dynamic_matmul(*a), [x[:1], weights[1], y], 0, 0, 1),
        "a chain": (lambda x: tf.tanh(tf.exp(x * 0.5) + 1.0) - x, [x], 1),
        "several outputs": (shared, [x, y], 1),
        "a row": (lambda x, r: tf.nn.relu(x * r + r), [x, row], 1),
        "a row and a column": (lambda r, c: tf.exp(r * c) + r, [row, column], 1),
        "scalars": (lambda x: tf.exp(x * x[0, 0]) + x[1, 1], [x], 1),
        "a bias": (lambda x, r: tf.tanh(tf.nn.bias_add(tf.nn.softmax(x), r)) * 2.0,
                   [x, row], 1),
        "empty": (lambda x: tf.exp(tf.tanh(x)), [x[:0]], 1),
        "mixed precision": (mixed, [x, y], 1),
        "integers and bools": (integers, [x], 1),
        "a gradient": (gradient, [x, y], 1),
        "a reduction": (lambda x, y: tf.reduce_sum(tf.square(x - y), 1), [x, y], 0, 1),
        "reductions": (lambda x, y: tf.reduce_max(tf.abs(x - tf.reduce_mean(x * y))),
                       [x, y], 0, 2),
        "a norm": (lambda x: tf.sqrt(tf.reduce_sum(x * x, 0, True) + 1e-3), [x], 0, 1),
        "a deviation": (
            lambda x, r: 1.0 / (tf.math.reduce_std(x, 1, keepdims=True) + r[0]),
            [x, row], 0, 1),
        "ops after reductions": (
            lambda x, r, c: (tf.tanh(tf.reduce_max(x, 0)) * r,
                             tf.exp(tf.reduce_mean(x, 1, True)) - c),
            [x, row, column], 0, 2),
        "ops after a reduction, broadcast": (
            lambda *a: dynamic_sum(*a), [x, y], 0, 1),
        "a reduction of nothing": (lambda x: tf.exp(tf.reduce_sum(x, 0)), [x[:0]], 0, 1),
        "a reduction with other users": (
            lambda x: (lambda s: (s, tf.exp(s) * 2.0))(tf.reduce_sum(x, 1)), [x], 1),
        "a reduction of no columns": (
            lambda x, y: tf.tanh(tf.reduce_sum(x, 1)) + y, [x[:, :0], x[:, 0]], 0, 1),
        "a loop": (loop, [x], 1),
        "a branch": (branch, [x, y], 2, 1),
        "the other branch": (branch, [-np.abs(x), y], 2, 1),
        "control edges": (update, [x], 3),
        "unknown shapes, equal": (dynamic.python_function, [x, y, row], 1),
        "dynamic": (lambda *a: dynamic(*a), [x, y, row], 1),
        "dynamic, broadcast": (lambda *a: dynamic(*a), [x, column, row], 1),
    }


def functions():
    """Returns a description of what is wrong with each case."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    wrong = {}
    cases = _cases(tf)
    for name, (function, arguments, *counts) in cases.items():
        arguments = [tf.constant(a) for a in arguments]
        before, old = _run(tf, function, arguments, fuse=False)
        after, new = _run(tf, function, arguments, fuse=True)
        if any(not np.array_equal(a, b, equal_nan=True)
               for a, b in zip(before, after)):
            wrong[name] = f"differs: {before} {after}"
        have = [new.count(FUSED), new.count(REDUCED), new.count(PRODUCT)]
        if len(counts) == 3:
            for a, b in zip(after, _on_cpu(tf, function, arguments), strict=True):
                if not np.allclose(a, b, rtol=1e-4, atol=1e-4):
                    wrong[name] = f"differs from the CPU: {a} {b}"
            if _device(tf) == "SIM":  # whose own rules run before
                have = counts
        if FUSED in old or have != (counts + [0, 0])[:3] or len(new) >= len(old):
            wrong[name] = f"runs {sorted(new)}, without fusion {sorted(old)}"
    return wrong


@pytest.mark.parametrize("plugin", ["cpu_sim", "reference"])
def test_functions(plugin):
    env = {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": REFERENCE}
    result = (harness.run(functions) if plugin == "cpu_sim" else
              harness.run(functions, env=env, plugin=False))
    assert result.ok, result
    assert result.value == {}


def fetched():
    """Returns the values of two ops of a cluster that a session fetches."""
    import tensorflow as tf
    _set_fusion(True)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/device:SIM:0"):
            x = tf.compat.v1.placeholder(tf.float32, [3])
            a = tf.tanh(x * 2.0)
            b = tf.exp(a + 1.0) * a
        return [v.tolist() for v in session.run([a, b], {x: [0.0, 1.0, 2.0]})], [
            v.tolist() for v in session.run([b], {a: [0.0, 1.0, 2.0]})]


def test_fetched_and_fed_ops():
    result = harness.run(fetched)
    assert result.ok, result
    (a, b), [c] = result.value
    np.testing.assert_allclose(a, np.tanh([0.0, 2.0, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(b, np.exp(np.add(a, 1)) * a, rtol=1e-6)
    np.testing.assert_allclose(c, np.exp([1.0, 2.0, 3.0]) * [0, 1, 2], rtol=1e-6)


# ---- Models ------------------------------------------------------------------

def _mlp(models):
    import keras
    layers = [keras.layers.Dense(32, "relu") for _ in range(4)]
    model = keras.Sequential([keras.Input((20,)), *layers, keras.layers.Dense(10)])
    images, labels = models._batch((16, 20), 10, seed=3)
    return models._compiled(model, "adam", images, labels)


def _step_ops(step):
    """Returns the ops with a launch in the graph of a step, which has not run."""
    import graph_runs
    _, functions = graph_runs.recorded(step)
    return [node.op for node in max(functions, key=len) if node.op not in BOOKKEEPING]


def train(name):
    """Returns, without and with fusion, the losses of three steps, the sum of each
    weight, and the number of ops with a launch in a step, except for UPDATES, and of
    fused ones."""
    import models
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    outcome = []
    for fuse in (False, True):
        _set_fusion(fuse)
        with tf.device("/device:SIM:0"):
            model, inputs, labels = (
                _mlp(models) if name == "mlp" else getattr(models, name)())
        # Outside of the scope: in Keras 2, the step creates a dataset on the host.
        losses = []
        step = lambda m=model, to=losses: to.append(
            float(m.train_on_batch(inputs, labels)))
        ops = _step_ops(step)
        step()
        step()
        outcome.append([
            losses, [float(np.sum(w.numpy(), dtype=np.float64))
                     for w in model.trainable_variables],
            len([op for op in ops if op not in UPDATES]), ops.count(FUSED)])
    return outcome


def test_models():
    # The largest part of the launches that fusion may leave: a third of those of
    # Adam with ten variables.
    most = {"mlp": 1 / 3, "lstm": 0.65}
    for name, result in zip(most, harness.run_each(train, [[n] for n in most])):
        assert result.ok, result
        (losses, weights, count, unfused), (fused_losses, fused_weights,
                                            fused_count, fused) = result.value
        assert unfused == 0 and fused > 0, name
        assert fused_losses == losses, name
        assert fused_weights == weights, name
        assert fused_count <= most[name] * count, (name, fused_count, count)


def own_loop():
    """Returns, without and with fusion, the losses of a step that is called as users'
    own loops call it, the variables, and the numbers of reads and of launches."""
    import graph_runs
    import keras
    import tensorflow as tf
    random = np.random.default_rng(0)
    x = random.normal(size=(8, 6)).astype(np.float32)
    outcome = []
    for fuse in (False, True):
        _set_fusion(fuse)
        with tf.device("/device:SIM:0"):
            w, b = tf.Variable(x[:6, :4] * 0.1), tf.Variable(x[0, :4])
            optimizer = keras.optimizers.Adam(0.1)
            optimizer.build([w, b])

            @tf.function(autograph=False, jit_compile=False)
            def step(x, w=w, b=b, optimizer=optimizer):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.tanh(tf.matmul(x, w) + b))
                optimizer.apply(tape.gradient(loss, [w, b]), [w, b])
                # A read of what was assigned, and one of a variable by itself.
                return loss, w[0, 0] + tf.reduce_sum(b)

            def run(step=step):
                return [v.numpy().tolist() for v in step(tf.constant(x))]
            first, functions = graph_runs.recorded(run)
            ops = [node.op for node in max(functions, key=len)]
            outcome.append([[first, run(), run()], w.numpy().tolist(),
                            ops.count("ReadVariableOp"),
                            len([op for op in ops if op not in BOOKKEEPING])])
    return outcome


def test_own_loops():
    result = harness.run(own_loop)
    assert result.ok, result
    (*values, reads, launches), (*fused_values, fused_reads, fused) = result.value
    assert fused_values == values
    if harness.lets_kernels_update_variables():  # which are not fused
        assert fused_reads <= reads and fused < launches
        return
    # The rate, the counter, two moments for each variable and the variables.
    assert fused_reads <= 8 < reads
    assert fused <= launches / 2


# ---- Several plug-ins --------------------------------------------------------

def two_plugins(path):
    """Returns what a function computes on the devices of two plug-ins, the same on the
    CPU, and the fused ops on each device."""
    import graph_runs
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(path)
    tf.config.set_soft_device_placement(False)
    arguments = [tf.constant([[1.0, -2.0]]), tf.constant([[0.5, 0.25], [1.0, -0.5]])]

    def on(devices):
        @tf.function(autograph=False, jit_compile=False)
        def step(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = x
                for device in devices:
                    with tf.device(device):
                        y = tf.exp(tf.tanh(tf.matmul(y, w) + 1.0) * y) - y
            return [y, *tape.gradient(y, [x, w])]

        return graph_runs.recorded(
            lambda: [v.numpy().tolist() for v in step(*arguments)])

    values, functions = on(["SIM:0", "REFERENCE:0", "SIM:0"])
    fused = {(node.device.split(":")[-2], node.op) for nodes in functions
             for node in nodes if node.op.startswith("TfplugFused")}
    return values, on(["CPU:0"] * 3)[0], sorted(fused)


def test_two_plugins_fuse():
    result = harness.run(two_plugins, REFERENCE)
    assert result.ok, result
    values, expected, fused = result.value
    for have, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4)
    assert {tuple(pair) for pair in fused} >= {("SIM", PRODUCT), ("REFERENCE", PRODUCT)}
