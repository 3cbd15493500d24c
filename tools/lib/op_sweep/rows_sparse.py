# SPDX-License-Identifier: Apache-2.0
"""Arguments of ops on sparse and ragged tensors."""

import numpy as np
from tensorflow.core.framework import types_pb2

from op_sweep.rows import row


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


@row("SerializeSparse SerializeManySparse")
def _serialize_sparse(g):
    shape = g.shape(low=2, high=3, empty=False, most=5)
    indices = g.put("sparse_indices", _sparse(g, shape))
    g.tensor("sparse_values", [len(indices)])
    g.put("sparse_shape", shape)


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


@row("SparseSliceGrad")
def _sparse_slice_grad(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = np.asarray(_sparse(g, shape), "int64").reshape(-1, len(shape))
    start = np.array([g.integer(0, size - 1) for size in shape])
    inside = indices[(indices >= start).all(-1)] - start
    g.put_all(input_indices=indices, input_start=start, output_indices=inside)
    g.tensor("backprop_val_grad", [len(inside)])


@row("SparseAdd")
def _sparse_add(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    for name in "ab":
        indices = g.put(f"{name}_indices", _sparse(g, shape))
        g.tensor(f"{name}_values", [len(indices)], profile="plain")
        g.put(f"{name}_shape", shape)
    parts = {types_pb2.DT_COMPLEX64: types_pb2.DT_FLOAT,
             types_pb2.DT_COMPLEX128: types_pb2.DT_DOUBLE}
    g.types["Treal"] = parts.get(g.types["T"], g.types["T"])
    g.put("thresh", g.choice([0, 0, 2]))


@row("SparseAddGrad")
def _sparse_add_grad(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    size = int(np.prod(shape))
    # The sum of two tensors, of which some elements may be left out.
    parts = [set(g.permutation(size)[:g.integer(0, size)]) for _ in range(2)]
    both = parts[0] | parts[1]
    kept = {i for i in both if g.chance(.8)}
    for name, flat in (("a", parts[0]), ("b", parts[1]), ("sum", kept)):
        g.put(f"{name}_indices", np.stack(np.unravel_index(
            np.array(sorted(flat), int), shape), -1).reshape(-1, len(shape)))
    g.tensor("backprop_val_grad", [len(kept)])


@row("SparseSoftmax")
def _sparse_softmax(g):
    shape = g.shape(low=2, high=4, empty=False, most=5)
    indices = g.put("sp_indices", _sparse(g, shape))
    g.tensor("sp_values", [len(indices)], -9, 9)
    g.put("sp_shape", shape)


@row("SparseReduceSum SparseReduceSumSparse SparseReduceMax SparseReduceMaxSparse")
def _sparse_reduce(g):
    shape = g.shape(low=1, high=3, empty=False, most=5)
    indices = g.put("input_indices", _sparse(g, shape))
    g.tensor("input_values", [len(indices)], profile="plain")
    g.put("input_shape", shape)
    g.put("reduction_axes", [d - (len(shape) if g.chance(.3) else 0) for d in
                             g.permutation(len(shape))[:g.integer(0, len(shape))]])


@row("RaggedTensorToTensor")
def _ragged_to_tensor(g):
    def count(limit=4):
        return g.integer(0, limit)
    rows = count()
    kinds, partitions, elements = [], [], rows
    for level in range(g.integer(1, 3)):
        lengths = [count(3) for _ in range(elements)]
        ids = np.repeat(np.arange(elements), lengths)
        if g.chance(.5):
            kinds.append(b"ROW_SPLITS")
            partitions.append(np.cumsum([0, *lengths]))
        else:
            if level == 0:
                kinds.append(b"FIRST_DIM_SIZE")
                partitions.append(np.array(rows))
            kinds.append(b"VALUE_ROWIDS")
            partitions.append(ids)
        elements = len(ids)
    inner = g.shape(high=2, most=3, empty=False)
    g.tensor("values", [elements, *inner])
    g.tensor("default_value", g.choice([[], inner]))
    g.put("shape", g.choice([-1, [-1] * (1 + kinds.count(b"ROW_SPLITS") + kinds.count(
        b"VALUE_ROWIDS") + len(inner))]))
    g.attrs.update(row_partition_types=kinds, num_row_partition_tensors=len(kinds))
    kind = g.dtype("row_partition_tensors")
    g.args["row_partition_tensors"] = [each.astype(kind) for each in partitions]
