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


def train_from_a_pipeline():
    """Trains with a pipeline on the CPU and a step that reads shapes there."""
    import numpy as np
    import tensorflow as tf
    import keras
    images = np.random.rand(32, 4, 4, 3).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((images, images[:, 0, 0, :1])).map(
        lambda x, y: (tf.expand_dims(tf.nn.relu(x) * 2, -1)[..., 0], y)).batch(8)
    model = keras.Sequential([
        keras.layers.Reshape((16, 3)), keras.layers.LSTM(4), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(data, verbose=0)
    return model.trainable_variables[0].value.device


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


def test_only_what_left_the_device_is_logged():
    result = harness.run(train_from_a_pipeline, env={"TFPLUG_LOG_FALLBACK": "1"})
    assert result.ok and "SIM" in result.value, result
    assert not lines_of(result.log)
