# SPDX-License-Identifier: Apache-2.0
"""Runs Keras on a device whose kernels tfplug generates, for test_opencl.py and
test_vulkan.py. `kind` is the type of the device."""

import harness


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
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            **harness.without_xla_on_cpu(device))
        history = model.fit(x, labels, batch_size=16, epochs=steps // 2, verbose=0,
                            shuffle=False)
        return [history.history["loss"],
                [weight.tolist() for weight in model.get_weights()],
                model.layers[0].kernel.value.device
                if hasattr(model.layers[0].kernel, "value") else ""]


def both(kind, steps):
    """Returns the number of devices, and the results on the first one and on the CPU."""
    import tensorflow as tf
    devices = tf.config.list_physical_devices(kind)
    if not devices:
        return [0, None, None]
    return [len(devices), train(f"/device:{kind}:0", steps),
            train("/device:CPU:0", steps)]


def region_runs(kind, driver="", counters=()):
    """Runs a function with two shapes in turn. Returns the runs whose results differ from
    the CPU's, and by how much the driver's counters grew in the last run. With regions,
    the launches of most runs are a graph."""
    import ctypes

    import numpy as np
    import tensorflow as tf
    counters = [getattr(ctypes.CDLL(driver), name) for name in counters]
    random = np.random.default_rng(0)
    weights = random.normal(size=(6, 6)).astype(np.float32)

    def compute(x, w):
        for _ in range(4):
            x = tf.nn.softmax(tf.matmul(x, w)) + tf.cumsum(x, 1)
        return x, tf.reduce_mean(x, 0)

    wrong, live = [], []
    with tf.device(f"/device:{kind}:0"):
        function = tf.function(compute, jit_compile=False, reduce_retracing=True)
        on_device = tf.constant(weights)
        for i in range(40):
            value = random.normal(size=(4 if i % 3 else 7, 6)).astype(np.float32)
            before = [count() for count in counters]
            results = [y.numpy() for y in function(tf.constant(value), on_device)]
            grown = [count() - n for count, n in zip(counters, before, strict=True)]
            if 10 <= i < 14:  # Other addresses.
                live.append(tf.constant(random.normal(size=(5, 6))) + 1.0)
            with tf.device("/CPU:0"):
                expected = compute(tf.constant(value), tf.constant(weights))
            if not all(np.allclose(y, e.numpy(), rtol=1e-5, atol=1e-5)
                       for y, e in zip(results, expected, strict=True)):
                wrong.append(i)
    return wrong, grown


def expect_graphs(kind, plugin):
    """Fails unless a region's launches are a graph on the device, if graphs are on."""
    for graphs in "1", "0":
        result = harness.run(region_runs, kind, plugin=False, env={
            "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(plugin), "TFPLUG_REGIONS": "1",
            "TFPLUG_LOG_REGIONS": "1", "TFPLUG_REGION_GRAPHS": graphs})
        assert result.ok and result.value[0] == [], result
        assert ("are captured as a graph" in result.log) == (graphs == "1"), result
        assert "one by one" not in result.log, result


def fill_memory(kind):
    """Returns the error of a tensor that is too large, and a sum after it."""
    import tensorflow as tf
    with tf.device(f"/device:{kind}:0"):
        try:
            tf.fill([1 << 40], 1.0)
            error = ""
        except tf.errors.OpError as e:
            error = type(e).__name__
        return [error, float(tf.reduce_sum(tf.fill([1000], 2.0)))]


# The results: any, a sum, then sum, product and norm of complex numbers, a product.
REDUCED_EMPTY = [False, [0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [[0.0, 0.0]]]


def reduce_empty(kind):
    """Returns reductions of empty tensors, whose addresses need not be device memory."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(f"/device:{kind}:0"):
        none = tf.zeros([0, 2], tf.complex64)
        return [tf.reduce_any(tf.zeros([0, 2], tf.bool), [0, 1]).numpy().tolist(),
                tf.reduce_sum(tf.zeros([0, 2]), 0).numpy().tolist(),
                *[tf.math.real(reduce(none, 0)).numpy().tolist() for reduce in (
                    tf.reduce_sum, tf.reduce_prod, tf.math.reduce_euclidean_norm)],
                tf.matmul(tf.zeros([1, 0]), tf.zeros([0, 2])).numpy().tolist()]


def apply_ops(kind):
    """Returns the largest error of each op, relative to the CPU's largest result."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(2)
    a = random.normal(size=(7, 33)).astype(np.float32)
    image = random.normal(size=(2, 9, 9, 3)).astype(np.float32)
    ids = random.integers(0, 7, size=20)
    functions = {
        "matmul": lambda: tf.matmul(a, a, transpose_b=True),
        "batches of matmul": lambda: tf.linalg.matmul(image, image, transpose_a=True),
        "double": lambda: tf.reduce_sum(tf.constant(a, tf.float64) / 3, 0),
        "half": lambda: tf.cast(tf.cast(a, tf.float16) * 2, tf.float32),
        "int8": lambda: tf.cast(tf.cast(a * 9, tf.int8) + 3, tf.int32),
        "int64": lambda: tf.constant(ids) * (1 << 40) // 3,
        "bool": lambda: tf.cast(tf.logical_not(a > 0), tf.float32),
        "softmax": lambda: tf.nn.softmax(a),
        "exp": lambda: tf.exp(a), "erf": lambda: tf.math.erf(a),
        "lgamma": lambda: tf.math.lgamma(a), "tanh": lambda: tf.tanh(a),
        "pow": lambda: tf.abs(a) ** 1.5, "atan2": lambda: tf.atan2(a, a[::-1]),
        "transpose": lambda: tf.transpose(image, [3, 1, 0, 2]),
        "strided slice": lambda: tf.constant(a)[::-2, 3:30:4],
        "concat": lambda: tf.concat([a, a[:, :5]], 1),
        "conv": lambda: tf.nn.conv2d(image, image[0, :3, :3, :, None], 2, "SAME"),
        "max pool": lambda: tf.nn.max_pool2d(image, 3, 2, "VALID"),
        "gather": lambda: tf.gather(a, ids),
        "segments": lambda: tf.math.unsorted_segment_sum(
            tf.gather(a, ids), tf.constant(ids), 7),
        "top k": lambda: tf.math.top_k(a, 4)[0],
        "cumsum": lambda: tf.cumsum(a, 1, reverse=True),
        "long sum": lambda: tf.reduce_sum(tf.fill([1 << 24], 0.5)),
        "long sums": lambda: tf.reduce_sum(tf.fill([70000, 3], 0.5), 0),
        "deep product": lambda: tf.matmul(
            tf.fill([3, 100_003], 0.5), tf.fill([100_003, 2], 2.0)),
        "many groups": lambda: tf.fill([1 << 25], 0.5)[:: 1 << 20],
        "random": lambda: tf.random.stateless_uniform([100], [1, 2]),
        "qr": lambda: tf.abs(tf.linalg.qr(a)[1]),
    }
    errors = {}
    for name, function in functions.items():
        results = []
        for device in (kind, "CPU"):
            with tf.device(f"/device:{device}:0"):
                result = function()
            assert device in result.device, (name, result.device)
            results.append(result.numpy().astype(np.float64))
        have, want = results
        assert have.shape == want.shape and have.dtype == want.dtype, name
        errors[name] = float(np.abs(have - want).max() / np.abs(want).max())
    return errors


def everything(kind):
    """Returns the results of the functions above, of all in one process."""
    return [both(kind, 10), fill_memory(kind), reduce_empty(kind), apply_ops(kind)]
