# SPDX-License-Identifier: Apache-2.0
"""TFPLUG_LOG_FALLBACK=1 logs the ops that TensorFlow places on the CPU."""

import harness

# Has a kernel for AddV2 of float32 only.
PLUGIN = harness.small_plugin_path("sum_device")


def run_twice():
    """Runs an op for which the device has no kernel, in two functions."""
    import tensorflow as tf

    # No operand is added to itself, which TensorFlow would rewrite to Mul.
    def compute(x, y):
        z = tf.math.erfinv(x + y)
        return tf.math.erfinv(z + y) + x

    for shape in ([2], [3]):
        result = tf.function(compute)(tf.fill(shape, 0.1), tf.fill(shape, 0.2))
        assert "SUM" in result.device, result.device
    return "done"


def lines_of(log):
    return [line for line in log.splitlines() if "runs on the CPU" in line]


def run(**env):
    result = harness.run(run_twice, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(PLUGIN), **env})
    assert result.ok, result
    return lines_of(result.log)


def test_each_op_is_logged_once():
    [line] = run(TFPLUG_LOG_FALLBACK="1")
    assert "Erfinv (T=float)" in line
    assert "this library has no kernel for it on SUM" in line


def test_nothing_is_logged_by_default():
    assert not run()
