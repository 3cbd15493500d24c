# SPDX-License-Identifier: Apache-2.0
"""A perceptron on the device learns as it does on the CPU."""

import harness
import pytest


def _problem(seed):
    import numpy as np
    random = np.random.default_rng(seed)
    sizes = [(20, 32), (32, 16), (16, 5)]
    start = [random.normal(0, 0.3, size).astype(np.float32) for size in sizes]
    start += [np.zeros(size[1], np.float32) for size in sizes]
    images = random.normal(size=(30, 24, 20)).astype(np.float32)
    labels = images[:, :, :5].argmax(axis=2).astype(np.int64)
    return start, images, labels


def _loss(tf, weights, x, y):
    for layer in range(3):
        x = tf.nn.bias_add(tf.matmul(x, weights[layer]), weights[3 + layer])
        x = tf.nn.relu(x) if layer < 2 else x
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))


def gradients(device):
    """Returns the loss and the gradient of each weight for one eager step."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    start, images, labels = _problem(1)
    with tf.device(device):
        weights = [tf.Variable(w) for w in start]
        with tf.GradientTape() as tape:
            loss = _loss(tf, weights, tf.constant(images[0]),
                         tf.constant(labels[0]))
        found = tape.gradient(loss, weights)
        assert all(g.device.endswith(device) for g in found)
    return [loss.numpy().tolist()] + [g.numpy().tolist() for g in found]


def test_gradients_match_the_cpu():
    import numpy as np
    ours, cpus = harness.run_each(gradients, [["/device:SIM:0"],
                                              ["/device:CPU:0"]])
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    for have, want in zip(ours.value, cpus.value):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def train(devices):
    """Trains on all devices at once, with one thread per device. Returns the losses."""
    import threading
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    losses = {}

    def work(device):
        start, images, labels = _problem(2)
        with tf.device(device):
            weights = [tf.Variable(w) for w in start]

            @tf.function
            def step(x, y):
                with tf.device(device):
                    with tf.GradientTape() as tape:
                        loss = _loss(tf, weights, x, y)
                    for w, g in zip(weights, tape.gradient(loss, weights)):
                        w.assign(w - 0.3 * g)
                return loss

            losses[device] = [float(step(tf.constant(x), tf.constant(y)))
                              for x, y in zip(images, labels)]

    threads = [threading.Thread(target=work, args=[d]) for d in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [losses[d] for d in devices]


@pytest.mark.parametrize("bfc", ["1", "0"])
def test_two_devices_train_at_once(bfc):
    import numpy as np
    result = harness.run(train, [
        "/device:SIM:0", "/device:SIM:1", "/device:CPU:0"],
        env={"CPU_SIM_BFC": bfc})
    assert result.ok, result
    first, second, cpu = result.value
    assert cpu[-1] < 0.8 * cpu[0], "nothing was learned"
    np.testing.assert_allclose(first, cpu, rtol=1e-4)
    np.testing.assert_allclose(second, cpu, rtol=1e-4)
