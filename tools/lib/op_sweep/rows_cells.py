# SPDX-License-Identifier: Apache-2.0
"""Arguments of recurrent cells, sparse and ragged tensors, generators' states, and other
ops with many arguments."""

import numpy as np

from op_sweep.draw import Variable
from op_sweep.rows import row


def _shapes(g, **shapes):
    """Draws arguments with these shapes, those that the op has."""
    for arg in g.definition.input_arg:
        if arg.name in shapes:
            g.tensor(arg.name, shapes[arg.name], -1, 1)


@row("LSTMBlockCell LSTMBlockCellGrad BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2")
def _lstm(g):
    batch, inputs, cells = g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    time = [g.integer(1, 3)] if g.op.startswith("Block") else []
    state = [batch, cells]
    each = [*time, *state]
    _shapes(g, x=[*time, batch, inputs], cs_prev=state, h_prev=state,
            w=[inputs + cells, 4 * cells], wci=[cells], wcf=[cells], wco=[cells],
            b=[4 * cells], i=each, cs=each, f=each, o=each, ci=each, co=each, h=each,
            cs_grad=each, h_grad=each)
    if time:
        g.put("seq_len_max", time[0])
    g.attrs.update(use_peephole=False, cell_clip=3.0, forget_bias=1.0)


@row("GRUBlockCell GRUBlockCellGrad")
def _gru(g):
    batch, inputs, cells = g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    state = [batch, cells]
    _shapes(g, x=[batch, inputs], h_prev=state, w_ru=[inputs + cells, 2 * cells],
            w_c=[inputs + cells, cells], b_ru=[2 * cells], b_c=[cells], r=state,
            u=state, c=state, d_h=state)


@row("CropAndResizeGradBoxes CropAndResizeGradImage")
def _crop_grad(g):
    batch, depth, boxes = g.integer(1, 3), g.integer(1, 3), g.integer(1, 4)
    size = [batch, g.integer(2, 6), g.integer(2, 6), depth]
    g.tensor("grads", [boxes, g.integer(1, 5), g.integer(1, 5), depth], -1, 1)
    g.tensor("boxes", [boxes, 4], 0, 1)
    g.tensor("box_ind", [boxes], 0, batch - 1)
    if g.op.endswith("Image"):
        g.put("image_size", size)
    else:
        g.tensor("image", size, 0, 1)


@row("ExtractImagePatches ExtractVolumePatches")
def _patches(g):
    dims = 2 if "Image" in g.op else 3
    size = [g.integer(1, 3) for _ in range(dims)]
    g.attrs.update(ksizes=[1, *size, 1], padding=g.choice([b"SAME", b"VALID"]),
                   # TensorFlow's CPU misplaces 3-D windows smaller than their stride.
                   strides=[1, *(g.integer(1, 3 if dims == 2 else n) for n in size), 1])
    if dims == 2:
        g.attrs["rates"] = [1, *(g.integer(1, 2) for _ in size), 1]
    name = g.definition.input_arg[0].name
    g.tensor(name, [g.integer(1, 2), *(g.integer(5, 7) for _ in size), g.integer(1, 3)])


@row("LowerBound UpperBound")
def _bound(g):
    rows = g.integer(1, 4)
    x = g.tensor("sorted_inputs", [rows, g.integer(0, 9)], profile="ties")
    g.put("sorted_inputs", np.sort(x.astype("float64"), -1))
    g.tensor("values", [rows, g.integer(0, 9)], profile="ties")


@row("Empty")
def _empty(g):
    g.put("shape", g.shape())
    g.attrs["init"] = True  # other contents are undefined


@row("TileGrad")
def _tile_grad(g):
    shape = g.shape(low=1, high=4, empty=False)
    times = [g.integer(1, 3) for _ in shape]
    g.tensor("input", [n * t for n, t in zip(shape, times)])
    g.put("multiples", times)


@row("TridiagonalMatMul TridiagonalSolve")
def _tridiagonal(g):
    batch, n, columns = g.shape(high=2, most=3, empty=False), g.integer(1, 5), g.integer(1, 3)
    if g.op.endswith("Solve"):
        diagonals = g.tensor("diagonals", [*batch, 3, n], profile="plain")
        diagonals[..., 1, :] = np.abs(diagonals).sum(-2) + 1
        g.attrs.update(partial_pivoting=True, perturb_singular=False)
    else:
        for name in ("superdiag", "maindiag", "subdiag"):
            g.tensor(name, [*batch, 1, n], profile="plain")
    g.tensor("rhs", [*batch, n, columns], profile="plain")


@row("QuantizeAndDequantizeV4Grad")
def _quantize_grad(g):
    shape = g.shape(low=1, high=4)
    g.tensor("gradients", shape)
    g.tensor("input", shape, -9, 9)
    g.put("input_min", -5)
    g.put("input_max", 5)
    g.attrs["axis"] = -1


# ---- Sparse and ragged tensors ---------------------------------------------------


def _sparse(g, shape):
    """Returns sorted indices of some elements of a tensor."""
    size = int(np.prod(shape))
    flat = np.sort(g.random.permutation(size)[:g.integer(0, size)])
    return np.stack(np.unravel_index(flat, shape), -1).reshape([-1, len(shape)])


@row("SparseReorder")
def _reorder(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = g.random.permutation(_sparse(g, shape))
    g.put("input_indices", indices)
    g.tensor("input_values", [len(indices)])
    g.put("input_shape", shape)


@row("SparseReshape")
def _sparse_reshape(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    g.put("input_indices", _sparse(g, shape))
    g.put("input_shape", shape)
    g.put("new_shape", g.choice([[-1], shape[::-1], [1, *shape]]))


@row("SparseSlice")
def _sparse_slice(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = g.put("indices", _sparse(g, shape))
    g.tensor("values", [len(indices)])
    g.put("shape", shape)
    start = [g.integer(0, n - 1) for n in shape]
    g.put("start", start)
    g.put("size", [g.integer(1, n - s) for n, s in zip(shape, start)])


@row("SparseSplit")
def _sparse_split(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    axis = g.integer(0, len(shape) - 1)
    g.put("split_dim", axis)
    indices = g.put("indices", _sparse(g, shape))
    g.tensor("values", [len(indices)])
    g.put("shape", shape)
    g.attrs["num_split"] = g.integer(1, shape[axis])


@row("SparseConcat")
def _sparse_concat(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    g.attrs.update(N=2, concat_dim=g.integer(0, len(shape) - 1))
    indices = [np.asarray(_sparse(g, shape), "int64") for _ in range(2)]
    g.args.update(indices=indices, shapes=[np.array(shape, "int64")] * 2, values=[
        g.values(g.dtype("values"), [len(each)]) for each in indices])


@row("SparseFillEmptyRows")
def _fill_rows(g):
    shape = g.shape(low=2, high=2, empty=False, most=5)
    indices = g.put("indices", _sparse(g, shape))
    g.tensor("values", [len(indices)])
    g.put("dense_shape", shape)
    g.tensor("default_value", [])


@row("SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad")
def _fill_rows_grad(g):
    count, more = g.integer(1, 6), g.integer(0, 4)
    g.put("reverse_index_map", np.sort(g.random.permutation(count + more)[:count]))
    g.tensor("grad_values", [count + more], profile="plain")


@row("RaggedFillEmptyRows")
def _ragged_fill(g):
    rows, count = g.integer(1, 6), g.integer(0, 6)
    g.put("value_rowids", np.sort(g.random.integers(0, rows, count)))
    g.tensor("values", [count])
    g.put("nrows", rows)
    g.tensor("default_value", [])


@row("SparseToDense")
def _to_dense(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = g.put("sparse_indices", _sparse(g, shape))
    g.put("output_shape", shape)
    g.tensor("sparse_values", [len(indices)])
    g.tensor("default_value", [])


# ---- Generators ------------------------------------------------------------------


@row("RngReadAndSkip RngSkip StatefulStandardNormalV2 StatefulTruncatedNormal "
     "StatefulUniform StatefulUniformFullInt StatefulUniformInt")
def _generator(g):
    g.args["resource"] = Variable(g.random.integers(0, 2**62, 3, "int64"))
    g.put_all(alg=1, algorithm=1, delta=g.integer(1, 9), minval=0, maxval=99,
         shape=g.choice([[], [0], [7], [1003]]))


@row("StatelessRandomGammaV2 StatelessRandomGammaV3")
def _gamma(g):
    shape = [g.integer(1, 9)]
    g.put_all(shape=shape, alg=1)
    for name, size in (("seed", 2), ("key", 1), ("counter", 2)):
        if any(arg.name == name for arg in g.definition.input_arg):
            g.tensor(name, [size], 0, 2**31 - 1)
    g.tensor("alpha", shape, .5, 3)


@row("ParameterizedTruncatedNormal")
def _truncated(g):
    g.put("shape", [1000])
    g.put_all(means=0, stdevs=1, minvals=-1, maxvals=2)


@row("RandomGamma RandomPoisson RandomPoissonV2")
def _random_rates(g):
    g.put("shape", [1000])
    g.put("alpha" if g.op == "RandomGamma" else "rate", 2)


@row("SparseSliceGrad")
def _sparse_slice_grad(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = np.asarray(_sparse(g, shape), "int64").reshape(-1, len(shape))
    start = np.array([g.integer(0, size - 1) for size in shape])
    inside = indices[(indices >= start).all(-1)] - start
    g.put_all(input_indices=indices, input_start=start, output_indices=inside)
    g.tensor("backprop_val_grad", [len(inside)])
