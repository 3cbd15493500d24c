# SPDX-License-Identifier: Apache-2.0
"""Arguments of ops that move elements: slices, paddings, joins."""

import numpy as np

from op_sweep.rows import row


@row("Transpose ConjugateTranspose")
def _transpose(g):
    shape = g.shape()
    g.tensor("x", shape)
    g.put("perm", g.permutation(len(shape)))


@row("InvertPermutation")
def _invert_permutation(g):
    g.put("x", g.permutation(g.integer(0, 20)))


@row("Reshape")
def _reshape(g):
    shape = g.shape()
    x = g.tensor("tensor", shape)
    g.put("shape", g.choice([[-1] if x.size else shape, shape[::-1], [1] + shape]))


@row("ExpandDims")
def _expand(g):
    shape = g.shape(high=7)
    g.tensor("input", shape)
    g.put("dim", g.integer(-len(shape) - 1, len(shape)))


@row("Squeeze")
def _squeeze(g):
    shape = g.shape()
    g.tensor("input", shape)
    ones = [d for d, size in enumerate(shape) if size == 1]
    g.attrs["squeeze_dims"] = ones if g.chance(.5) else []


@row("EnsureShape")
def _ensure(g):
    shape = g.shape()
    g.tensor("input", shape)
    g.attrs["shape"] = shape if g.chance(.8) else shape + [2]


@row("BroadcastTo")
def _broadcast_to(g):
    shape = g.shape()
    g.put("shape", shape)
    g.tensor("input", g.broadcast(shape))


@row("Slice")
def _slice(g):
    shape = g.shape()
    g.tensor("input", shape)
    begin = [g.integer(0, size) for size in shape]
    g.put("begin", begin)
    g.put("size", [g.integer(-1, size - b) for size, b in zip(shape, begin)])


def draw_strides(g, shape):
    """Draws begin, end, strides and masks; returns their spec."""
    rank = len(shape)
    count = g.integer(0, rank)
    masks = {name: 0 for name in ("begin_mask", "end_mask", "ellipsis_mask",
                                  "new_axis_mask", "shrink_axis_mask")}
    begin, end, strides, spec = [], [], [], []
    axis, ellipsis = 0, g.chance(.2)
    while axis < count or ellipsis:
        bit = 1 << len(begin)
        if ellipsis and g.chance(.4) or axis >= count:
            masks["ellipsis_mask"] |= bit
            ellipsis = False
            axis += rank - count
            count = rank
            part, spec_part = (0, 0, 1), Ellipsis
        elif g.chance(.1):
            masks["new_axis_mask"] |= bit
            part, spec_part = (0, 1, 1), None
        elif shape[axis] and g.chance(.15):
            masks["shrink_axis_mask"] |= bit
            at = g.axis(shape[axis])
            part, spec_part = (at, at + 1, 1), at
            axis += 1
        else:
            size = shape[axis]
            step = g.choice([1, 1, 2, 3, -1, -2])
            part = (g.integer(-size - 1, size + 1), g.integer(-size - 1, size + 1), step)
            low, high = g.chance(.3), g.chance(.3)
            masks["begin_mask"] |= bit * low
            masks["end_mask"] |= bit * high
            spec_part = slice(None if low else part[0], None if high else part[1], step)
            axis += 1
        begin.append(part[0])
        end.append(part[1])
        strides.append(part[2])
        spec.append(spec_part)
    g.attrs.update(masks)
    for name, value in (("begin", begin), ("end", end), ("strides", strides)):
        g.put(name, value)
    return tuple(spec)


@row("StridedSlice")
def _strided_slice(g):
    shape = g.shape(high=6)
    g.tensor("input", shape)
    draw_strides(g, shape)


@row("StridedSliceGrad")
def _strided_slice_grad(g):
    shape = g.shape(high=6)
    spec = draw_strides(g, shape)
    g.put("shape", shape)
    g.tensor("dy", np.empty(shape)[spec].shape)


@row("TensorStridedSliceUpdate")
def _strided_slice_update(g):
    shape = g.shape(high=6)
    g.tensor("input", shape)
    g.tensor("value", np.empty(shape)[draw_strides(g, shape)].shape)


def _paddings(g, shape, most=3):
    return [[g.integer(0, min(most, m)) for _ in range(2)] for m in shape]


@row("Pad PadV2")
def _pad(g):
    shape = g.shape(high=6)
    g.tensor("input", shape)
    g.put("paddings", np.reshape(_paddings(g, [3] * len(shape)), [-1, 2]))
    if g.op == "PadV2":
        g.tensor("constant_values", [])


@row("MirrorPad MirrorPadGrad")
def _mirror_pad(g):
    shape = g.shape(high=5, empty=False)
    g.attrs["mode"] = mode = g.choice([b"REFLECT", b"SYMMETRIC"])
    paddings = _paddings(g, [n - (mode == b"REFLECT") for n in shape])
    g.put("paddings", np.reshape(paddings, [-1, 2]))
    if g.op == "MirrorPadGrad":
        g.finite()
        shape = [n + sum(p) for n, p in zip(shape, paddings)]
    g.tensor("input", shape)


@row("Concat ConcatV2")
def _concat(g):
    shape = g.shape(low=1, high=6)
    count, axis = g.integer(2, 5), g.axis(len(shape))
    g.attrs["N"] = count
    g.args["values"] = []
    for _ in range(count):
        shape[axis] = g.integer(0, 5)
        g.args["values"].append(g.values(g.dtype("values"), shape))
    g.put("concat_dim" if g.op == "Concat" else "axis",
          axis % len(shape) if g.op == "Concat" else axis)


@row("Pack ParallelConcat")
def _pack(g):
    shape = g.shape(high=6)
    g.attrs["N"] = g.integer(1, 5)
    if g.op == "Pack":
        g.attrs["axis"] = g.integer(-len(shape) - 1, len(shape))
    else:
        shape = [1] + shape
        g.attrs["shape"] = [g.attrs["N"], *shape[1:]]
    g.args["values"] = [g.values(g.dtype("values"), shape) for _ in range(g.attrs["N"])]


@row("Unpack")
def _unpack(g):
    shape = g.shape(low=1, high=6)
    g.attrs["axis"] = axis = g.axis(len(shape))
    shape[axis] = g.attrs["num"] = g.integer(1, 5)
    g.tensor("value", shape)


@row("Split SplitV")
def _split(g):
    shape = g.shape(low=1, high=6)
    axis, count = g.axis(len(shape)), g.integer(1, 5)
    g.attrs["num_split"] = count
    g.put("split_dim", axis)
    if g.op == "Split":
        shape[axis] = count * g.integer(0, 3)
    else:
        sizes = [g.integer(0, 4) for _ in range(count)]
        shape[axis] = sum(sizes)
        if g.chance(.4):
            sizes[g.integer(0, count - 1)] = -1
        g.put("size_splits", sizes)
    g.tensor("value", shape)


@row("Tile")
def _tile(g):
    shape = g.shape(high=6, most=5)
    g.tensor("input", shape)
    g.put("multiples", [g.integer(0 if g.chance(.2) else 1, 3) for _ in shape])


@row("Reverse ReverseV2")
def _reverse(g):
    shape = g.shape()
    g.tensor("tensor", shape)
    if g.op == "Reverse":
        g.put("dims", [g.chance(.5) for _ in shape])
    else:
        axes = g.permutation(len(shape))[:g.integer(0, len(shape))]
        g.put("axis", [d - (len(shape) if g.chance(.3) else 0) for d in axes])


@row("ReverseSequence")
def _reverse_sequence(g):
    shape = g.shape(low=2, high=5)
    batch, axis = g.permutation(len(shape))[:2]
    g.attrs.update(batch_dim=batch, seq_dim=axis)
    g.tensor("input", shape)
    g.tensor("seq_lengths", [shape[batch]], 0, shape[axis])


@row("Roll")
def _roll(g):
    shape = g.shape(low=1, high=6)
    g.tensor("input", shape)
    count = g.integer(1, 2 * len(shape))
    axes = [g.axis(len(shape)) for _ in range(count)]
    scalar = g.chance(.3)
    g.put("axis", axes[0] if scalar else axes)
    g.tensor("shift", [] if scalar else [count], -20, 20)


@row("OneHot")
def _one_hot(g):
    shape = g.shape(high=5)
    depth = g.integer(0, 5)
    g.put("depth", depth)
    g.tensor("on_value", [])
    g.tensor("off_value", [])
    unsigned = np.dtype(g.dtype("indices")).kind == "u"
    g.tensor("indices", shape, 0 if unsigned else -1, depth)
    g.attrs["axis"] = g.integer(-1, len(shape))


@row("Select")
def _select(g):
    shape = g.shape()
    g.tensor("condition", g.choice([shape, [], shape[:1]]))
    g.tensor("t", shape)
    g.tensor("e", shape)


@row("BroadcastArgs BroadcastGradientArgs")
def _broadcast_args(g):
    shape = g.shape()
    g.put("s0", shape)
    g.put("s1", g.broadcast(shape))


@row("ConcatOffset")
def _concat_offset(g):
    shape, count = g.shape(low=1), g.integer(2, 4)
    g.attrs["N"] = count
    g.put("concat_dim", g.integer(0, len(shape) - 1))
    g.args["shape"] = [np.array(shape, g.dtype("shape")) for _ in range(count)]


@row("InplaceUpdate InplaceAdd InplaceSub")
def _in_place(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("x", shape)
    rows = g.permutation(shape[0])[:g.integer(0, shape[0])]
    g.put("i", rows)
    g.tensor("v", [len(rows), *shape[1:]])


@row("_ParallelConcatStart")
def _parallel_start(g):
    g.attrs["shape"] = g.shape()


@row("_ParallelConcatUpdate")
def _parallel_update(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("value", shape)
    g.tensor("update", [1, *shape[1:]])
    g.attrs["loc"] = g.integer(0, shape[0] - 1)


@row("DataFormatVecPermute")
def _format_permute(g):
    g.tensor("x", g.choice([[4], [4, 2]]))


@row("DataFormatDimMap")
def _format_map(g):
    g.tensor("x", g.shape(high=2), -4, 3)
