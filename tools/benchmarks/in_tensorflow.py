# SPDX-License-Identifier: Apache-2.0
"""What tools/bench runs in stock TensorFlow, in processes of their own: see
tests/tensorflow/harness.py."""

import time

ROUNDS = 31
OPS = 1000


def time_ops(plugins):
    """(TensorFlow's release, {device type: seconds per op of each round});
    runs in a process of its own."""
    import tensorflow as tf
    from tensorflow.python.framework import load_library

    for plugin in plugins:
        load_library.load_pluggable_device_library(plugin)
    kinds = [d.device_type for d in tf.config.list_physical_devices()]
    inputs = {}
    for kind in kinds:
        with tf.device(f"/device:{kind}:0"):
            inputs[kind] = tf.identity(tf.constant([[1.0, 2, 3], [4, 5, 6]]))
    times = {kind: [] for kind in kinds}
    for i in range(ROUNDS + 1):
        for kind, x in inputs.items():
            with tf.device(f"/device:{kind}:0"):
                start = time.perf_counter()
                for _ in range(OPS):
                    y = tf.raw_ops.Add(x=x, y=x)
                result = y.numpy()  # all work is done
                seconds = time.perf_counter() - start
            if result[1][2] != 12:
                raise RuntimeError(f"{kind} computed {result}")
            if i > 0:
                times[kind].append(seconds / OPS)
    return tf.__version__, times


# ---- Models ------------------------------------------------------------------


def _mlp(keras):
    """784-512-256-10 on 128 images."""
    return keras.Sequential([
        keras.Input((784,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ])


def _cnn(keras):
    """Two blocks of convolution, normalisation and pooling, on 28 x 28."""
    layers = [keras.Input((28, 28, 1))]
    for filters in (32, 64):
        layers += [
            keras.layers.Conv2D(filters, 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(),
        ]
    return keras.Sequential([
        *layers,
        keras.layers.Flatten(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(10),
    ])


def _mobile_net(size):
    def build(keras):
        return keras.applications.MobileNetV2(
            input_shape=(size, size, 3), weights=None, classes=10,
            classifier_activation=None)
    return build


# {name: (builder, batch, shape of an input, rounds)}
MODELS = {
    "MLP 784-512-256-10, batch 128": (_mlp, 128, (784,), 31),
    "CNN on 28 x 28, batch 64": (_cnn, 64, (28, 28, 1), 11),
    "MobileNetV2 on 96 x 96, batch 8": (_mobile_net(96), 8, (96, 96, 3), 7),
    "MobileNetV2 on 224 x 224, batch 1": (_mobile_net(224), 1, (224, 224, 3), 5),
}


def time_model(name):
    """{device type: seconds per training step of each round}, on SIM and CPU in
    turn, one thread for kernels each."""
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.set_soft_device_placement(False)
    build, batch, shape, rounds = MODELS[name]
    random = np.random.default_rng(0)
    x_host = random.normal(size=(batch, *shape)).astype("float32")
    y_host = random.integers(10, size=batch)

    def make_step(kind):
        with tf.device(f"/device:{kind}:0"):
            keras.utils.set_random_seed(0)
            model = build(keras)
            x = tf.constant(x_host)
        with tf.device("/device:CPU:0"):
            labels = tf.one_hot(y_host, 10)
        with tf.device(f"/device:{kind}:0"):
            labels = tf.identity(labels)

        @tf.function(jit_compile=False)
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(
                    labels, model(x, training=True)))
            variables = model.trainable_variables
            for v, g in zip(variables, tape.gradient(loss, variables)):
                v.assign(v - 0.01 * g)
            return loss

        def run():
            with tf.device(f"/device:{kind}:0"):
                return float(step())

        return run

    steps = {kind: make_step(kind) for kind in ("CPU", "SIM")}
    times = {kind: [] for kind in steps}
    losses = {kind: [] for kind in steps}
    for i in range(rounds + 2):
        for kind, step in steps.items():
            start = time.perf_counter()
            losses[kind].append(step())
            if i > 1:
                times[kind].append(time.perf_counter() - start)
    # Later ones part: normalisation over small batches magnifies what is lost
    # to rounding.
    if not np.allclose(losses["CPU"][0], losses["SIM"][0], rtol=1e-4):
        raise RuntimeError(f"the losses differ: {losses}")
    return times
