# SPDX-License-Identifier: Apache-2.0
"""TFPLUG_LOG_FALLBACK=1 logs the ops that TensorFlow places on the CPU."""

import harness


def run_twice():
    """Runs ops that cpu_sim has no kernel for, in two functions."""
    import tensorflow as tf

    def compute(x):
        y = tf.math.erfinv(tf.nn.relu(x) / 4)
        return tf.nn.relu(y) + tf.math.erfinv(y / 4)

    for shape in ([2], [3]):
        tf.function(compute)(tf.ones(shape))
    return "done"


def lines(log):
    return [line for line in log.splitlines() if "runs on the CPU" in line]


def test_each_op_is_logged_once():
    result = harness.run(run_twice, env={"TFPLUG_LOG_FALLBACK": "1"})
    assert result.ok, result
    [line] = lines(result.log)
    assert "Erfinv (T=float)" in line
    assert "this library has no kernel for it on SIM" in line


def test_nothing_is_logged_by_default():
    result = harness.run(run_twice)
    assert result.ok, result
    assert not lines(result.log)
