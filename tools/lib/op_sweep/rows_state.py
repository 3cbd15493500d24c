# SPDX-License-Identifier: Apache-2.0
"""Arguments of optimizers, variables, random numbers, linear algebra and transforms."""

import numpy as np
from tensorflow.core.framework import types_pb2

from op_sweep.rows import row

_SPARSE = ("Adadelta Adagrad AdagradDA AdagradV2 CenteredRMSProp Ftrl FtrlV2 "
           "KerasMomentum Momentum ProximalAdagrad ProximalGradientDescent RMSProp")
_DENSE = _SPARSE + " AdaMax Adam AdamWithAmsgrad AddSign GradientDescent PowerSign"


@row(" ".join(["ResourceApply" + name for name in _DENSE.split()] +
              ["ResourceSparseApply" + name for name in _SPARSE.split()]))
def _optimizer(g):
    g.profile = "plain"
    shape = g.shape(low=1 if "Sparse" in g.op else 0, high=4, empty="Sparse" not in g.op)
    count = g.integer(0, shape[0]) if "Sparse" in g.op else 0
    for arg in g.definition.input_arg:
        if arg.type == types_pb2.DT_RESOURCE:
            # Accumulators are positive; a variance is above the square of the mean.
            low, high = {"var": (-2, 2), "ms": (2, 4), "mg": (-1, 1)}.get(
                arg.name, (.1, 2))
            g.variable(arg.name, shape, low, high)
        elif arg.name in ("grad", "delta"):
            g.tensor(arg.name, [count, *shape[1:]] if "Sparse" in g.op else shape)
        elif arg.name == "indices":
            g.put("indices", g.random.permutation(shape[0])[:count])
        elif arg.name == "lr_power":
            g.put("lr_power", -.5)
        elif arg.name == "global_step":  # TensorFlow divides by it.
            g.put("global_step", g.integer(1, 100))
        else:
            g.tensor(arg.name, [], .05, .9)


@row("AssignAddVariableOp AssignSubVariableOp AssignVariableOp")
def _assign(g):
    shape = g.shape()
    g.variable("resource", shape)
    g.tensor("value", shape)
    g.attrs["validate_shape"] = False


@row("ReadVariableOp VariableShape")
def _read(g):
    if "dtype" in g.types:
        g.variable("resource" if g.op == "ReadVariableOp" else "input", g.shape())


@row("ResourceStridedSliceAssign")
def _strided_assign(g):
    from op_sweep.rows_array import draw_strides  # pylint: disable=C0415
    shape = g.shape(high=5)
    g.variable("ref", shape, dtype="value")
    g.tensor("value", np.empty(shape)[draw_strides(g, shape)].shape)


# ---- Random numbers --------------------------------------------------------------


def _random_shape(g):
    return g.choice([[], [0], [1], [7], [1003], g.shape(high=4)])


@row("StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal "
     "StatelessRandomUniformFullInt")
def _stateless(g):
    g.put("shape", _random_shape(g))
    g.tensor("seed", [2], 0, 2**31 - 1)


def _key(g):
    g.put("shape", _random_shape(g))
    g.tensor("key", [1], 0, 2**62)
    g.tensor("counter", [2], 0, 2**62)
    g.put("alg", 1)  # Philox


@row("StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2 "
     "StatelessRandomUniformFullIntV2")
def _stateless_v2(g):
    _key(g)


@row("StatelessRandomUniformInt StatelessRandomUniformIntV2 RandomUniformInt")
def _uniform_int(g):
    if g.op.endswith("V2"):
        _key(g)
    else:
        g.put("shape", [1003] if g.op == "RandomUniformInt" else _random_shape(g))
        if g.op != "RandomUniformInt":
            g.tensor("seed", [2], 0, 2**31 - 1)
    unsigned = np.dtype(g.dtype("minval")).kind == "u"
    g.put("minval", 0 if unsigned else g.integer(-9, 9))
    g.put("maxval", g.integer(10, 1000))
    g.attrs.update({name: 3 for name in ("seed2",) if g.has(name)})


@row("StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg")
def _key_counter(g):
    low = 0 if np.dtype(g.dtype("seed")).kind == "u" else -2**31
    g.tensor("seed", [2], low, 2**31 - 1)


@row("RandomUniform RandomStandardNormal TruncatedNormal")
def _random(g):
    g.put("shape", g.choice([[], [0], [5], [1003], [30, 40]]))
    g.attrs.update(seed=g.integer(1, 99), seed2=g.integer(1, 99))


@row("RandomShuffle")
def _shuffle(g):
    g.tensor("value", g.shape(high=4), profile="plain")


@row("Multinomial StatelessMultinomial")
def _multinomial(g):
    g.tensor("logits", [g.integer(1, 3), g.integer(1, 5)], -2, 2)
    g.put("num_samples", 300)
    if g.op[0] == "S":
        g.tensor("seed", [2], 0, 2**31 - 1)


# ---- Linear algebra and transforms -----------------------------------------------


def _matrices(g, dtype, definite=True):
    """Returns well-conditioned matrices, symmetric and positive definite on request."""
    n = g.integer(1, 5)
    batch = g.shape(high=2, most=3, empty=False)
    a = g.values(dtype, [*batch, n, n], profile="plain").astype("complex128")
    scale = np.abs(a).max(initial=1)
    a = a / scale
    if definite:
        a = a @ np.conj(np.swapaxes(a, -1, -2))
    a = a + 2 * n * np.eye(n)
    return a if np.dtype(dtype).kind == "c" else a.real


@row("Cholesky MatrixInverse MatrixDeterminant LogMatrixDeterminant SelfAdjointEigV2 "
     "Svd Eig Qr MatrixExponential MatrixLogarithm MatrixSquareRoot Lu")
def _matrix(g):
    g.put("input", _matrices(g, g.dtype("input"), g.op != "MatrixInverse"))
    if g.has("compute_v"):
        g.attrs["compute_v"] = False
    if g.has("compute_uv"):
        g.attrs["compute_uv"] = False


@row("CholeskyGrad")
def _cholesky_grad(g):
    a = _matrices(g, g.dtype("l"))
    g.put("l", np.linalg.cholesky(a))
    g.tensor("grad", a.shape, profile="plain")


@row("MatrixSolve MatrixTriangularSolve BatchMatrixTriangularSolve MatrixSolveLs")
def _solve(g):
    a = g.put("matrix", _matrices(g, g.dtype("matrix")))
    g.tensor("rhs", [*a.shape[:-1], g.integer(1, 4)], profile="plain")


@row("MatrixBandPart")
def _band(g):
    shape = g.shape(low=2, high=5)
    g.tensor("input", shape)
    g.put("num_lower", g.integer(-1, shape[-2]))
    g.put("num_upper", g.integer(-1, shape[-1]))


@row("MatrixDiag Diag")
def _diag(g):
    g.tensor("diagonal", g.shape(low=1, high=3, most=6))


@row("MatrixDiagPart")
def _diag_part(g):
    g.tensor("input", g.shape(low=2, high=4))


@row("DiagPart")
def _tensor_diag_part(g):
    shape = g.shape(low=1, high=2, most=5)
    g.tensor("input", shape + shape)


@row("MatrixSetDiag")
def _set_diag(g):
    shape = g.shape(low=2, high=4)
    g.tensor("input", shape)
    g.tensor("diagonal", [*shape[:-2], min(shape[-2:])])


def _diagonals(g, rows, cols):
    """Returns the diagonals' range and the shape of their elements."""
    low = g.integer(1 - rows, cols - 1)
    high = g.integer(low, cols - 1) if g.chance(.6) else low
    longest = min(rows + min(high, 0), cols - max(low, 0))
    if low == high and g.chance(.5):
        return low, [longest]
    return [low, high], [longest] if low == high else [high - low + 1, longest]


@row("MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiagV2 "
     "MatrixSetDiagV3")
def _diag_v3(g):
    batch = g.shape(high=2, most=3)
    rows, cols = g.integer(1, 5), g.integer(1, 5)
    k, shape = _diagonals(g, rows, cols)
    g.put("k", k)
    if "Part" in g.op or "Set" in g.op:
        g.tensor("input", [*batch, rows, cols])
    if "Part" not in g.op:
        g.tensor("diagonal", [*batch, *shape])
    if "Set" not in g.op:
        g.tensor("padding_value", [])
    if g.op in ("MatrixDiagV2", "MatrixDiagV3"):
        g.put("num_rows", rows)
        g.put("num_cols", cols)


@row("FFT FFT2D FFT3D IFFT IFFT2D IFFT3D")
def _fft(g):
    dims = int(g.op[-2]) if g.op[-1] == "D" else 1
    g.profile = "plain"
    g.tensor("input", [*g.shape(high=2, most=3), *(g.integer(1, 9) for _ in range(dims))])


@row("RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D")
def _rfft(g):
    dims = int(g.op[-2]) if g.op[-1] == "D" else 1
    g.profile = "plain"
    sizes = [g.integer(1, 8) for _ in range(dims)]
    g.put("fft_length", sizes)
    if g.op[0] == "I":
        sizes = [*sizes[:-1], sizes[-1] // 2 + 1]
    g.tensor("input", [*g.shape(high=2, most=3), *sizes])


@row("FFTND IFFTND RFFTND IRFFTND")
def _fft_nd(g):
    dims = g.integer(1, 4)
    g.profile = "plain"
    sizes = [g.integer(1, 6) for _ in range(dims)]
    batch = g.shape(high=2, most=3)
    g.put("fft_length", sizes)
    g.put("axes", [len(batch) + i for i in range(dims)])
    if g.op[0:2] == "IR":
        sizes = [*sizes[:-1], sizes[-1] // 2 + 1]
    g.tensor("input", [*batch, *sizes])


@row("SparseTensorDenseMatMul")
def _sparse_matmul(g):
    rows, inner, cols = g.integer(1, 5), g.integer(1, 5), g.integer(1, 5)
    g.attrs.update(adjoint_a=False, adjoint_b=False)
    flat = np.sort(g.random.permutation(rows * inner)[:g.integer(0, rows * inner)])
    g.put("a_indices", np.stack(np.unravel_index(flat, [rows, inner]), -1))
    g.tensor("a_values", [len(flat)], profile="plain")
    g.put("a_shape", [rows, inner])
    g.tensor("b", [inner, cols], profile="plain")
