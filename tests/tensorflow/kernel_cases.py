# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of each op of cpu_sim: random and special values,
empty tensors, rank 0, broadcasts."""

import data_cases
import numpy as np

SAME = [((3, 4), (3, 4)), ((), ()), ((0, 3), (0, 3)), ((2, 3, 5, 7),) * 2]
BROADCASTS = SAME + [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)),
                     ((0, 3), (3,)), ((2, 1, 3, 1), (5, 1, 4)), ((1,), (0,))]
NASTY = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, 1.0, -1.0]
REDUCTIONS = [((3, 4), [0]), ((3, 4), [1]), ((3, 4), [-1]), ((3, 4), [0, 1]),
              ((3, 4), []), ((), []), ((0, 3), [0]), ((0, 3), [1]),
              ((2, 3, 5, 7), [0, 2]), ((2, 3, 5, 7), [1, 3]), ((5, 0), [1])]
_INTEGER_PATTERNS = [0, 1, -1, 2**31 - 1, -2**31, 7]


class Values:
    """Draws tensors."""

    def __init__(self, dtype, types=None, seed=0):
        self.random = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.types = types or {}  # by attribute, if there are several

    def tame(self, shape, low=-3, high=3):
        if self.dtype == bool:
            return self.random.integers(0, 2, shape).astype(bool)
        if self.dtype.kind in "iu":
            low = max(low, 0) if self.dtype.kind == "u" else low
            return self.random.integers(low, high + 1, shape).astype(self.dtype)
        return np.asarray(self.random.uniform(low, high, shape), self.dtype)

    def nasty(self, shape):
        """Like tame(), with special values at random positions."""
        values = np.array(self.tame(shape))
        flat = values.reshape(-1)
        hard = (NASTY if self.dtype.kind == "f" else
                _INTEGER_PATTERNS if self.dtype.kind == "i" else [])
        count = min(len(hard), flat.size)
        flat[:count] = self.random.permutation(hard)[:count].astype(self.dtype)
        return values


def _unary(name):
    return lambda v: [{name: draw(s)} for s in [(3, 4), (), (0, 3), (2, 3, 40)]
                      for draw in (v.tame, v.nasty)]


def _binary(x, y, shapes):
    return lambda v: [{x: draw(a), y: draw(b)} for a, b in shapes
                      for draw in (v.tame, v.nasty)]


def _reduce(**attributes):
    def cases(v):
        return [dict(input=draw(shape), axis=np.array(axis, np.int32),
                     keep_dims=keep, **attributes)
                for shape, axis in REDUCTIONS for keep in (False, True)
                for draw in (v.tame, v.nasty)]
    return cases


def _arg_best(v):
    return [dict(input=v.tame(shape), dimension=np.int32(d))
            for shape in [(3, 4), (5,), (2, 3, 4), (0, 3), (1, 1)]
            for d in range(-len(shape), len(shape)) if shape[d] > 0]


def _matmul(v):
    cases = []
    for m, k, n in [(3, 4, 5), (1, 1, 1), (0, 3, 2), (3, 0, 2), (70, 65, 33)]:
        for ta in (False, True):
            for tb in (False, True):
                cases.append(dict(a=v.tame((k, m) if ta else (m, k)),
                                  b=v.tame((n, k) if tb else (k, n)),
                                  transpose_a=ta, transpose_b=tb))
    return cases


def _cross_entropy(v):
    def distribution(shape):
        values = np.abs(v.tame(shape)) + 0.1
        return (values / values.sum(-1, keepdims=True)).astype(np.float32)
    return [dict(features=v.tame(a), labels=distribution(b))
            for a, b in [((4, 10), (4, 10)), ((1, 3), (1, 3)),
                         ((0, 3), (0, 3))]] + [
        dict(features=v.tame((4, 10)) * 100, labels=distribution((4, 10)))]


def _sparse_cross_entropy(v):
    return [dict(features=v.tame((n, c)) * scale,
                 labels=v.random.integers(0, c, n).astype(label))
            for n, c in [(4, 10), (1, 1), (0, 3), (64, 10)]
            for scale in (1, 100) for label in (np.int32, np.int64)]


def _select(v):
    shapes = [((3, 4), (3, 4), (3, 4)), ((), (), ()), ((0,), (0,), (0,)),
              ((3, 1), (4,), (1, 1)), ((), (2, 3), (3,))]
    return [dict(condition=v.random.integers(0, 2, c).astype(bool),
                 t=v.tame(a), e=v.tame(b)) for c, a, b in shapes]


def _relu_gradient(v):
    return [dict(gradients=v.tame(s), features=draw(s)) for s, _ in SAME
            for draw in (v.tame, v.nasty)]


def _bias(v):
    shapes = [((3, 4), (4,), "NHWC"), ((0, 4), (4,), "NHWC"),
              ((2, 3, 5, 7), (7,), "NHWC")]
    return [dict(value=draw(x), bias=draw(b), data_format=f)
            for x, b, f in shapes for draw in (v.tame, v.nasty)]


def _int(*values):
    return np.array(values, np.int32)


CASES = {
    "Softmax": lambda v: [dict(logits=v.tame(s) * k) for k in (1, 100)
                          for s in [(4, 10), (0, 3), (1, 1), (2, 3, 4)]],
    "LogSoftmax": lambda v: [dict(logits=v.tame(s) * k) for k in (1, 100)
                             for s in [(4, 10), (0, 3), (1, 1), (2, 3, 4)]],
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "MatMul": _matmul,
    "BiasAdd": _bias,
    "BiasAddGrad": lambda v: [dict(out_backprop=draw(s))
                              for s in [(3, 4), (0, 4), (2, 3, 5, 7)]
                              for draw in (v.tame, v.nasty)],
    "AddN": lambda v: [dict(inputs=[draw(s) for _ in range(n)])
                       for n in (1, 2, 5) for s in [(3, 4), (), (0, 3)]
                       for draw in (v.tame, v.nasty)],
    "ArgMax": _arg_best, "ArgMin": _arg_best,
    "L2Loss": lambda v: [dict(t=v.tame(s)) for s in [(3, 4), (), (0, 3)]],
    "Fill": lambda v: [dict(dims=_int(*s), value=v.tame(()))
                       for s in [(3, 4), (), (0, 3), (1000,)]],
    "BroadcastTo": lambda v: [dict(input=v.tame(a), shape=_int(*b))
                              for a, b in [((3, 1), (3, 4)), ((), (2, 3)),
                                           ((4,), (0, 4)), ((2,), (2,))]],
    "Tile": lambda v: [dict(input=v.tame(a), multiples=_int(*b))
                       for a, b in [((3, 1), (1, 4)), ((), ()), ((4,), (0,)),
                                    ((2, 3, 4), (2, 1, 3)), ((0, 2), (2, 2))]],
    "Transpose": lambda v: [dict(x=v.tame(a), perm=_int(*b))
                            for a, b in [((3, 4), (1, 0)), ((), ()),
                                         ((0, 2), (1, 0)), ((3, 4), (0, 1)),
                                         ((2, 3, 4, 5), (3, 1, 0, 2))]],
    "SelectV2": _select,
    "Sum": _reduce(), "Mean": _reduce(), "Prod": _reduce(), "Max": _reduce(),
    "Min": _reduce(), "All": _reduce(), "Any": _reduce(),
    "OnesLike": _unary("x"), "ZerosLike": _unary("x"),
    "Relu": _unary("features"), "Tanh": _unary("x"), "Sigmoid": _unary("x"),
    "ReluGrad": _relu_gradient,
    "LogicalNot": _unary("x"),
}
for _op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad",
            "ReciprocalGrad", "InvGrad"):
    # Tame: TensorFlow's result of 0 times infinity depends on its compiler.
    CASES[_op] = lambda v: [dict(y=v.tame(s), dy=v.tame(s)) for s, _ in SAME]
for _op in ("Neg Abs Sign Reciprocal Inv Square Sqrt Rsqrt Exp Log Log1p "
            "Floor").split():
    CASES[_op] = _unary("x")
for _op in ("Add AddV2 Sub Mul RealDiv Div DivNoNan SquaredDifference Maximum "
            "Minimum Equal NotEqual Less LessEqual Greater GreaterEqual "
            "LogicalAnd LogicalOr BitwiseAnd BitwiseOr").split():
    CASES[_op] = _binary("x", "y", BROADCASTS)


def _powers(v):
    cases = CASES["Mul"](v)
    return [dict(x=np.abs(c["x"]), y=c["y"]) for c in cases]


CASES["Pow"] = _powers


def _casts(v):
    # The result for a value out of the target's range is unspecified.
    return [{"x": v.tame(s)} for s in [(3, 4), (), (0, 3), (2, 3, 40)]]


def _remainders(v):
    return [dict(x=v.tame(a, -50, 50), y=v.tame(b, 1, 7)) for a, b in BROADCASTS]


def _slices(v):
    def case(shape, begin, end, strides, **masks):
        return dict(input=v.tame(shape), begin=_int(*begin), end=_int(*end),
                    strides=_int(*strides), **masks)
    return [case((5, 4), [1, 0], [4, 3], [1, 1]),
            case((5, 4), [4, 3], [0, 0], [-2, -1]),
            case((5, 4), [1, 1], [2, 2], [1, 1], shrink_axis_mask=1),
            case((5, 4), [0, 0], [0, 0], [1, 1], begin_mask=3, end_mask=3),
            case((5, 4), [2, 2], [2, 3], [1, 1]),
            case((5,), [0, 1], [0, 4], [1, 1], new_axis_mask=1),
            case((2, 3, 4), [0, 1], [0, 3], [1, 1], ellipsis_mask=1),
            case((0, 3), [0], [0], [1], end_mask=1)]


CASES["FloorMod"] = _remainders
CASES["StridedSlice"] = _slices
CASES["Cast"] = _casts
CASES["Bitcast"] = lambda v: [dict(input=v.tame((3, 4)))]
CASES.update(data_cases.CASES)
