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


def singular_values(seed):
    """Returns how far singular values are from NumPy's, and the products of the factors
    from the matrix, relative to the matrix, for matrices that are hard to decompose."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    result = []
    with tf.device(DEVICE):
        for m, n in ((1, 4), (4, 4), (3, 20), (17, 17), (40, 60), (90, 70)):
            drawn = random.normal(size=(m, n))
            without = drawn.copy()
            without[m // 2] = without[:, n // 2] = 0
            for x in (drawn, without, drawn[:, :1] * drawn[:1], np.zeros([m, n]),
                      np.ones([m, n]), np.eye(m, n), np.triu(np.round(drawn)),
                      drawn * 1e-250, drawn * 1e250, drawn * 10. ** -np.arange(n)):
                s, u, v = tf.linalg.svd(tf.stack([x] * 3), full_matrices=True)
                largest = max(np.abs(x).max(), 1e-300)
                values = np.linalg.svd(x / largest, compute_uv=False)
                result.append(float(np.abs(s / largest - values).max()))
                result.append(float(np.abs(
                    tf.linalg.svd(x, compute_uv=False) / largest - values).max()))
                p = min(m, n)
                product = u[..., :p] @ (s[..., None] / largest * tf.linalg.adjoint(v)[:, :p])
                result.append(float(np.abs(product - x / largest).max()))
                for q in (u, v):
                    result.append(float(np.abs(
                        tf.linalg.adjoint(q) @ q - np.eye(q.shape[-1])).max()))
    return result


def not_finite():
    """Returns how many results are not NaN, of matrices with an element that is not
    finite."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    result = []
    with tf.device(DEVICE):
        for shape in ((3, 3), (20, 4), (4, 20), (40, 30)):
            for bad in (np.nan, np.inf):
                x = np.random.default_rng(1).normal(size=shape)
                x[1, 1] = bad
                for full in (False, True):
                    for y in tf.linalg.svd(x, full_matrices=full):
                        result.append(int(np.isfinite(y).sum()))
                result.append(int(np.isfinite(
                    tf.linalg.svd(x, compute_uv=False)).sum()))
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
