# SPDX-License-Identifier: Apache-2.0
"""cpu_sim computes on several threads, whose number changes no bit of a result."""

import hashlib

import harness
import pytest


def compute():
    """Returns a checksum of each of many results that are divided into blocks."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(1)

    def draw(*shape):
        return tf.identity(tf.constant(random.normal(size=shape).astype(np.float32)))

    found = {}

    def keep(name, *values):
        data = b"".join(v.numpy().tobytes() for v in values)
        found[name] = hashlib.sha256(data).hexdigest()

    raw = tf.raw_ops
    with tf.device("/device:SIM:0"):
        x, y = draw(700, 800), draw(800, 900)
        keep("product", raw.MatMul(a=x, b=y),
             raw.MatMul(a=y, b=x, transpose_a=True, transpose_b=True))
        keep("batch of products",
             raw.BatchMatMulV2(x=draw(96, 64, 16), y=draw(96, 16, 64)),
             raw.BatchMatMulV2(x=draw(3, 500, 70), y=draw(1, 70, 300)))
        deep = [draw(*shape) for shape in ((3000, 64), (3000, 70), (2, 48, 9000))]
        products = [raw.MatMul(a=deep[0], b=deep[1], transpose_a=True),
                    raw.MatMul(a=deep[1], b=deep[0], transpose_a=True),
                    raw.BatchMatMulV2(x=deep[2], y=deep[2], adj_y=True)]
        keep("product of long sums", *products)
        a, b, c = (x.numpy().astype(np.float64) for x in deep)
        for got, want in zip(products, (a.T @ b, b.T @ a, c @ c.swapaxes(1, 2))):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
        keep("map", tf.exp(x) + 1, tf.transpose(x) * 2, x[:, ::-1], -draw(3, 400000))
        keep("reduce", tf.reduce_sum(x, 0), tf.reduce_max(x, 1),
             tf.reduce_mean(draw(64, 64, 9, 16), [0, 2]), tf.reduce_sum(x))
        keep("softmax", tf.nn.softmax(x), tf.nn.log_softmax(x))
        keep("gather", tf.gather(x, tf.range(5000) % 700))
        keep("scatter", raw.UnsortedSegmentSum(
            data=draw(5000, 64), segment_ids=tf.range(5000, dtype=tf.int64) % 7,
            num_segments=tf.constant(7)))
        labels = tf.identity(tf.constant(random.integers(0, 800, 700)))
        keep("loss", *raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=labels))
        image = draw(20, 30, 30, 12)
        for name, filter, padding, stride in (
                ("3 x 3", draw(3, 3, 12, 20), "SAME", 1),
                ("strided", draw(3, 3, 12, 20), "VALID", 2),
                ("1 x 1", draw(1, 1, 12, 40), "SAME", 1)):
            options = {"strides": [1, stride, stride, 1], "padding": padding}
            out = raw.Conv2D(input=image, filter=filter, **options)
            keep(f"convolution, {name}", out,
                 raw.Conv2DBackpropInput(
                     input_sizes=image.shape, filter=filter, out_backprop=out, **options),
                 raw.Conv2DBackpropFilter(
                     input=image, filter_sizes=filter.shape, out_backprop=out, **options))
        options = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        filter = draw(3, 3, 12, 1)
        out = raw.DepthwiseConv2dNative(input=image, filter=filter, **options)
        keep("depthwise", out,
             raw.DepthwiseConv2dNativeBackpropInput(
                 input_sizes=image.shape, filter=filter, out_backprop=out, **options),
             raw.DepthwiseConv2dNativeBackpropFilter(
                 input=image, filter_sizes=filter.shape, out_backprop=out, **options))
        with tf.GradientTape() as tape:
            tape.watch(image)
            pooled = (tf.nn.max_pool2d(image, 3, 2, "SAME")
                      + tf.nn.avg_pool2d(image, 3, 2, "SAME"))
        keep("pooling", pooled, tape.gradient(pooled, image))
        with tf.GradientTape() as tape:
            tape.watch(image)
            normal, mean, variance = tf.compat.v1.nn.fused_batch_norm(
                image, draw(12), draw(12), epsilon=0.001)
        keep("batch normalization", normal, mean, variance, tape.gradient(normal, image))
    return found


@pytest.fixture(scope="module")
def with_one_thread():
    result = harness.run(compute, env={"CPU_SIM_THREADS": "1"})
    assert result.ok, result
    return result.value


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_results_have_the_same_bits(threads, with_one_thread):
    result = harness.run(compute, env={"CPU_SIM_THREADS": str(threads)})
    assert result.ok, result
    assert result.value == with_one_thread


def count_threads():
    """Returns how many threads a large product starts."""
    import os
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        x = tf.ones((100, 100))
        tf.matmul(x, x).numpy()
        before = len(os.listdir("/proc/self/task"))
        x = tf.ones((1000, 1000))
        tf.matmul(x, x).numpy()
    return len(os.listdir("/proc/self/task")) - before


def test_small_work_starts_no_thread_and_large_work_does():
    result = harness.run(count_threads, env={"CPU_SIM_THREADS": "5"})
    assert result.ok, result
    assert result.value == 4


def fork_while_computing():
    """Returns the exit status of a child that is forked while all threads compute and
    then uses the device, and whether the parent's result is right."""
    import ctypes
    import os
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        x = tf.ones((1500, 1500))
        products = [tf.matmul(x, x) for _ in range(8)]
        child = os.fork()
        if child == 0:
            try:
                tf.matmul(x, x).numpy()
            except tf.errors.OpError:
                ctypes.CDLL(None).exit(7)  # runs the destructors of statics
            os._exit(8)
        status = os.waitpid(child, 0)[1]
        right = bool((products[-1].numpy() == 1500).all())
    return os.waitstatus_to_exitcode(status), right


def test_a_child_forked_while_threads_compute_exits():
    result = harness.run(fork_while_computing, env={"CPU_SIM_THREADS": "4"})
    assert result.ok, result
    assert result.value == [7, True]


def list_devices():
    import tensorflow as tf
    return len(tf.config.list_physical_devices("SIM"))


def test_an_invalid_number_of_threads_is_an_error():
    result = harness.run(list_devices, env={"CPU_SIM_THREADS": "all"})
    assert result.ok and result.value == 0, result
    assert "CPU_SIM_THREADS=all is invalid; expected a number from 1 to 256" in result.log
