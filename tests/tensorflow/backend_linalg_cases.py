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


def complex_results(seed):
    """Returns how far results of complex numbers are from NumPy's."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    result = []

    def compare(found, expected):
        result.append(float(np.abs(found.numpy() - expected).max()))

    with tf.device(DEVICE):
        for dtype in ("complex64", "complex128"):
            x = random.normal(size=[2, 5, 5, 2]).view("complex128")[..., 0].astype(dtype)
            x = x / 5 + np.eye(5, dtype=dtype)
            compare(tf.linalg.det(x), np.linalg.det(x))
            compare(tf.linalg.slogdet(x).sign, np.linalg.slogdet(x)[0])
            compare(tf.linalg.lu_reconstruct(*tf.linalg.lu(x)), x)
            q, r = tf.linalg.qr(x)
            compare(q @ r, x)
            hermitian = x @ np.conj(np.swapaxes(x, -1, -2))
            e, v = tf.linalg.eigh(hermitian)
            compare(v * e[..., None, :] @ tf.linalg.adjoint(v), hermitian)
            lower = np.tril(x)
            y = tf.linalg.triangular_solve(lower, x, adjoint=True)
            compare(tf.matmul(lower, y, adjoint_a=True), x)
            for axes in (None, [1], [0, 2], [-1]):  # of 50, 5, 10 and 5 elements
                numpy_axes = None if axes is None else tuple(axes)
                compare(tf.reduce_prod(x, axes), np.prod(x, axis=numpy_axes))
                compare(tf.math.reduce_euclidean_norm(x, axes),
                        np.sqrt((np.abs(x) ** 2).sum(axis=numpy_axes)))
            x[np.abs(x) < 0.2] = 0
            x[0, 0, 0], x[0, 1, 0] = 1j, 1
            compare(tf.where(x), np.argwhere(x))
    return result
