# SPDX-License-Identifier: Apache-2.0
"""FFTND and its relatives, for which TensorFlow has kernels on its own GPUs only, give
NumPy's transforms."""

import harness
import numpy as np
import pytest

# Shape of the input, lengths of the transform, axes.
CASES = [([7], [7], [0]), ([3, 4, 5], [4, 5], [1, 2]), ([3, 4, 5], [3, 4, 5], [0, 1, 2]),
         ([2, 6, 8], [4, 6], [-2, -1]), ([2, 3, 2, 3, 4], [3, 2, 3, 4], [1, 2, 3, 4]),
         ([2, 1, 9], [0, 4], [1, 2]), ([0, 3], [3], [-1]), ([2, 3], [0], [1]),
         ([4, 81], [4, 80], [0, 1])]


def transforms(op, is_double):
    """Returns for each case the shapes of the device's result and of NumPy's, and the
    largest difference."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random, found = np.random.default_rng(2), []
    part = "float64" if is_double else "float32"
    whole = "complex128" if is_double else "complex64"
    options = {"RFFTND": {"Tcomplex": whole}, "IRFFTND": {"Treal": part}}.get(op, {})
    for shape, length, axes in CASES:
        x = random.normal(size=shape)
        if op == "RFFTND":
            x = x.astype(part)
        else:
            x = (x + 1j * random.normal(size=shape)).astype(whole)
        if op == "IRFFTND":
            length = [*length[:-1], max(2 * length[-1] - 1, 0)]
        with tf.device("/device:SIM:0"):
            y = getattr(tf.raw_ops, op)(input=tf.constant(x), fft_length=length,
                                        axes=axes, **options).numpy()
        if 0 in length or 0 in shape:
            want = np.zeros(y.shape)
        else:
            want = getattr(np.fft, op.lower()[:-1])(x, length, axes)
        found.append([list(y.shape), list(want.shape),
                      float(np.abs(y - want).max(initial=0))])
    return found


def errors():
    import tensorflow as tf
    found = []
    with tf.device("/device:SIM:0"):
        x = tf.complex(tf.ones([2, 3]), tf.ones([2, 3]))
        for length, axes in (([2], [0]), ([3, 2], [1, 0]), ([4], [1]), ([-1], [1]),
                             ([3, 3], [1]), ([], []), ([1, 2, 3], [0, 1, 2])):
            try:
                tf.raw_ops.FFTND(input=x, fft_length=tf.constant(length, tf.int32),
                                 axes=tf.constant(axes, tf.int32))
                found.append("none")
            except tf.errors.InvalidArgumentError as error:
                found.append(error.message)
    return found


def _run(function, *arguments):
    result = harness.run(function, *arguments)
    if "has no attribute" in str(result.error):
        pytest.skip("this TensorFlow has no FFTND")
    assert result.ok, result
    return result.value


@pytest.mark.parametrize("op", ["FFTND", "IFFTND", "RFFTND", "IRFFTND"])
@pytest.mark.parametrize("is_double", [False, True])
def test_it_gives_numpys_transform(op, is_double):
    found = _run(transforms, op, is_double)
    assert len(found) == len(CASES)
    for shape, want, difference in found:
        assert shape == want
        assert difference < (1e-12 if is_double else 1e-4), found


def test_invalid_arguments_are_errors():
    found = _run(errors)
    assert len(found) == 7 and "none" not in found
    assert "The last axis to perform transform on must be -1" in found[0]
