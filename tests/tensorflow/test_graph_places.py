# SPDX-License-Identifier: Apache-2.0
"""Fusion in graphs from other sources: a SavedModel that is loaded and served, and
replicas of MirroredStrategy. The results are the same with and without fusion, and
the graphs that ran have fused ops."""

import collections

import harness
import pytest


def _fused(ops):
    return collections.Counter(op for op in ops if op.startswith("_Fused"))


def saved_model():
    """Returns the results of the loaded function and of the served signature, each
    with its fused ops, without and with fusion."""
    import tempfile

    import graph_runs
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[0.5, -1.0], [2.0, 0.25]])
            self.b = tf.Variable([0.1, -0.2])

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def __call__(self, x):
            product = tf.nn.bias_add(tf.matmul(x, self.w), self.b)
            return {"y": tf.nn.relu(product) * 2}

    outcome = []
    with tf.device("/device:SIM:0"), tempfile.TemporaryDirectory() as folder:
        layer = Layer()
        tf.saved_model.save(layer, folder, signatures=layer.__call__)
        for fuse in (False, True):
            graph_runs.set_fusion(fuse)
            loaded = tf.saved_model.load(folder)
            serve = loaded.signatures["serving_default"]
            x = tf.constant([[1.0, 2.0], [-3.0, 0.5]])
            for call in (lambda: loaded(x), lambda: serve(x=x)):
                result, ops = graph_runs.executed(call)
                outcome.append([fuse, result["y"].numpy().tolist(),
                                _fused(ops)])
    return outcome


def mirrored():
    """Returns the losses of three steps on two devices, and the fused ops, without
    and with fusion."""
    import graph_runs
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    outcome = []
    for fuse in (False, True):
        graph_runs.set_fusion(fuse)
        strategy = tf.distribute.MirroredStrategy(
            ["SIM:0", "SIM:1"],
            cross_device_ops=tf.distribute.ReductionToOneDevice())
        with strategy.scope():
            w = tf.Variable([[0.5, -1.0], [2.0, 0.25]])
            b = tf.Variable([0.1, -0.2])

        @tf.function
        def step(x, strategy=strategy, w=w, b=b):
            def replica(x):
                with tf.GradientTape() as tape:
                    y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
                    loss = tf.reduce_sum(tf.square(y - 1))
                context = tf.distribute.get_replica_context()
                total = context.all_reduce(tf.distribute.ReduceOp.SUM,
                                           tape.gradient(loss, [w, b]))
                for variable, gradient in zip((w, b), total):
                    variable.assign_sub(0.01 * gradient)
                return loss
            losses = strategy.run(replica, args=(x,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, losses,
                                   axis=None)

        x = tf.constant([[1.0, 2.0], [-3.0, 0.5]])
        losses, ops = graph_runs.executed(
            lambda step=step, x=x: [float(step(x)) for _ in range(3)])
        outcome.append([fuse, losses, _fused(ops)])
    return outcome


@pytest.mark.parametrize("run, replicas", [(saved_model, 1), (mirrored, 2)])
def test_fused_and_unfused_graphs_compute_the_same(run, replicas):
    import numpy as np
    result = harness.run(run, env={"CPU_SIM_DEVICES": "2"})
    assert result.ok, result
    want = result.value[0][1]
    for fuse, value, fused in result.value:
        np.testing.assert_allclose(value, want, rtol=1e-5)
        if not fuse:
            assert fused == {}
        else:
            # The metadata lists the graph once for each run of the function.
            assert fused["_FusedMatMul"] >= replicas
            assert fused["_FusedMatMul"] % replicas == 0
