# SPDX-License-Identifier: Apache-2.0
"""Factorizations of matrices on the device of backend_cases.py, for
test_backend_linalg.py. Functions run in a child process."""

from backend_cases import DEVICE


def factors(seed):
    """Returns, for Qr, SelfAdjointEigV2 and Svd, how far the product of the device's
    factors is from the matrix. The signs of vectors depend on the library."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    result = []
    with tf.device(DEVICE):
        for shape in ([2, 5, 3], [3, 5], [4, 4]):
            for full in (False, True):
                x = random.normal(size=shape).astype("float32")
                q, r = tf.linalg.qr(x, full_matrices=full)
                s, u, v = tf.linalg.svd(x, full_matrices=full)
                p = min(shape[-2:])
                result.append(float(np.abs(q @ r - x).max()))
                product = u[..., :p] * s[..., None, :] @ tf.linalg.adjoint(v[..., :p])
                result.append(float(np.abs(product - x).max()))
            x = x @ np.swapaxes(x, -1, -2)
            e, v = tf.linalg.eigh(x)
            result.append(float(np.abs(v * e[..., None, :] @ tf.linalg.adjoint(v) - x
                                       ).max()))
    return result
