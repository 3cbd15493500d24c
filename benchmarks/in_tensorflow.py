# SPDX-License-Identifier: Apache-2.0
"""The functions that tools/bench runs in stock TensorFlow, each in its own process:
see tests/tensorflow/harness.py."""

import time

ROUNDS = 31
OPS = 1000


def time_ops(plugins):
    """Returns (TensorFlow's release, {device type: seconds per op of each round})."""
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
                result = y.numpy()  # Waits for the device.
                seconds = time.perf_counter() - start
            if result[1][2] != 12:
                raise RuntimeError(f"{kind} computed {result}")
            if i > 0:
                times[kind].append(seconds / OPS)
    return tf.__version__, times


# ---- Models ------------------------------------------------------------------


def _mlp(keras):
    """A perceptron of 784-512-256-10 units."""
    return keras.Sequential([
        keras.Input((784,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ])


def _cnn(keras):
    """Two blocks of convolution, normalization and pooling for 28 x 28 images."""
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


def _lstm(unroll, length=20):
    """An embedding, an LSTM of 64 units and a classifier."""
    def build(keras):
        return keras.Sequential([
            keras.Input((length,), dtype="int32"),
            keras.layers.Embedding(100, 32),
            keras.layers.LSTM(64, unroll=unroll),
            keras.layers.Dense(10),
        ])
    return build


def _transformer(keras):
    """Two encoder blocks of width 64 with four heads, and a classifier."""
    layers = keras.layers
    tokens = keras.Input((32,), dtype="int32")
    x = layers.Embedding(100, 64)(tokens)
    for _ in range(2):
        x = layers.LayerNormalization()(
            x + layers.MultiHeadAttention(4, 16)(x, x))
        inner = layers.Dense(256, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(64)(inner))
    return keras.Model(tokens, layers.Dense(10)(
        layers.GlobalAveragePooling1D()(x)))


def _u_net(keras):
    """A U-Net of three levels, upsampled with Conv2DTranspose and bilinearly."""
    layers = keras.layers

    def block(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    image = keras.Input((64, 64, 3))
    outer = block(image, 16)
    middle = block(layers.MaxPooling2D()(outer), 32)
    inner = block(layers.MaxPooling2D()(middle), 64)
    up = layers.Conv2DTranspose(32, 2, strides=2)(inner)
    middle = block(layers.Concatenate()([up, middle]), 32)
    up = layers.UpSampling2D(interpolation="bilinear")(middle)
    outer = block(layers.Concatenate()([up, outer]), 16)
    return keras.Model(image, layers.Conv2D(10, 1)(outer))


# {name: (builder, batch, shape of an input, rounds)}
MODELS = {
    "MLP 784-512-256-10, batch 128": (_mlp, 128, (784,), 31),
    "CNN on 28 x 28, batch 64": (_cnn, 64, (28, 28, 1), 11),
    "MobileNetV2 on 96 x 96, batch 8": (_mobile_net(96), 8, (96, 96, 3), 7),
    "MobileNetV2 on 224 x 224, batch 1": (_mobile_net(224), 1, (224, 224, 3), 5),
    "U-Net on 64 x 64, batch 4": (_u_net, 4, (64, 64, 3), 11),
    "LSTM of 64 units, 20 steps, batch 32": (_lstm(False), 32, (20,), 31),
    "the same, unrolled": (_lstm(True), 32, (20,), 31),
    "Transformer of width 64, 32 tokens, batch 16":
        (_transformer, 16, (32,), 31),
}


def time_model(name):
    """Returns {device type: [[wall time, processor time] in seconds of a training
    step for each round]}, on SIM and CPU in turn, with one thread for kernels."""
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.set_soft_device_placement(False)
    build, batch, shape, rounds = MODELS[name]
    random = np.random.default_rng(0)
    described = build(keras)
    if described.inputs[0].dtype == "int32":
        x_host = random.integers(100, size=(batch, *shape)).astype("int32")
    else:
        x_host = random.normal(size=(batch, *shape)).astype("float32")
    y_host = random.integers(10, size=(batch, *described.output_shape[1:-1]))

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
                v.assign(v - 0.01 * tf.convert_to_tensor(g))
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
            start = time.perf_counter(), time.process_time()
            losses[kind].append(step())
            end = time.perf_counter(), time.process_time()
            if i > 1:
                times[kind].append([b - a for a, b in zip(start, end)])
    # Later losses diverge: normalization over small batches amplifies rounding
    # errors.
    if not np.allclose(losses["CPU"][0], losses["SIM"][0], rtol=1e-4):
        raise RuntimeError(f"the losses differ: {losses}")
    return times


# ---- Kernels -----------------------------------------------------------------


OPS_PER_ROUND = 200
ROUNDS = 15


def time_kernels():
    """Returns {op: {device type: [(seconds, seconds of processor time)]}} for the ops
    that take most of a model's step, run eagerly with one thread for kernels, and for
    the same ops on tensors of one element ("op, one element"); a pair is of one op, in
    one round. The result of a round is one element, read at its end."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    def random(*shape):
        return tf.random.stateless_normal(shape, [1, 2])

    def convolve(x, w):
        return tf.nn.conv2d(x, w, 1, "SAME")

    with tf.device("/device:CPU:0"):
        cases = {
            "MatMul, 128 x 784 by 784 x 512":
                (tf.matmul, [random(128, 784), random(784, 512)]),
            "Conv2D, 3 x 3, 32 to 64 channels, 64 images of 14 x 14":
                (convolve, [random(64, 14, 14, 32), random(3, 3, 32, 64)]),
            "Sub, 784 x 512": (tf.subtract, [random(784, 512), random(784, 512)]),
            "Mul by a scalar, 784 x 512": (tf.multiply, [random(784, 512), random()]),
            "Relu, 128 x 512": (tf.nn.relu, [random(128, 512)]),
        }
        for name, (op, inputs) in list(cases.items()):
            cases[f"{name}, one element"] = (
                op, [random(*(1 for _ in x.shape)) for x in inputs])

    def run(op, inputs):
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(OPS_PER_ROUND):
            y = op(*inputs)
        tf.reshape(y, [-1])[0].numpy()
        return ((time.perf_counter() - wall) / OPS_PER_ROUND,
                (time.process_time() - processor) / OPS_PER_ROUND)

    times = {}
    for name, (op, inputs) in cases.items():
        copies = {}
        for kind in ("CPU", "SIM"):
            with tf.device(f"/device:{kind}:0"):
                copies[kind] = [tf.identity(x) for x in inputs]
                run(op, copies[kind])  # allocates memory
        times[name] = {kind: [] for kind in copies}
        for _ in range(ROUNDS):
            for kind, on_device in copies.items():
                with tf.device(f"/device:{kind}:0"):
                    times[name][kind].append(run(op, on_device))
    return times
