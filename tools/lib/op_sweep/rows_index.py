# SPDX-License-Identifier: Apache-2.0
"""Arguments of gathers, scatters, segments and other ops with indices."""

import numpy as np

from op_sweep.rows import row


@row("Where")
def _where(g):
    # A device that has Map and Reduce only takes the square of this number of steps.
    g.tensor("input", [g.integer(500, 2500)] if g.chance(.05) else g.shape(low=1, most=6),
             profile="ties")


@row("Unique UniqueV2 UniqueWithCounts")
def _unique(g):
    g.tensor("x", [g.integer(0, 30)], profile="ties")
    if g.op == "UniqueV2":
        g.put("axis", [])


@row("Gather ResourceGather GatherV2")
def _gather(g):
    shape = g.shape(low=1, high=5, empty=False)
    indices = g.shape(high=3, most=5)
    axis = 0
    if g.op == "GatherV2":
        batch = g.integer(0, len(shape) - 1) if g.chance(.4) else 0
        axis = g.integer(batch, len(shape) - 1)
        g.attrs["batch_dims"] = batch
        indices = shape[:batch] + indices
        g.put("axis", axis - (len(shape) if g.chance(.3) else 0))
    if g.op == "ResourceGather":
        g.variable("resource", shape)
        g.attrs["batch_dims"] = 0
    else:
        g.tensor("params", shape)
    g.tensor("indices", indices, 0, shape[axis] - 1)


def _ordered(g):
    """Leaves out NaN where the result depends on the order of comparisons."""
    if g.op.endswith(("Max", "Min", "MaxV2", "MinV2")) and g.profile == "special":
        g.profile = "ties"


def _rows_of(g, shape, repeat=True):
    """Draws indices of slices of a shape; returns them with the shape of updates."""
    depth = g.integer(1, len(shape))
    outer = g.shape(low=1, high=2, most=5)  # the CPU rejects updates without dimensions
    if repeat:
        indices = np.stack([g.random.integers(0, size, outer) for size in shape[:depth]],
                           -1)
    else:  # each at most once: the order of updates is undefined
        count = int(np.prod(shape[:depth]))
        outer = [g.integer(0, count)]
        flat = g.random.permutation(count)[:outer[0]]
        indices = np.stack(np.unravel_index(flat, shape[:depth]), -1)
    return indices, [*outer, *shape[depth:]]


@row("GatherNd ResourceGatherNd")
def _gather_nd(g):
    shape = g.shape(low=1, high=5, empty=False)
    if g.op == "GatherNd":
        g.tensor("params", shape)
    else:
        g.variable("resource", shape)
    g.put("indices", _rows_of(g, shape)[0])


def _profile_of_factors(g):
    """A denormal product of some elements has lost digits that later ones show."""
    return "plain" if g.profile == "special" else None


@row("ScatterNd TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub "
     "TensorScatterUpdate ResourceScatterNdAdd ResourceScatterNdSub "
     "ResourceScatterNdUpdate ResourceScatterNdMax ResourceScatterNdMin "
     "ScatterNdNonAliasingAdd")
def _scatter_nd(g):
    _ordered(g)
    shape = g.shape(low=1, high=5, empty=False)
    indices, updates = _rows_of(g, shape, not g.op.endswith("Update"))
    g.put("indices", indices)
    g.tensor("updates", updates)
    if g.op == "ScatterNd":
        g.put("shape", shape)
    elif g.op.startswith("Resource"):
        g.variable("ref", shape)
    else:
        g.tensor("input" if "Aliasing" in g.op else "tensor", shape)


@row("ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv "
     "ResourceScatterMin ResourceScatterMax ResourceScatterUpdate")
def _resource_scatter(g):
    _ordered(g)
    shape = g.shape(low=1, high=4, empty=False)
    g.variable("resource", shape, dtype="updates")
    count = g.integer(0, shape[0])
    rows = (g.random.permutation(shape[0])[:count] if g.op.endswith("Update")
            else g.random.integers(0, shape[0], count))
    g.put("indices", rows)
    is_product = g.op in ("ResourceScatterMul", "ResourceScatterDiv")
    g.tensor("updates", [] if g.chance(.2) else [count, *shape[1:]],
             profile=_profile_of_factors(g) if is_product else None)


@row("SegmentSum SegmentMean SegmentProd SegmentMin SegmentMax SegmentSumV2 "
     "SegmentProdV2 SegmentMinV2 SegmentMaxV2 UnsortedSegmentSum UnsortedSegmentProd "
     "UnsortedSegmentMin UnsortedSegmentMax")
def _segments(g):
    _ordered(g)
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("data", shape, profile=_profile_of_factors(g) if "Prod" in g.op else None)
    count = g.integer(1, 6)
    if g.op.startswith("Unsorted"):
        ids = shape[:g.integer(1, len(shape))]
        g.tensor("segment_ids", ids, -1, count - 1)
    else:
        g.put("segment_ids", np.sort(g.random.integers(0, count, shape[0])))
    if any(arg.name == "num_segments" for arg in g.definition.input_arg):
        g.put("num_segments", count)


@row("SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
     "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments")
def _sparse_segments(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("data", shape)
    rows, count = g.integer(1, 8), g.integer(1, 6)
    g.tensor("indices", [rows], 0, shape[0] - 1)
    g.put("segment_ids", np.sort(g.random.integers(0, count, rows)))
    if g.op.endswith("NumSegments"):
        g.put("num_segments", count)


@row("SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad "
     "SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2")
def _sparse_segment_grad(g):
    g.finite()
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("grad", shape)
    rows, dim = g.integer(1, 8), g.integer(1, 6)
    g.tensor("indices", [rows], 0, dim - 1)
    g.put("segment_ids", np.sort(g.random.integers(0, shape[0], rows)))
    g.put("dense_output_dim0" if g.op.endswith("V2") else "output_dim0", dim)


@row("DynamicPartition")
def _dynamic_partition(g):
    shape = g.shape(low=1, high=4)
    g.tensor("data", shape)
    g.attrs["num_partitions"] = count = g.integer(1, 4)
    g.tensor("partitions", shape[:g.integer(1, len(shape))], 0, count - 1)


@row("DynamicStitch ParallelDynamicStitch")
def _dynamic_stitch(g):
    inner, count = g.shape(high=2), g.integer(1, 4)
    sizes = [g.integer(0, 4) for _ in range(count - 1)] + [g.integer(1, 4)]
    order = g.permutation(sum(sizes))
    g.attrs["N"] = count
    g.args["indices"], g.args["data"] = [], []
    for size in sizes:
        rows, order = order[:size], order[size:]
        g.args["indices"].append(np.array(rows, "int32"))
        g.args["data"].append(g.values(g.dtype("data"), [size, *inner]))


@row("XlaDynamicUpdateSlice XlaDynamicSlice")
def _dynamic_slice(g):
    shape = g.shape(low=1, high=5, empty=False)
    size = [g.integer(1, n) for n in shape]
    start = [g.integer(-2, n + 1) for n in shape]
    g.tensor("input", shape)
    if g.op == "XlaDynamicSlice":
        g.put("start_indices", start)
        g.put("size_indices", size)
    else:
        g.tensor("update", size)
        g.put("indices", start)
