# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of cpu_sim's kernels that move, gather, scatter, sort and
multiply; kernel_cases.py has those for the other kernels. `v` draws values of the
kernel's type; `v.types` has the types of its other attributes."""

import numpy as np


def _int(*values):
    return np.array(values, np.int32)


def _indices(v, attribute, size, shape, low=0):
    """Returns random indices from `low` to `size` - 1, of an attribute's type."""
    return np.asarray(v.random.integers(low, size, shape),
                      v.types.get(attribute, "int32"))


# ---- Joining and splitting ---------------------------------------------------

_JOINS = [([(2, 3), (4, 3)], 0), ([(2, 3), (2, 1), (2, 5)], 1),
          ([(2, 3), (2, 0)], -1), ([(3,), (0,), (2,)], 0),
          ([(2, 3, 4), (2, 1, 4)], -2), ([(0, 3), (0, 2)], 1)]


def _split_v(v):
    return [dict(value=v.tame((5, 6)), axis=np.int32(axis),
                 size_splits=np.array(sizes, v.types.get("Tlen", "int64")),
                 num_split=len(sizes))
            for axis, sizes in [(0, [2, 3]), (1, [1, -1, 2]), (-1, [0, 6]),
                                (-2, [5])]]


def _slices(v, *, begin, end, strides, shape=(5, 4), **masks):
    return dict(begin=_int(*begin), end=_int(*end), strides=_int(*strides),
                **masks), shape


def _slice_specs(v):
    return [_slices(v, begin=[1, 0], end=[4, 3], strides=[1, 1]),
            _slices(v, begin=[4, 3], end=[0, 0], strides=[-2, -1]),
            _slices(v, begin=[1, 1], end=[2, 2], strides=[1, 1],
                    shrink_axis_mask=1),
            _slices(v, begin=[-2, -9], end=[9, 2], strides=[1, 1]),
            _slices(v, begin=[2, 2], end=[2, 3], strides=[1, 1]),
            _slices(v, begin=[0, 1], end=[0, 4], strides=[1, 1], shape=(5,),
                    new_axis_mask=1),
            _slices(v, begin=[0, 1], end=[0, 3], strides=[1, 2],
                    shape=(2, 3, 4), ellipsis_mask=1),
            _slices(v, begin=[0], end=[0], strides=[1], shape=(0, 3),
                    end_mask=1)]


def _part(spec, shape):
    """Returns the shape of the slice."""
    index = []
    bits = lambda mask, i: spec.get(mask, 0) >> i & 1
    for i, (b, e, s) in enumerate(zip(spec["begin"], spec["end"],
                                      spec["strides"])):
        if bits("ellipsis_mask", i):
            index.append(Ellipsis)
        elif bits("new_axis_mask", i):
            index.append(None)
        elif bits("shrink_axis_mask", i):
            index.append(int(b))
        else:
            index.append(slice(None if bits("begin_mask", i) else int(b),
                               None if bits("end_mask", i) else int(e), int(s)))
    return np.zeros(shape)[tuple(index)].shape


def _slice_gradients(v):
    return [dict(shape=_int(*shape), dy=v.tame(_part(spec, shape)), **spec)
            for spec, shape in _slice_specs(v)]


def _slice_updates(v):
    return [dict(input=v.tame(shape), value=v.tame(_part(spec, shape)), **spec)
            for spec, shape in _slice_specs(v)
            if "new_axis_mask" not in spec]


# ---- Gathering and scattering ------------------------------------------------

def _gather_v2(v):
    cases = [((5, 3), (4,), 0, 0), ((5, 3), (2, 2), 1, 0), ((5,), (), 0, 0),
             ((2, 5, 3), (2, 4), 1, 1), ((2, 5, 3), (2, 4), -1, 1),
             ((2, 3, 5, 2), (2, 3, 4), 2, 2), ((5, 0), (3,), 0, 0),
             ((5, 3), (0,), 0, 0), ((2, 2, 5), (2, 0), 2, -1)]
    return [dict(params=v.tame(p), indices=_indices(v, "Tindices", p[axis], i),
                 axis=np.int32(axis), batch_dims=batch)
            for p, i, axis, batch in cases]


def _nd_indices(v, shape, count, rank):
    """Returns `count` indices in the first dimensions of a shape, with duplicates."""
    columns = [v.random.integers(0, shape[d], count) for d in range(rank)]
    stacked = np.stack(columns, -1) if rank else np.zeros((count, 0))
    return np.asarray(stacked, v.types.get("Tindices", "int32"))


_SCATTERS = [((5, 3), 4, 1), ((5, 3), 7, 2), ((5,), 3, 1), ((5, 3), 0, 1),
             ((2, 3, 4), 5, 2)]


def _gather_nd(v):
    return [dict(params=v.tame(s), indices=_nd_indices(v, s, n, r))
            for s, n, r in _SCATTERS] + [
        dict(params=v.tame((2, 3)), indices=_nd_indices(v, (2, 3), 2, 0)),
        dict(params=v.tame((4, 5)), indices=_nd_indices(v, (4, 5), 6, 2)
             .reshape(2, 3, 2))]


def _scatter_nd(v):
    return [dict(indices=_nd_indices(v, s, n, r), updates=v.tame((n,) + s[r:]),
                 shape=np.asarray(s, v.types.get("Tindices", "int32")))
            for s, n, r in _SCATTERS]


def _tensor_scatter(v):
    return [dict(tensor=v.tame(s), indices=_nd_indices(v, s, n, r),
                 updates=v.tame((n,) + s[r:])) for s, n, r in _SCATTERS]


def _tensor_scatter_update(v):
    # The order of two updates of one element is unspecified.
    cases = []
    for shape, count, rank in _SCATTERS:
        indices = np.unique(_nd_indices(v, shape, count, rank), axis=0)
        cases.append(dict(tensor=v.tame(shape), indices=indices,
                          updates=v.tame((len(indices),) + shape[rank:])))
    return cases


def _segments(v):
    return [dict(data=v.tame(data), num_segments=np.int32(n),
                 segment_ids=_indices(v, "Tindices", max(n, 1), ids, low=low))
            for data, ids, n, low in [((6, 3), (6,), 4, 0), ((6,), (6,), 4, -1),
                                      ((2, 3, 4), (2, 3), 5, 0),
                                      ((0, 3), (0,), 2, 0), ((4, 0), (4,), 3, 0),
                                      ((300, 2), (300,), 5, -2)]]


# ---- Along a dimension -------------------------------------------------------

def _cumulative(v):
    return [dict(x=v.tame(s), axis=np.int32(axis), exclusive=e, reverse=r)
            for s, axis in [((7,), 0), ((3, 4), 1), ((3, 4), -2),
                            ((2, 3, 4), 1), ((0, 3), 0), ((3, 0), 0)]
            for e in (False, True) for r in (False, True)]


def _one_hot(v):
    return [dict(indices=_indices(v, "TI", 6, shape), depth=np.int32(depth),
                 on_value=v.tame(()), off_value=v.tame(()), axis=axis)
            for shape, depth, axis in [((4,), 5, -1), ((2, 3), 5, 0),
                                       ((2, 3), 4, 1), ((), 3, -1),
                                       ((0,), 3, -1), ((3,), 0, -1)]]


def _top_k(v):
    # Many equal values, to test the order of their indices.
    draws = lambda s: [v.tame(s), np.round(v.tame(s))]
    return [dict(input=x, k=np.int32(k), sorted=True)
            for s, k in [((7,), 3), ((4, 9), 9), ((2, 3, 5), 1), ((4, 5), 0),
                         ((0, 5), 2)] for x in draws(s)]


def _in_top_k(v):
    cases = []
    for rows, classes, k in [(6, 5, 1), (6, 5, 3), (4, 3, 9), (0, 3, 1)]:
        predictions = np.round(v.random.uniform(-3, 3, (rows, classes)))
        predictions = predictions.astype(np.float32)
        if rows > 2:
            predictions[0, 0] = np.nan
            predictions[1, 2] = np.inf
        cases.append(dict(predictions=predictions, k=v.dtype.type(k),
                          targets=v.random.integers(-1, classes + 1, rows)
                          .astype(v.dtype)))
    return cases


def _ranges(v):
    bounds = [(0, 5, 1), (5, 0, -2), (3, 3, 1), (2, 9, 3)]
    if v.dtype.kind == "f":
        bounds.append((0.5, 2.25, 0.25))
    return [dict(zip(("start", "limit", "delta"), map(v.dtype.type, b)))
            for b in bounds]


# ---- Products ----------------------------------------------------------------

def _batch_matmul(shapes):
    def cases(v):
        return [dict(x=v.tame(bx + ((k, m) if ax else (m, k))),
                     y=v.tame(by + ((n, k) if ay else (k, n))),
                     adj_x=ax, adj_y=ay)
                for bx, by in shapes
                for m, k, n in [(3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 2, 3)]
                for ax in (False, True) for ay in (False, True)]
    return cases


_SAME_BATCH = [((), ()), ((2,), (2,)), ((2, 3), (2, 3)), ((0,), (0,))]
_ANY_BATCH = _SAME_BATCH + [((2, 1), (3,)), ((), (4,)), ((3, 1, 2), (2, 1))]
_EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,kj->ki", (3, 4), (5, 4)),
    ("ji,jk->ik", (4, 3), (4, 5)), ("abc,cde->abde", (2, 3, 4), (4, 5, 2)),
    ("aecd,abcd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("acbe,aecd->abcd", (2, 4, 6, 3), (2, 3, 4, 5)),
    ("i,j->ij", (3,), (4,)), ("i,i->", (3,), (3,)), ("i,i->i", (3,), (3,)),
    (",ij->ji", (), (2, 3)), ("bij,bjk->bik", (0, 2, 3), (0, 3, 4)),
    ("ij,jk->ik", (2, 0), (0, 3)), ("...ij,...jk->...ik", (2, 1, 3, 4),
                                    (5, 4, 2)),
    ("...i,i->...", (2, 3, 4), (4,)), ("ijk,jl->il", (2, 3, 4), (3, 5)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)), ("i,i->ii", (3,), (3,)),
    ("ab,cd->dbca", (2, 3), (4, 5)), ("ij,ij->ij", (3, 4), (3, 4)),
    ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("ij->ji", (3, 4)), ("ij->", (3, 4)), ("ij->j", (3, 4)), ("ii->i", (3, 3)),
    ("ii->", (3, 3)), ("i->ii", (3,)), ("...ij->...j", (2, 3, 4)),
    ("ijk->kji", (2, 3, 4)), ("ij->i", (3, 0)), ("->", ()),
]


def _einsum(v):
    return [dict(equation=equation, inputs=[v.tame(s) for s in shapes])
            for equation, *shapes in _EQUATIONS]


# ---- Matrices ----------------------------------------------------------------

_MATRICES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (1, 1), (0, 3, 3)]


def _diagonals(v):
    return [dict(input=v.tame(s), k=np.array(k, np.int32),
                 padding_value=np.float32(7), align=align)
            for s, k, align in [
                ((3, 4), 0, "RIGHT_LEFT"), ((4, 3), [-1], "LEFT_LEFT"),
                ((2, 3, 4), [-2, 3], "RIGHT_LEFT"),
                ((2, 3, 4), [-2, 3], "LEFT_RIGHT"),
                ((5, 3), [-3, 1], "RIGHT_RIGHT"),
                ((5, 3), [-3, -1], "LEFT_LEFT"), ((0, 3, 3), 0, "LEFT_LEFT")]]


_unary = lambda v: [{"x": draw(s)} for s in [(3, 4), (), (0, 3), (2, 3, 40)]
                    for draw in (v.tame, v.nasty)]
_unary_tame = lambda v: [{"x": v.tame(s)} for s in [(3, 4), (), (2, 3, 40)]]
_PAIRS = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (2, 3)), ((0, 3), (3,))]
_binary = lambda v: [dict(x=v.tame(a), y=v.tame(b)) for a, b in _PAIRS] + [
    dict(x=v.tame((3, 4)) * 0, y=v.tame((3, 4)))]
_divide = lambda v: [dict(x=v.tame(a, -50, 50), y=v.tame(b, 1, 7) * sign)
                     for a, b in _PAIRS for sign in (1, -1)]

CASES = {
    "Concat": lambda v: [dict(values=[v.tame(s) for s in shapes],
                              concat_dim=np.int32(axis))
                         for shapes, axis in _JOINS],
    "ConcatV2": lambda v: [dict(values=[v.tame(s) for s in shapes],
                                axis=np.int32(axis))
                           for shapes, axis in _JOINS],
    "Pack": lambda v: [dict(values=[v.tame(s) for _ in range(n)], axis=axis)
                       for s, n, axis in [((2, 3), 4, 0), ((2, 3), 2, 1),
                                          ((2, 3), 2, -1), ((), 3, 0),
                                          ((0, 2), 2, 1), ((5,), 1, 1)]],
    "Unpack": lambda v: [dict(value=v.tame(s), num=s[axis], axis=axis)
                         for s, axis in [((2, 3), 0), ((2, 3), 1), ((4,), 0),
                                         ((2, 3, 4), -2), ((0, 3), 1)]],
    "Split": lambda v: [dict(value=v.tame(s), axis=np.int32(axis), num_split=n)
                        for s, axis, n in [((4, 6), 0, 2), ((4, 6), 1, 3),
                                           ((4, 6), -1, 1), ((0, 4), 1, 2),
                                           ((2, 6, 3), -2, 6)]],
    "SplitV": _split_v,
    "Slice": lambda v: [dict(input=v.tame(s), begin=_int(*b), size=_int(*n))
                        for s, b, n in [((5, 4), (1, 0), (3, 4)),
                                        ((5, 4), (2, 1), (-1, 2)), ((), (), ()),
                                        ((5, 4), (5, 0), (0, -1)),
                                        ((2, 3, 4), (0, 1, 2), (2, 1, 2))]],
    "StridedSliceGrad": _slice_gradients,
    "TensorStridedSliceUpdate": _slice_updates,
    "ReverseV2": lambda v: [dict(tensor=v.tame(s), axis=_int(*axes))
                            for s, axes in [((5,), [0]), ((3, 4), [1]),
                                            ((3, 4), [0, -1]), ((3, 4), []),
                                            ((0, 3), [0]), ((2, 3, 4), [1])]],
    "Gather": lambda v: [dict(params=v.tame(p), validate_indices=True,
                              indices=_indices(v, "Tindices", p[0], i))
                         for p, i in [((5, 3), (4,)), ((5,), ()),
                                      ((5, 2, 2), (2, 3)), ((5, 0), (3,))]],
    "GatherV2": _gather_v2, "GatherNd": _gather_nd, "ScatterNd": _scatter_nd,
    "TensorScatterUpdate": _tensor_scatter_update,
    "Cumsum": _cumulative, "Cumprod": _cumulative, "OneHot": _one_hot,
    "TopKV2": _top_k, "InTopKV2": _in_top_k, "Range": _ranges,
    "LinSpace": lambda v: [dict(start=v.dtype.type(a), stop=v.dtype.type(b),
                                num=np.int32(n))
                           for a, b, n in [(0, 1, 5), (3, -2, 7), (1, 9, 1),
                                           (2, 2, 3)]],
    "BatchMatMul": _batch_matmul(_SAME_BATCH),
    "BatchMatMulV2": _batch_matmul(_ANY_BATCH),
    "BatchMatMulV3": _batch_matmul(_ANY_BATCH),
    "Einsum": _einsum,
    "Qr": lambda v: [dict(input=v.tame(s), full_matrices=full)
                     for s in _MATRICES for full in (False, True)],
    "MatrixDiagPartV3": _diagonals,
    "ClipByValue": lambda v: [dict(t=draw(s), clip_value_min=v.dtype.type(-1),
                                   clip_value_max=v.dtype.type(2))
                              for s in [(3, 4), (), (0, 3)]
                              for draw in (v.tame, v.nasty)],
    "FloorDiv": _divide,
}
for _op in "Add Sub Max Min".split():
    CASES["TensorScatter" + _op] = _tensor_scatter
for _op in "Sum Prod Max Min".split():
    CASES["UnsortedSegment" + _op] = _segments
for _op in ("Ceil Rint Round Expm1 Erf Erfc IsNan IsInf IsFinite Atan "
            "Sinh Cosh").split():
    CASES[_op] = _unary
for _op in "Sin Cos Tan".split():  # unspecified for 1e30
    CASES[_op] = _unary_tame
for _op in "Xdivy Xlogy Xlog1py".split():
    CASES[_op] = _binary
CASES["Atan2"] = lambda v: [dict(y=c["x"], x=c["y"]) for c in _binary(v)]
CASES["MulNoNan"] = lambda v: [  # 0 where y is 0, even if x is NaN
    dict(x=draw(a), y=v.tame(b) * (i % 2))
    for i, (a, b) in enumerate(_PAIRS * 2) for draw in (v.tame, v.nasty)]
CASES["Where"] = lambda v: [dict(condition=draw(s))
                            for s in [(3, 4), (7,), (0, 3), (2, 3, 40)]
                            for draw in (v.tame, v.nasty)]
_MIRRORS = [((5,), [(2, 3)]), ((3, 4), [(1, 2), (0, 3)]), ((2, 3, 4),
            [(1, 1), (0, 0), (2, 0)]), ((3, 4), [(0, 0), (0, 0)])]
CASES["MirrorPad"] = lambda v: [
    dict(input=v.tame(s), paddings=_int(*p), mode=mode)
    for s, p in _MIRRORS for mode in ("REFLECT", "SYMMETRIC")]
CASES["MirrorPadGrad"] = lambda v: [
    dict(input=v.tame(tuple(n + sum(p) for n, p in zip(s, pads))),
         paddings=_int(*pads), mode=mode)
    for s, pads in _MIRRORS for mode in ("REFLECT", "SYMMETRIC")]
CASES["MatrixDiagV3"] = lambda v: [
    dict(diagonal=v.tame(s), k=np.array(k, np.int32), num_rows=np.int32(rows),
         num_cols=np.int32(cols), padding_value=np.float32(7), align=align)
    for s, k, rows, cols, align in [
        ((3,), 0, -1, -1, "RIGHT_LEFT"), ((3,), 1, -1, -1, "RIGHT_LEFT"),
        ((3,), [-1], 5, 3, "LEFT_LEFT"), ((3,), 0, 3, 5, "LEFT_LEFT"),
        ((2, 3, 3), [-1, 1], 3, 3, "RIGHT_LEFT"),
        ((2, 3, 3), [-1, 1], -1, -1, "LEFT_RIGHT"),
        ((4, 3), [-3, 0], 6, -1, "RIGHT_RIGHT"), ((0, 3), 0, -1, -1,
                                                  "LEFT_LEFT")]]
