# SPDX-License-Identifier: Apache-2.0
"""Uploads of constants do not overtake kernels. The device starts each addition a
second late (tests/tensorflow/plugins/late_device.cc). A second build of it turns off
the ordering, to prove that the uploads would otherwise overtake them."""

import harness


def add_before_a_function_runs():
    """Starts an addition, and reuses its input's memory for a function's constant."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:LATE:0"):
        @tf.function(jit_compile=False)
        def constant():
            return tf.identity(tf.constant([5.0] * 1000))

        traced = constant.get_concrete_function()
        x = tf.identity(tf.constant([1.0] * 1000))
        y = tf.raw_ops.AddV2(x=x, y=x)
        del x
        five = traced()
    return sorted(set(y.numpy().tolist())), sorted(set(five.numpy().tolist()))


def _run(plugin):
    result = harness.run(add_before_a_function_runs, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
            str(harness.small_plugin_path(plugin))})
    assert result.ok, result
    return result.value


def test_a_constant_waits_for_enqueued_kernels():
    assert _run("late_device") == [[2.0], [5.0]]


def test_without_the_wait_a_constant_overtakes_a_kernel():
    assert _run("overtaken_device") == [[10.0], [5.0]]
