# SPDX-License-Identifier: Apache-2.0
"""Random cases of the ops in families that test_backend_families.py compares with
TensorFlow's CPU kernels, some with invalid arguments. Functions run in a child
process."""

import backend_cases
from backend_cases import CPU, DEVICE


class Families(backend_cases.Cases):
    """(op, inputs, attributes), in methods named after the headers."""

    def all(self):
        return [case for name in sorted(vars(Families)) if name.startswith("of_")
                for case in getattr(self, name)()]

    def complex(self, shape, dtype="complex64"):
        return (self.array(shape, "float64") + 1j * self.array(shape, "float64")
                ).astype(dtype)

    def of_counting(self):
        import numpy as np
        i = self.random.integers
        for shape in ([], [0], [1], [9], [3, 7], [0, 4], [2, 2, 2]):
            for dtype in ("int32", "int64"):
                x = i(0, 7, shape).astype(dtype)
                for kind in ("int32", "int64", "float32", "float64"):
                    weights = self.array(shape if i(2) else [0], kind)
                    yield "DenseBincount", {
                        "input": x, "size": np.array(5, dtype), "weights": weights}, {
                            "binary_output": bool(i(2))}
            yield "Bincount", {"arr": i(0, 7, shape).astype("int32"),
                               "size": np.int32(6), "weights": self.array(shape)}, {}
        x = i(0, 7, [3]).astype("int32")
        yield "DenseBincount", {"input": x, "size": np.int32(-1),
                                "weights": self.array([3])}, {}
        yield "DenseBincount", {"input": x, "size": np.int32(2),
                                "weights": self.array([2])}, {}
        for dtype in ("float32", "float64", "int32", "int64"):
            for count in (0, 1, 3, 40):
                x = self.array(self.shape(), dtype)
                yield "Bucketize", {"input": x}, {
                    "boundaries": [float(v) for v in sorted(i(-20, 20, count) / 4)]}
        x = np.array([np.nan, np.inf, -np.inf, 0.0], "float32")
        yield "Bucketize", {"input": x}, {"boundaries": [0.0, 1.0]}
        yield "Bucketize", {"input": x}, {"boundaries": [1.0, 0.0]}
        for dtype in ("float32", "float16", "int32", "uint8", "float64"):
            for op in ("LowerBound", "UpperBound"):
                for rows, n, m in ((2, 5, 3), (1, 1, 1), (0, 3, 2), (2, 0, 3)):
                    yield op, {"sorted_inputs": np.sort(self.array([rows, n], dtype)),
                               "values": self.array([rows, m], dtype)}, {}
                yield op, {"sorted_inputs": self.array([2, 3], dtype),
                           "values": self.array([3, 3], dtype)}, {}
        for dtype in ("int32", "int64"):
            x = self.array([6, 5])
            x[0, 1], x[1, 2] = np.inf, np.nan
            for k in (-1, 0, 1, 2, 5, 9):
                yield "InTopKV2", {"predictions": x, "targets": i(-1, 6, 6).astype(
                    dtype), "k": np.array(k, dtype)}, {}
            yield "InTopKV2", {"predictions": x, "targets": np.zeros(5, dtype),
                               "k": np.array(1, dtype)}, {}

    def of_color(self):
        import numpy as np
        for dtype in ("float32", "float64"):
            for shape in ([3], [1, 1, 3], [2, 4, 5, 3], [0, 2, 3], [2, 2]):
                x = self.random.random(shape).astype(dtype)
                if x.size > 3:
                    x.flat[:3] = x.flat[0]  # gray
                amount = np.float32(self.random.random() * 2 - .5)
                yield "RGBToHSV", {"images": x}, {}
                yield "HSVToRGB", {"images": x}, {}
                if dtype != "float64" and len(shape) > 2:
                    yield "AdjustHue", {"images": x, "delta": amount}, {}
                    yield "AdjustSaturation", {"images": x, "scale": amount}, {}
                    yield "AdjustContrastv2", {"images": x,
                                               "contrast_factor": amount}, {}

    def of_complex(self):
        import numpy as np
        import tensorflow as tf
        for dtype in ("complex64", "complex128"):
            part = "float32" if dtype == "complex64" else "float64"
            for _ in range(3):
                shape = self.shape(0, 4)
                x, y = self.complex(shape, dtype), self.complex(shape[-2:], dtype)
                for op in ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Equal",
                           "NotEqual"):
                    yield op, {"x": x, "y": y}, {}
                for op in ("Neg", "Square", "Reciprocal", "Exp"):
                    yield op, {"x": x}, {}
                yield "AddN", {"inputs": [x, x, x]}, {}
                yield "Conj", {"input": x}, {}
                for op, name in (("Real", "input"), ("Imag", "input"),
                                 ("ComplexAbs", "x"), ("Angle", "input")):
                    yield op, {name: x}, {"Tout": tf.as_dtype(part)}
                yield "Complex", {"real": self.array(shape, part),
                                  "imag": self.array(shape[-1:], part)}, {
                                      "Tout": tf.as_dtype(dtype)}
                for other in ("float32", "float64", "complex64", "complex128", "int32"):
                    yield "Cast", {"x": x}, {"DstT": tf.as_dtype(other)}
                    if "complex" not in other:
                        yield "Cast", {"x": self.array(shape, other)}, {
                            "DstT": tf.as_dtype(dtype)}
            x = np.array([0, np.inf, 3e38, 1e-30 + 1e-30j, 3e38 + 3e38j], dtype)
            yield "ComplexAbs", {"x": x}, {"Tout": tf.as_dtype(part)}
            yield "Div", {"x": x[2:], "y": x[2:]}, {}
        x = self.complex([3, 4, 5])
        yield "StridedSlice", {"input": x, "begin": np.array([0, 1]), "end": np.array(
            [2, 4]), "strides": np.array([1, 2])}, {}
        yield "Transpose", {"x": x, "perm": np.array([2, 0, 1])}, {}
        yield "ConcatV2", {"values": [x, x], "axis": np.int32(1)}, {}
        yield "GatherV2", {"params": x, "indices": np.array([2, 0]),
                           "axis": np.int32(1)}, {}

    def of_fft(self):
        import numpy as np
        import tensorflow as tf
        for kind in ("complex64", "complex128"):
            part = "float32" if kind == "complex64" else "float64"
            for rank, name in ((1, ""), (2, "2D"), (3, "3D")):
                for sizes in ([1, 1, 1], [4, 3, 8], [2, 5, 7], [2, 3, 97], [1, 2, 360],
                              [3, 128, 2]):
                    if rank == 3 and max(sizes) > 100:
                        continue
                    shape = sizes
                    x = self.complex(shape, kind)
                    yield "FFT" + name, {"input": x}, {}
                    yield "IFFT" + name, {"input": x}, {}
                    length = np.array(shape[-rank:], "int32")
                    for less in (0, 1):
                        n = np.maximum(length - less, 1)
                        yield "RFFT" + name, {"input": x.real.copy(),
                                              "fft_length": n}, {
                                                  "Tcomplex": tf.as_dtype(kind)}
                        n = n.copy()
                        n[-1] = max(2 * shape[-1] - 2 - less, 1)
                        yield "IRFFT" + name, {"input": x, "fft_length": n}, {
                            "Treal": tf.as_dtype(part)}
        x = self.array([5])
        yield "RFFT", {"input": x, "fft_length": np.array([6], "int32")}, {}
        yield "RFFT2D", {"input": x, "fft_length": np.array([5, 5], "int32")}, {}
        yield "FFT2D", {"input": self.complex([4])}, {}

    def of_identity(self):
        import numpy as np
        import tensorflow as tf
        for source, target in (("float32", "int32"), ("float64", "float32"),
                               ("uint8", "int64"), ("int16", "uint16"),
                               ("complex64", "float32"), ("bool", "uint8")):
            for shape in ([], [3, 8], [0, 8], [2, 4]):
                x = (self.complex(shape) if source == "complex64" else
                     self.array(shape, source))
                yield "Bitcast", {"input": x}, {"type": tf.as_dtype(target)}
        for dtype in ("float32", "int64", "uint8"):
            yield "Snapshot", {"input": self.array([2, 3], dtype)}, {}
            yield "Empty", {"shape": np.array([2, 0, 3], "int32")}, {
                "dtype": tf.as_dtype(dtype)}
            yield "Empty", {"shape": np.array([2, 3], "int32")}, {
                "dtype": tf.as_dtype(dtype), "init": True}
        yield "Empty", {"shape": np.array([-2], "int32")}, {"dtype": tf.float32}

    def of_pad(self):
        import numpy as np
        for dtype in ("float32", "float64"):
            for mode in ("REFLECT", "SYMMETRIC"):
                for rank in (1, 2, 3):
                    inside = [int(n) for n in self.random.integers(1, 5, rank)]
                    sides = np.array([self.random.integers(
                        0, n + (mode == "SYMMETRIC"), 2) for n in inside])
                    shape = np.array(inside) + sides.sum(1)
                    yield "MirrorPadGrad", {
                        "input": self.array(shape, dtype), "paddings": sides}, {
                            "mode": mode}
                    yield "MirrorPadGrad", {
                        "input": self.array(shape, dtype), "paddings": sides + 4}, {
                            "mode": mode}

    def of_linalg(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "float64"):
            for shape in ([3, 3], [2, 4, 4], [1, 1], [0, 0], [0, 2, 2], [3, 2], [4]):
                x = self.array(shape, dtype)
                if x.ndim > 1 and shape[-1] == shape[-2] > 0:
                    # Far from singular: the CPU computes in the type of the input.
                    x += (shape[-1] * 4 * np.eye(shape[-1])).astype(dtype)
                    spd = (x @ np.swapaxes(x, -1, -2)).astype(dtype)
                else:
                    spd = x
                yield "Cholesky", {"input": spd}, {}
                yield "MatrixDeterminant", {"input": x}, {}
                yield "LogMatrixDeterminant", {"input": x}, {}
                yield "MatrixInverse", {"input": x}, {"adjoint": bool(i(2))}
                yield "Lu", {"input": x}, {}
                yield "SelfAdjointEigV2", {"input": spd}, {"compute_v": False}
                yield "Qr", {"input": x}, {}
                yield "Svd", {"input": x}, {"compute_uv": False}
                for columns in (1, 3):
                    right = self.array([*shape[:-1], columns], dtype)
                    yield "MatrixSolve", {"matrix": x, "rhs": right}, {
                        "adjoint": bool(i(2))}
                    yield "MatrixTriangularSolve", {"matrix": x, "rhs": right}, {
                        "adjoint": bool(i(2)), "lower": bool(i(2))}
            zero = np.zeros([2, 2], dtype)
            for op in ("MatrixInverse", "MatrixDeterminant", "Lu"):
                yield op, {"input": zero}, {}
            for op in ("MatrixSolve", "MatrixTriangularSolve"):
                yield op, {"matrix": zero, "rhs": zero}, {}

    def of_segment(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "float64", "int32"):
            for shape in ([6, 3], [1], [0, 2], [5, 0], [4, 2, 3]):
                x = self.array(shape, dtype)
                for index in ("int32", "int64"):
                    ids = np.sort(i(0, 5, shape[0])).astype(index)
                    for op in ("Sum", "Prod", "Max", "Min", "Mean"):
                        yield "Segment" + op, {"data": x, "segment_ids": ids}, {}
                    if dtype == "int32":
                        continue
                    rows = i(0, max(shape[0], 1), 4 if shape[0] else 0)
                    for op in ("Sum", "Mean", "SqrtN"):
                        yield "SparseSegment" + op, {
                            "data": x, "indices": rows.astype(index),
                            "segment_ids": np.sort(i(0, 5, len(rows))).astype(
                                "int32")}, {}
        yield "SegmentSum", {"data": self.array([3]), "segment_ids": np.array([0])}, {}
        yield "SegmentSum", {"data": self.array([]), "segment_ids": np.array([0])}, {}

    def of_sparse(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "int64", "bool", "uint8"):
            rest = self.array([], dtype)
            for index in ("int32", "int64"):
                for indices, shape, values in (
                        ([[0, 1], [1, 0], [2, 2]], [3, 3], [3]), ([1, 4], [5], [2]),
                        ([[0, 1], [1, 0]], [2, 2], []), (2, [4], []),
                        ([[0, 1]], [2], [1]), ([[0, 1]], [2, 2], [2])):
                    yield "SparseToDense", {
                        "sparse_indices": np.array(indices, index),
                        "output_shape": np.array(shape, index), "sparse_values":
                        self.array(values, dtype), "default_value": rest}, {}
        for dtype in ("float32", "float64"):
            for count in (0, 1, 6):
                for adjoint in (False, True):
                    indices = np.stack([i(0, 4, count), i(0, 3, count)], 1)
                    a = {"a_indices": indices, "a_values": self.array([count], dtype),
                         "a_shape": np.array([4, 3])}
                    rows = 4 if adjoint else 3
                    yield "SparseTensorDenseMatMul", {
                        **a, "b": self.array([rows, 2], dtype)}, {"adjoint_a": adjoint}
                    yield "SparseTensorDenseMatMul", {
                        **a, "b": self.array([2, rows], dtype)}, {
                            "adjoint_a": adjoint, "adjoint_b": True}
            yield "SparseTensorDenseMatMul", {**a, "b": self.array([5, 2], dtype)}, {}
            for bad in ([], [np.nan], [np.inf], [-np.inf, np.nan]):
                x = np.concatenate([self.array([4], dtype), np.array(bad, dtype)])
                for op in ("CheckNumerics", "CheckNumericsV2"):
                    yield op, {"tensor": x}, {"message": "here"}

    def of_special(self):
        import numpy as np
        for dtype in ("float32", "float64"):
            for shape in ([], [0], [5], [2, 3]):
                x = np.abs(self.array(shape, dtype)) + np.array(.1, dtype)
                y = np.abs(self.array(shape[-1:], dtype)) + np.array(.2, dtype)
                for op in ("Digamma", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
                           "BesselJ0", "BesselK0", "BesselK1e", "BesselY1"):
                    yield op, {"x": x}, {}
                # Between 0 and 1.
                part = 1 / (1 + x)
                yield "Ndtri", {"x": part}, {}
                yield "Erfinv", {"x": part}, {}
                for op in ("Igamma", "Igammac"):
                    yield op, {"a": x, "x": y}, {}
                yield "Zeta", {"x": x + 1, "q": y}, {}
                yield "Polygamma", {"a": np.ones(shape, dtype), "x": y}, {}
                yield "Betainc", {"a": x, "b": x + 1, "x": part}, {}
        yield "Betainc", {"a": self.array([2]), "b": self.array([3]),
                          "x": self.array([2])}, {}
        yield "Igamma", {"a": self.array([2]), "x": self.array([3])}, {}

    def of_warp(self):
        import numpy as np
        import tensorflow as tf
        for dtype in ("float32", "float64", "uint8", "int32", "int64"):
            for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
                for interpolation in ("NEAREST", "BILINEAR"):
                    images = self.array([2, 5, 4, 3], dtype) * 3
                    count = int(self.random.integers(1, 3))
                    # Multiples of 1/4: both devices round alike.
                    turn = np.array([1, 0, 0, 0, 1, 0, 0, 0]) + self.random.integers(
                        -4, 5, (count, 8)) / 4 * [1, 1, 9, 1, 1, 9, 0, 0]
                    arguments = {"images": images, "transforms": turn.astype("float32"),
                                 "output_shape": np.array([6, 3], "int32")}
                    attributes = {"interpolation": interpolation, "fill_mode": mode}
                    yield "ImageProjectiveTransformV2", arguments, attributes
                    yield "ImageProjectiveTransformV3", {
                        **arguments, "fill_value": np.float32(7)}, attributes
        yield "ImageProjectiveTransformV3", {
            **arguments, "output_shape": np.array([6], "int32"),
            "fill_value": np.float32(7)}, attributes
        yield "ImageProjectiveTransformV3", {
            **arguments, "output_shape": np.array([6, 0], "int32"),
            "fill_value": np.float32(7)}, attributes

    def of_where(self):
        import numpy as np
        for dtype in ("bool", "float32", "int64", "uint8"):
            for shape in ([], [0], [1], [40], [3, 4], [2, 0, 3], [2, 3, 2, 2]):
                x = self.array(shape, dtype)
                if dtype != "bool":
                    x = x * self.array(shape, "bool")
                yield "Where", {"condition": np.asarray(x, dtype)}, {}
        yield "Where", {"condition": np.array([0.0, -0.0, np.nan, 1e-42, np.inf],
                                              "float32")}, {}


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


def difference(device, cpu):
    """Returns backend_cases.largest_difference, also of complex numbers."""
    if isinstance(cpu, list):
        return max(difference(a, b) for a, b in zip(device, cpu, strict=True))
    if cpu.dtype.kind == "c" and device.dtype == cpu.dtype:
        part = "float32" if cpu.dtype == "complex64" else "float64"
        device, cpu = (x.reshape([*x.shape, 1]).view(part) for x in (device, cpu))
    return backend_cases.largest_difference(device, cpu)


def compare(seed, ops=()):
    """Returns {"op #": [difference, description]}; difference is -1 if only one of the
    devices fails."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    result = {}
    for number, (op, inputs, attributes) in enumerate(Families(seed).all()):
        if ops and op not in ops:
            continue
        cpu, device = (backend_cases._run(op, inputs, place, attributes)
                       for place in (CPU, DEVICE))
        if isinstance(cpu, str) or isinstance(device, str):
            same = isinstance(cpu, str) and isinstance(device, str) and cpu == device
            found = 0 if same else -1
        else:
            if op in ("Svd", "SelfAdjointEigV2"):  # the others are not computed
                device, cpu = device[:1], cpu[:1]
            found = difference(device, cpu)
        shapes = {k: (str(v.dtype), v.shape) if hasattr(v, "dtype") else len(v)
                  for k, v in inputs.items()}
        result[f"{op} {number}"] = [found, f"{shapes} {attributes}"] + (
            [f"device: {device}"[:300], f"CPU: {cpu}"[:300]] if found else [])
    return result
