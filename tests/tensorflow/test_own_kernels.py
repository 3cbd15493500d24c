# SPDX-License-Identifier: Apache-2.0
"""Tests that a device needs no kernels for the ops that TensorFlow's rewriters insert
(passes/keep_to_own_kernels.h). Each case runs a function on a device that has kernels
for the ops of the function and no others (plugins/few_kernels.cc)."""

import harness
import numpy as np
import pytest

PLUGIN = harness.small_plugin_path("few_a")

# A name; the ops for which the device has kernels; the op that a rewriter inserts; a
# function of positive float[2, 3] tensors x, y, z.
CASES = {
    "sum": ("AddV2", "AddN", "x + y + z + tf.reshape(x, [2, 3])"),
    "old sum": ("Add", "AddN", "add(add(x, y), add(z, tf.reshape(x, [2, 3])))"),
    "square": ("Mul", "Square", "x * x"),
    "sum of equals": ("AddN", "Mul", "tf.add_n([x, x, x])"),
    "twice": ("AddV2", "Mul", "x + x"),
    "old twice": ("Add", "Mul", "add(x, x)"),
    "four times": ("AddV2", "Mul", "(x + x) + (x + x)"),
    "power 2": ("Pow", "Square", "x ** 2.0"),
    "power 0.5": ("Pow", "Sqrt", "x ** 0.5"),
    "power -0.5": ("Pow", "Rsqrt", "x ** -0.5"),
    "power -1": ("Pow", "Reciprocal", "x ** -1.0"),
    "quotient of root": ("RealDiv Sqrt", "Rsqrt", "x / tf.sqrt(y)"),
    "xdivy of root": ("Xdivy Sqrt Reciprocal", "Rsqrt",
                      "tf.math.xdivy(x, tf.sqrt(y))"),
    "log of sum": ("Log AddV2", "Log1p", "tf.math.log(x + 1.0)"),
    "log of softmax": ("Log Softmax", "LogSoftmax",
                       "tf.math.log(tf.nn.softmax(x))"),
    "exp minus 1": ("Exp Sub", "Expm1", "tf.exp(x) - 1.0"),
    "square of difference": ("Square Sub", "SquaredDifference",
                             "tf.square(x - y)"),
    "plus negative": ("AddV2 Neg", "Sub", "x + -y"),
    "minus negative": ("Sub Neg", "AddV2", "x - -y"),
    "max of negative": ("Max Neg", "Min", "tf.reduce_max(-x, 1)"),
    "min of negative": ("Min Neg", "Max", "tf.reduce_min(-x, 1)"),
    "zero minus": ("Sub", "Neg", "zeros - x"),
    "one by": ("RealDiv", "Reciprocal", "ones / x"),
    "times ones": ("Mul", "BroadcastTo", "row(x) * ones"),
    "plus zeros": ("AddV2", "BroadcastTo", "row(x) + zeros"),
    "minus zeros": ("Sub", "BroadcastTo", "row(x) - zeros"),
    "by ones": ("RealDiv", "BroadcastTo", "row(x) / ones"),
}

# Releases in which TensorFlow no longer makes the rewrite.
NOT_INSERTED_SINCE = {"one by": [2, 22]}


def compute(expression):
    """Returns the expression's value on the device, its value on the CPU, and the error
    on the device if no plug-in's passes run."""
    import numpy as np
    import tensorflow as tf
    inputs = [tf.constant(value) for value in (
        [[0.5, 1.0, 2.0], [3.0, 0.25, 1.5]], [[2.0, 0.5, 1.0], [0.75, 4.0, 3.0]],
        [[1.0, 1.5, 0.5], [2.0, 0.5, 0.25]])]

    def run(device):
        @tf.function
        def function(*inputs):
            names = dict(zip("xyz", map(tf.identity, inputs)), tf=tf,
                         ones=np.ones([2, 3], np.float32),
                         zeros=np.zeros([2, 3], np.float32),
                         add=lambda x, y: tf.raw_ops.Add(x=x, y=y),
                         row=lambda x: tf.reshape(x, [6])[:3])
            return tf.identity(eval(expression, names))  # pylint: disable=eval-used

        with tf.device(device):
            return function(*inputs).numpy().tolist()

    expected = run("/device:CPU:0")
    tf.config.set_soft_device_placement(False)
    result = run("/device:FEW_A:0")
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": False})
    try:
        error = str(run("/device:FEW_A:0"))
    except tf.errors.OpError as failure:
        error = str(failure)
    return result, expected, error, [int(n) for n in tf.__version__.split(".")[:2]]


@pytest.mark.parametrize("name", CASES)
def test_rewritten_ops_have_kernels(name):
    kernels, inserted, expression = CASES[name]
    result = harness.run(compute, expression, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(PLUGIN),
        "FEW_A_KERNELS": kernels})
    assert result.ok, result
    value, expected, error, version = result.value
    np.testing.assert_allclose(value, expected, 1e-6, 1e-6)
    if version < NOT_INSERTED_SINCE.get(name, [99]):
        # The rewriter does what the pass undoes.
        assert inserted in error
