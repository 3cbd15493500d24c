# SPDX-License-Identifier: Apache-2.0
"""Arguments of convolutions, pooling and other ops with windows."""

import numpy as np

from op_sweep.rows import row
from op_sweep.rows_nn import fuse


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
    g.finite()
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
    g.finite()
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
        fuse(g, y[-1])
        if g.has("filter_format"):
            g.attrs["filter_format"] = b"HWIO"


@row("MaxPool MaxPoolV2 AvgPool MaxPool3D AvgPool3D MaxPoolGrad MaxPoolGradV2 AvgPoolGrad "
     "MaxPool3DGrad AvgPool3DGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad "
     "MaxPoolWithArgmax MaxPoolGradWithArgmax MaxPoolGradGradWithArgmax")
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
        g.tensor("grad", shape if "GradGrad" in g.op else out)


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
