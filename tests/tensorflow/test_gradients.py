# SPDX-License-Identifier: Apache-2.0
"""Gradients that `fit` does not need: of gradients, forward in time, of complex numbers.
Eagerly and in functions, they are those of the CPU, and every op runs on the device."""

import harness
import numpy as np
import pytest


def _numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def _penalty(tf, shape, *layers):
    """The gradients of a gradient penalty, as in a Wasserstein GAN."""
    import keras
    model = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(1)])
    x = tf.constant(_numbers(*shape))
    model(x)

    def gradients():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.sin(model(x))
            slopes = inner.gradient(y, x)
            norms = tf.sqrt(tf.reduce_sum(slopes**2, range(1, len(shape))) + 1e-6)
            penalty = tf.reduce_sum((norms - 1)**2)
        return outer.gradient(penalty, model.trainable_variables[:-1])
    return gradients


def _gradient(tf, variables, loss):
    def gradients():
        with tf.GradientTape() as tape:
            value = loss()
        return tape.gradient(value, variables)
    return gradients


def penalty_of_max_pooling_1d(tf, k):
    return _penalty(tf, (2, 9, 2), k.Conv1D(3, 3, activation="tanh"), k.MaxPooling1D())


def penalty_of_max_pooling_2d(tf, k):
    return _penalty(tf, (2, 9, 9, 2), k.Conv2D(3, 3, activation="tanh"),
                    k.MaxPooling2D(3, 2, padding="same"))


def penalty_of_max_pooling_3d(tf, k):
    return _penalty(tf, (2, 5, 5, 5, 2), k.Conv3D(3, 2, activation="tanh"),
                    k.MaxPooling3D())


def penalty_of_average_pooling(tf, k):
    return _penalty(tf, (2, 9, 9, 2), k.Conv2D(3, 3, activation="softplus"),
                    k.AveragePooling2D(2))


def penalty_of_upsampling(tf, k):
    return _penalty(tf, (2, 4, 4, 2), k.UpSampling2D(), k.Conv2D(3, 3, activation="tanh"))


def penalty_of_normalization(tf, k):
    return _penalty(tf, (2, 6, 6, 2), k.Conv2DTranspose(4, 3, activation="elu"),
                    k.GroupNormalization(2), k.LayerNormalization())


def penalty_of_attention(tf, k):
    class Attention(k.Layer):
        def __init__(self):
            super().__init__()
            self.layer = k.MultiHeadAttention(2, 4)

        def call(self, x):
            return self.layer(x, x, use_causal_mask=True)
    return _penalty(tf, (2, 5, 6), Attention())


def penalty_of_unrolled_lstm(tf, k):
    return _penalty(tf, (2, 5, 3), k.LSTM(4, unroll=True))


def forward_through_max_pooling(tf, k):
    import keras
    model = keras.Sequential([k.Conv2D(3, 3, activation="tanh"), k.MaxPooling2D()])
    x = tf.constant(_numbers(2, 6, 6, 2))
    model(x)

    def gradients():
        with tf.autodiff.ForwardAccumulator(x, tf.cos(x)) as accumulator:
            y = model(x)
        return accumulator.jvp(y)
    return gradients


def spectrogram(tf, _):
    signal = tf.Variable(_numbers(2, 128))

    def loss():
        spectrum = tf.signal.stft(signal, 32, 16)
        return (tf.reduce_sum(tf.math.log(tf.abs(spectrum) + 0.1)) +
                tf.reduce_sum(tf.math.angle(spectrum + 40.0)))
    return _gradient(tf, [signal], loss)


def fourier_layer(tf, _):
    """A layer of a Fourier neural operator."""
    weights = [tf.Variable(_numbers(2, 3, 4, 4)), tf.Variable(_numbers(3, 2, 4, 4))]
    image = tf.constant(_numbers(2, 2, 8, 8))

    def loss():
        product = tf.complex(weights[0], tf.transpose(weights[1], [1, 0, 2, 3]))
        modes = tf.einsum("bixy,ioxy->boxy", tf.signal.rfft2d(image)[..., :4, :4], product)
        return tf.reduce_sum(
            tf.signal.irfft2d(tf.pad(modes, [[0, 0], [0, 0], [0, 4], [0, 1]]))**3)
    return _gradient(tf, weights, loss)


def complex_weights(tf, _):
    weights = tf.Variable(tf.complex(_numbers(3, 2), _numbers(3, 2)[::-1]))
    x = tf.complex(_numbers(4, 3), _numbers(4, 3) + 1)

    def loss():
        y = tf.matmul(x, weights)
        y = tf.where(tf.math.real(y) > 0, tf.sin(y) + tf.cosh(y), tf.sign(y))
        return tf.reduce_sum(tf.abs(tf.math.divide_no_nan(y, y + 3.0))**2)
    return _gradient(tf, [weights], loss)


CASES = {function.__name__: function for function in (
    penalty_of_max_pooling_1d, penalty_of_max_pooling_2d, penalty_of_max_pooling_3d,
    penalty_of_average_pooling, penalty_of_upsampling, penalty_of_normalization,
    penalty_of_attention, penalty_of_unrolled_lstm, forward_through_max_pooling,
    spectrogram, fourier_layer, complex_weights)}


def run(name, device):
    """Returns the gradients of two steps, one eager and one in a function."""
    import keras
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    keras.utils.set_random_seed(1)
    with tf.device(f"/device:{device}:0"):
        gradients = CASES[name](tf, keras.layers)
        return [[x.numpy().view("float32").tolist() for x in tf.nest.flatten(each())]
                for each in (gradients, tf.function(gradients))]


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[name, device] for name in CASES for device in ("SIM", "CPU")]
    results = harness.run_each(run, cases)
    return dict(zip(CASES, zip(results[::2], results[1::2])))


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_are_those_of_the_cpu(results, name):
    ours, cpus = results[name]
    if "gradient registry has no entry" in cpus.error:
        pytest.skip("this TensorFlow lacks a gradient of a gradient")
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    for step, wanted in zip(ours.value, cpus.value, strict=True):
        scale = max(np.abs(want).max() for want in wanted)
        assert scale > 0
        for x, want in zip(step, wanted, strict=True):
            np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-5 * scale)
