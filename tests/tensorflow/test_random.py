# SPDX-License-Identifier: Apache-2.0
"""Random ops agree with TensorFlow's CPU beyond the op sweep's small tensors."""

import harness
import pytest


def _largest_difference(op, dtype):
    import tensorflow as tf
    numbers = []
    for device in ("CPU", "SIM"):
        with tf.device(device):
            numbers.append(getattr(tf.raw_ops, op)(
                shape=[500000], dtype=dtype, seed=1234, seed2=5))
    with tf.device("CPU"):
        return float(tf.reduce_max(abs(numbers[0] - numbers[1])))


@pytest.mark.parametrize("op", ["RandomStandardNormal", "TruncatedNormal"])
def test_normals(op):
    """An angle that is rounded twice differs by up to 2.5e-6 in the result."""
    result = harness.run(_largest_difference, op, "float32")
    assert result.ok and result.value <= 1e-6, result


def _without_seed():
    import tensorflow as tf
    uniform = lambda **seeds: tf.raw_ops.RandomUniform(  # pylint: disable=C3001
        shape=[2], dtype=tf.float32, **seeds)
    drawn = uniform(seed=1).device
    tf.config.experimental.enable_op_determinism()
    uniform(seed=2)
    try:
        uniform()
    except tf.errors.InvalidArgumentError as error:
        return [drawn, str(error)]
    return [drawn, "nothing"]


def test_determinism_needs_seeds():
    result = harness.run(_without_seed)
    assert result.ok, result
    device, error = result.value
    assert "SIM" in device
    assert "When determinism is enabled, random ops must have a seed" in error


def _seeds_from_variables(device):
    """Returns numbers whose seeds are computed from a variable, as Keras' layers do, and
    how many values the graph copies from the device to the host."""
    import tensorflow as tf
    from tensorflow.python.eager import context
    context.context().enable_run_metadata()
    drawn = []
    with tf.device(device):
        state = tf.Variable(tf.constant([3, -7], "int64"))

        @tf.function
        def draw():
            seed = state.assign_add([1, 1 << 40])
            return (tf.random.stateless_uniform([5, 3], seed),
                    tf.random.stateless_uniform([7], tf.cast(seed, "int32")))

        for _ in range(3):
            drawn += [t.numpy().tobytes().hex() for t in draw()]
    metadata = context.context().export_run_metadata()
    return drawn, sum(node.op == "_HostRecv" and "CPU" not in
                      node.attr["send_device"].s.decode()
                      for functions in metadata.function_graphs
                      for graph in functions.partition_graphs for node in graph.node)


def test_seeds_from_variables_stay_on_the_device():
    expected, _ = harness.run(_seeds_from_variables, "CPU").value
    drawn, copies = harness.run(_seeds_from_variables, "SIM").value
    assert drawn == expected
    assert copies == 0
