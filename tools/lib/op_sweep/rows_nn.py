# SPDX-License-Identifier: Apache-2.0
"""Arguments of matrix products, convolutions, pooling, normalization, losses, images."""

import numpy as np

from op_sweep.rows import row


def _finite(g):
    """Leaves out NaN and infinity, which convolutions may multiply by padding."""
    if g.profile == "special":
        g.profile = "plain"


@row("MatMul _FusedMatMul SparseMatMul")
def _matmul(g):
    m, k, n = (g.integer(0 if g.chance(.1) else 1, 9 if g.chance(.9) else 70)
               for _ in range(3))
    flip = {name: g.chance(.5) for name in ("transpose_a", "transpose_b")}
    g.attrs.update(flip)
    g.tensor("a", [k, m] if flip["transpose_a"] else [m, k])
    g.tensor("b", [n, k] if flip["transpose_b"] else [k, n])
    if g.op == "_FusedMatMul":
        _finite(g)
        _fuse(g, n)


def _fuse(g, channels):
    """Draws a fused bias and activation."""
    activation = g.choice([b"", b"Relu", b"Relu6", b"Elu", b"LeakyRelu"])
    g.attrs["fused_ops"] = [b"BiasAdd"] + ([activation] if activation else [])
    g.attrs.update(num_args=1, epsilon=0.0)
    bias = g.values(g.dtype("input" if "Conv" in g.op else "a"), [channels])
    if g.has("TArgs"):
        g.attrs.update(TArgs=[g.types["T"]], num_host_args=0)
        g.args["host_args"] = []
    g.args["args"] = [bias]


@row("BatchMatMul BatchMatMulV2 BatchMatMulV3")
def _batch_matmul(g):
    m, k, n = (g.integer(0 if g.chance(.1) else 1, 7) for _ in range(3))
    batch = g.shape(high=4, most=4)
    flip = {name: g.chance(.5) for name in ("adj_x", "adj_y")}
    g.attrs.update(flip)
    g.tensor("x", batch + ([k, m] if flip["adj_x"] else [m, k]))
    other = batch if g.op == "BatchMatMul" else g.broadcast(batch)
    g.tensor("y", other + ([n, k] if flip["adj_y"] else [k, n]))


_EQUATIONS = ["ab,bc->ac", "abc,cd->abd", "abc,abd->acd", "abcd,aecd->acbe", "ab->ba",
              "aa->a", "ab->", "...ab,...bc->...ac", "ab,ab->a", "a,b->ab", "ab,b->a"]


@row("Einsum")
def _einsum(g):
    equation = g.choice(_EQUATIONS)
    sizes = {letter: g.integer(1, 5) for letter in "abcde"}
    batch = g.shape(high=2, most=3)
    operands = equation.partition("->")[0].split(",")
    g.attrs.update(equation=equation.encode(), N=len(operands))
    g.args["inputs"] = [g.values(g.dtype("inputs"), [
        *(batch if "." in each else []), *(sizes[x] for x in each if x != ".")])
        for each in operands]


@row("BiasAdd BiasAddV1")
def _bias(g):
    g.attrs["data_format"] = order = g.choice([b"NHWC", b"NHWC", b"NCHW"])
    shape = g.shape(low=3 if order == b"NCHW" else 2, high=5)
    g.tensor("value", shape)
    g.tensor("bias", [shape[1 if order == b"NCHW" else -1]])


@row("BiasAddGrad")
def _bias_grad(g):
    g.attrs["data_format"] = order = g.choice([b"NHWC", b"NHWC", b"NCHW"])
    g.tensor("out_backprop", g.shape(low=3 if order == b"NCHW" else 2, high=5))


@row("L2Loss")
def _l2_loss(g):
    g.tensor("t", g.shape(empty=False))


# ---- Windows ---------------------------------------------------------------------


class _Windows:
    """Draws strides, dilations and padding of windows over `dims` dimensions."""

    def __init__(self, g, dims, explicit=True, dilated=True, even=False, most=3):
        self.dims = dims
        self.size = [g.integer(1, most) for _ in range(dims)]
        # TensorFlow's CPU misplaces 3-D windows that are smaller than their stride.
        self.stride = [g.integer(1, min(3, size) if dims == 3 else 3)
                       for size in self.size]
        self.dilation = [1] * dims
        if even:  # depthwise convolutions
            self.stride = self.stride[:1] * dims
        if dilated and g.chance(.3):
            self.dilation = [g.integer(1, 2)] * dims if even else [
                g.integer(1, 2) for _ in range(dims)]
            self.stride = [1] * dims
        self.padding = g.choice([b"SAME", b"VALID"] + ([b"EXPLICIT"] if explicit else []))
        self.extra = [[g.integer(0, size - 1) for _ in range(2)] for size in self.size]
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.size, self.dilation)]
        self.input = [g.integer(reach, reach + 6) for reach in self.reach]

    def output(self):
        if self.padding == b"SAME":
            return [-(-n // s) for n, s in zip(self.input, self.stride)]
        extra = [sum(each) if self.padding == b"EXPLICIT" else 0 for each in self.extra]
        return [(n + e - r) // s + 1 for n, e, r, s in
                zip(self.input, extra, self.reach, self.stride)]

    def set(self, g, window=False):
        g.attrs["padding"] = self.padding
        g.attrs["strides"] = [1, *self.stride, 1]
        if g.has("dilations"):
            g.attrs["dilations"] = [1, *self.dilation, 1]
        if window:
            g.attrs["ksize"] = [1, *self.size, 1]
        if g.has("explicit_paddings"):
            g.attrs["explicit_paddings"] = [0, 0, *sum(self.extra, []), 0, 0] if (
                self.padding == b"EXPLICIT") else []
        g.attrs["data_format"] = b"NHWC" if self.dims == 2 else b"NDHWC"


@row("Conv")
def _any_conv(g):
    _finite(g)
    dims, depth, outputs = g.integer(2, 3), g.integer(1, 4), g.integer(1, 4)
    w = _Windows(g, dims, explicit=False, dilated=False)
    g.attrs.update(strides=[1, *w.stride, 1], padding=w.padding, groups=1, batch_dims=1,
                   data_format=b"CHANNELS_LAST", dilations=[1] * (dims + 2),
                   explicit_paddings=[])
    g.tensor("input", [g.integer(1, 3), *w.input, depth])
    g.tensor("filter", [*w.size, depth, outputs])


@row("Conv2D Conv2DBackpropInput Conv2DBackpropFilter Conv3D Conv3DBackpropInputV2 "
     "Conv3DBackpropFilterV2 _FusedConv2D DepthwiseConv2dNative "
     "_FusedDepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput "
     "DepthwiseConv2dNativeBackpropFilter Conv3DBackpropInput Conv3DBackpropFilter")
def _conv(g):
    _finite(g)
    dims, depthwise = 3 if "3D" in g.op else 2, "Depthwise" in g.op
    backward = "Backprop" in g.op
    # The CPU has no dilated depthwise kernels, and no dilated gradients.
    dilated = dims == 2 and not depthwise and not backward
    w = _Windows(g, dims, explicit=dims == 2 and g.op[0] != "_", dilated=dilated,
                 even=depthwise)
    batch, groups = g.integer(1, 3), 1
    depth, outputs = g.integer(1, 4), g.integer(1, 4)
    if g.op == "Conv2D" and g.chance(.2):
        groups = g.integer(1, 3)
    w.set(g)
    x = [batch, *w.input, depth * groups]
    filters = [*w.size, depth, outputs * (1 if depthwise else groups)]
    y = [batch, *w.output(), depth * outputs if depthwise else filters[-1]]
    for arg in g.definition.input_arg:
        if arg.name == "input_sizes":
            g.put("input_sizes", x)
        elif arg.name == "filter_sizes":
            g.put("filter_sizes", filters)
        elif arg.name == "input":
            g.tensor("input", x)
        elif arg.name == "filter":
            g.tensor("filter", filters)
        elif arg.name == "out_backprop":
            g.tensor("out_backprop", y)
    if g.op[0] == "_":
        _fuse(g, y[-1])
        if g.has("filter_format"):
            g.attrs["filter_format"] = b"HWIO"


@row("MaxPool MaxPoolV2 AvgPool MaxPool3D AvgPool3D MaxPoolGrad MaxPoolGradV2 AvgPoolGrad "
     "MaxPool3DGrad AvgPool3DGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad MaxPoolWithArgmax "
     "MaxPoolGradWithArgmax")
def _pool(g):
    dims = 3 if "3D" in g.op else 2
    g.profile = "plain"
    w = _Windows(g, dims, explicit=g.has("explicit_paddings") and g.op == "MaxPool",
                 dilated=False)
    batch, depth = g.integer(1, 3), g.integer(1, 4)
    if w.padding == b"EXPLICIT":
        w.extra = [[min(e, k - 1) for e in each] for each, k in zip(w.extra, w.size)]
    if "V2" in g.op:
        g.attrs["padding"] = w.padding
        g.attrs["data_format"] = b"NHWC"
        g.put("ksize", [1, *w.size, 1])
        g.put("strides", [1, *w.stride, 1])
    else:
        w.set(g, window=True)
    shape, out = [batch, *w.input, depth], [batch, *w.output(), depth]
    names = {arg.name for arg in g.definition.input_arg}
    if "orig_input_shape" in names:
        g.put("orig_input_shape", shape)
        g.tensor("grad", out)
        return
    x = g.tensor(next(name for name in ("orig_input", "input", "value") if name in names),
                 shape)
    if g.op == "MaxPool3DGrad":
        # TensorFlow's CPU gives the gradient to each of several equal maxima: the
        # elements of a window are different, in a pattern of period 4.
        order = g.random.permutation(64) - 32
        x = g.put("orig_input", np.fromfunction(
            lambda n, a, b, c, d: order[(a % 4 * 16 + b % 4 * 4 + c % 4).astype(int)],
            shape))
    if "orig_output" in names:
        g.put("orig_output", _max_pool(x, w, out))
        g.tensor("grad", shape if "GradGrad" in g.op else out)
    elif "argmax" in names:
        flat = np.arange(int(np.prod(shape[1:]))).reshape([1, *shape[1:]])
        whole = _max_pool(np.repeat(flat, batch, 0).astype("float64"), w, out)
        g.attrs["include_batch_in_index"] = False
        g.put("argmax", whole)
        g.tensor("grad", out)


def _max_pool(x, w, out):
    """Returns the largest element of each window."""
    result = np.empty(out, x.dtype)
    for at in np.ndindex(*out[1:-1]):
        window = [slice(None)]
        for d, i in enumerate(at):
            total = max((out[1 + d] - 1) * w.stride[d] + w.size[d] - w.input[d], 0)
            before = {b"SAME": total // 2, b"VALID": 0, b"EXPLICIT": w.extra[d][0]}[
                w.padding]
            start = i * w.stride[d] - before
            window.append(slice(max(start, 0), start + w.size[d]))
        result[(slice(None), *at)] = x[tuple(window)].max(
            axis=tuple(range(1, 1 + w.dims)))
    return result


@row("Dilation2D Dilation2DBackpropInput Dilation2DBackpropFilter")
def _dilation(g):
    g.profile = "plain"
    w = _Windows(g, 2, explicit=False)
    depth, batch = g.integer(1, 3), g.integer(1, 2)
    g.tensor("input", [batch, *w.input, depth])
    g.tensor("filter", [*w.size, depth])
    g.attrs.update(strides=[1, *w.stride, 1], rates=[1, *w.dilation, 1], padding=w.padding)
    if "Backprop" in g.op:
        g.tensor("out_backprop", [batch, *w.output(), depth])


@row("LRN LRNGrad")
def _lrn(g):
    g.profile = "plain"
    shape = [g.integer(1, 4) for _ in range(3)] + [g.integer(1, 9)]
    g.attrs.update(depth_radius=g.integer(1, 4), bias=1.0, alpha=.5, beta=.5)
    if g.op == "LRN":
        g.tensor("input", shape)
    else:
        g.tensor("input_grads", shape)
        x = g.tensor("input_image", shape, -2, 2)
        squares = np.stack([np.square(x.astype("float64"))[..., max(0, c - g.attrs[
            "depth_radius"]):c + g.attrs["depth_radius"] + 1].sum(-1)
            for c in range(shape[-1])], -1)
        g.put("output_image", x.astype("float64") * (1 + .5 * squares)**-.5)


# ---- Normalization and losses ----------------------------------------------------


@row("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3")
def _batch_norm(g):
    g.profile = "plain"
    training = g.attrs["is_training"] = g.chance(.5)
    g.attrs.update(data_format=b"NHWC", epsilon=.001,
                   exponential_avg_factor=.75 if training and g.chance(.5) else 1.0)
    shape = [g.integer(1, 4) for _ in range(4)]
    shape[0] += 1  # the variance of one element is undefined
    g.tensor("x", shape)
    for name in ("scale", "offset", "mean", "variance"):
        empty = training and g.attrs["exponential_avg_factor"] == 1 and name in (
            "mean", "variance")
        g.tensor(name, [0 if empty else shape[-1]], .1, 2)


@row("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3")
def _batch_norm_grad(g):
    g.profile = "plain"
    g.attrs.update(data_format=b"NHWC", epsilon=.001, is_training=g.chance(.5))
    shape = [g.integer(1, 4) for _ in range(4)]
    shape[0] += 1
    g.tensor("y_backprop", shape)
    g.tensor("x", shape)
    for name in ("scale", "reserve_space_1", "reserve_space_2"):
        g.tensor(name, [shape[-1]], .1, 2)
    if g.op.endswith("V3"):
        g.put("reserve_space_3", np.zeros([0]))


@row("Softmax LogSoftmax")
def _softmax(g):
    g.profile = "plain" if g.profile == "special" else g.profile
    g.tensor("logits", g.shape(low=1, high=5))


@row("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(g):
    g.profile = "plain"
    shape = [g.integer(1, 9), g.integer(1, 9)]
    g.tensor("features", shape)
    g.tensor("labels", shape if g.chance(.7) else [1, shape[1]], 0, 1)


@row("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(g):
    g.profile = "plain"
    rows, classes = g.integer(0, 9), g.integer(1, 9)
    g.tensor("features", [rows, classes])
    g.tensor("labels", [rows], 0, classes - 1)


# ---- Space and images ------------------------------------------------------------


@row("SpaceToDepth DepthToSpace")
def _space_depth(g):
    size = g.attrs["block_size"] = g.integer(2, 3)
    g.attrs["data_format"] = b"NHWC"
    h, w, c = (g.integer(1, 3) for _ in range(3))
    g.tensor("input", [g.integer(1, 3), h * size, w * size, c] if g.op[0] == "S" else
             [g.integer(1, 3), h, w, c * size * size])


@row("SpaceToBatchND BatchToSpaceND")
def _space_batch(g):
    dims = g.integer(1, 3)
    block = [g.integer(1, 3) for _ in range(dims)]
    edges = [[g.integer(0, 2), 0] for _ in range(dims)]
    small = [g.integer(1, 3) for _ in range(dims)]
    rest = g.shape(high=2)
    g.put("block_shape", block)
    if g.op == "SpaceToBatchND":
        sizes = [max(n * b - e[0], 0) for n, b, e in zip(small, block, edges)]
        edges = [[n * b - s, 0] for n, b, s in zip(small, block, sizes)]
        g.put("paddings", edges)
        g.tensor("input", [g.integer(1, 3), *sizes, *rest])
    else:
        g.put("crops", [[min(e[0], n * b), 0] for e, n, b in zip(edges, small, block)])
        g.tensor("input", [g.integer(1, 2) * int(np.prod(block)), *small, *rest])


@row("SpaceToBatch BatchToSpace")
def _space_batch_2d(g):
    size = g.attrs["block_size"] = g.integer(2, 3)
    h, w = g.integer(1, 3), g.integer(1, 3)
    if g.op[0] == "S":
        g.put("paddings", [[0, 0], [0, 0]])
        g.tensor("input", [g.integer(1, 3), h * size, w * size, g.integer(1, 3)])
    else:
        g.put("crops", [[0, 0], [0, 0]])
        g.tensor("input", [size * size * g.integer(1, 2), h, w, g.integer(1, 3)])


def _resize_attrs(g):
    centers = g.chance(.5)
    g.attrs.update(half_pixel_centers=centers,
                   align_corners=not centers and g.chance(.5))


@row("ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea")
def _resize(g):
    g.profile = "plain"
    _resize_attrs(g)
    g.tensor("images", [g.integer(1, 3)] + [g.integer(1, 7) for _ in range(3)])
    g.put("size", [g.integer(1, 9), g.integer(1, 9)])


@row("ResizeBilinearGrad ResizeNearestNeighborGrad ResizeBicubicGrad")
def _resize_grad(g):
    g.profile = "plain"
    _resize_attrs(g)
    batch, depth = g.integer(1, 3), g.integer(1, 4)
    g.tensor("grads", [batch, g.integer(1, 9), g.integer(1, 9), depth])
    size = [g.integer(1, 9), g.integer(1, 9)]
    if "Nearest" in g.op:
        g.put("size", size)
    else:
        g.tensor("original_image", [batch, *size, depth])


@row("CropAndResize")
def _crop(g):
    g.profile = "plain"
    batch = g.integer(1, 3)
    g.tensor("image", [batch, g.integer(2, 7), g.integer(2, 7), g.integer(1, 3)])
    boxes = g.integer(1, 4)
    g.tensor("boxes", [boxes, 4], -.2, 1.2)
    g.tensor("box_ind", [boxes], 0, batch - 1)
    g.put("crop_size", [g.integer(1, 6), g.integer(1, 6)])


@row("RGBToHSV HSVToRGB AdjustContrastv2 AdjustHue AdjustSaturation")
def _colors(g):
    images = next(arg.name for arg in g.definition.input_arg)
    g.tensor(images, [g.integer(1, 3), g.integer(1, 5), g.integer(1, 5), 3], 0, 1)
    for arg in list(g.definition.input_arg)[1:]:
        g.tensor(arg.name, [], .1, .9)


@row("ImageProjectiveTransformV2 ImageProjectiveTransformV3")
def _project(g):
    batch = g.integer(1, 3)
    g.tensor("images", [batch, g.integer(2, 6), g.integer(2, 6), g.integer(1, 3)],
             -3 if np.dtype(g.dtype("images")).kind != "u" else 0, 9)
    # Positions away from the middle between two pixels, where rounding decides.
    moves = np.tile([1, 0, .27, 0, 1, -.31, 0, 0], [g.choice([1, batch]), 1])
    g.put("transforms", moves)
    g.put("output_shape", [g.integer(1, 6), g.integer(1, 6)])
    if g.op.endswith("V3"):
        g.put("fill_value", 2)
    g.attrs.update(interpolation=g.choice([b"NEAREST", b"BILINEAR"]), fill_mode=g.choice(
        [b"CONSTANT", b"REFLECT", b"WRAP", b"NEAREST"] if g.op.endswith("V3") else
        [b"CONSTANT", b"REFLECT", b"WRAP"]))


@row("NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
     "NonMaxSuppressionV5")
def _suppress(g):
    count = g.integer(0, 9)
    corners = g.values(g.dtype("boxes"), [count, 2], 0, 1)
    sides = g.values(g.dtype("boxes"), [count, 2], .1, 1)
    g.put("boxes", np.concatenate([corners, corners + sides], -1))
    g.tensor("scores", [count], 0, 1)
    g.put("max_output_size", g.integer(0, 6))
    for name in ("iou_threshold", "score_threshold", "soft_nms_sigma"):
        if any(arg.name == name for arg in g.definition.input_arg):
            g.put(name, 0 if "sigma" in name else .4)
    if g.has("iou_threshold"):
        g.attrs["iou_threshold"] = .4
    g.attrs["pad_to_max_output_size"] = False


