# SPDX-License-Identifier: Apache-2.0
"""Runs Keras on examples/opencl, for test_opencl.py."""


def train(device, steps):
    """Returns the losses of a perceptron and its weights after the last step."""
    import keras
    import numpy as np
    import tensorflow as tf
    random = np.random.default_rng(1)
    x = random.normal(size=(32, 20)).astype(np.float32)
    labels = (x[:, :4].sum(axis=1) > 0).astype(np.int64) + 2 * (x[:, 5] > 0)
    with tf.device(device):
        layers = [keras.layers.Dense(16, activation="relu"),
                  keras.layers.Dense(4)]
        model = keras.Sequential([keras.Input((20,)), *layers])
        model.set_weights([
            random.uniform(-.3, .3, weight.shape) for weight in model.get_weights()])
        model.compile(
            optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(x, labels, batch_size=16, epochs=steps // 2, verbose=0,
                            shuffle=False)
        return [history.history["loss"],
                [weight.tolist() for weight in model.get_weights()],
                model.layers[0].kernel.value.device
                if hasattr(model.layers[0].kernel, "value") else ""]


def both(steps):
    """Returns the results on the OpenCL device and on the CPU, and the number of
    OpenCL devices."""
    import tensorflow as tf
    devices = tf.config.list_physical_devices("OPENCL")
    if not devices:
        return [0, None, None]
    return [len(devices), train("/device:OPENCL:0", steps),
            train("/device:CPU:0", steps)]


def fill_memory():
    """Returns the error of a tensor that is too large, and a sum after it."""
    import tensorflow as tf
    with tf.device("/device:OPENCL:0"):
        try:
            tf.fill([1 << 40], 1.0)
            error = ""
        except tf.errors.OpError as e:
            error = type(e).__name__
        return [error, float(tf.reduce_sum(tf.fill([1000], 2.0)))]


def reduce_empty():
    """Returns reductions of empty tensors, whose addresses need not be device memory."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:OPENCL:0"):
        return [tf.reduce_any(tf.zeros([0, 2], tf.bool), [0, 1]).numpy().tolist(),
                tf.reduce_sum(tf.zeros([0, 2]), 0).numpy().tolist(),
                tf.matmul(tf.zeros([1, 0]), tf.zeros([0, 2])).numpy().tolist()]
