# SPDX-License-Identifier: Apache-2.0
"""Test cases for convolutions, pooling and batch normalization. Each function
returns tensors that must be equal on SIM and on the CPU."""

import numpy as np

NASTY = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, -0.0]

# image, filter, strides, padding, dilations
CONVOLUTIONS = [
    ((2, 8, 9, 3), (3, 3, 3, 5), (1, 1), "SAME", (1, 1)),
    ((2, 8, 9, 3), (3, 2, 3, 5), (2, 3), "SAME", (1, 1)),
    ((1, 7, 7, 20), (5, 5, 20, 18), (2, 2), "VALID", (1, 1)),
    ((2, 5, 6, 4), (1, 1, 4, 7), (1, 1), "SAME", (1, 1)),
    ((2, 5, 6, 4), (1, 1, 4, 7), (2, 2), "VALID", (1, 1)),  # stride > filter
    ((1, 9, 9, 2), (2, 2, 2, 3), (3, 4), "VALID", (1, 1)),
    ((1, 11, 12, 3), (3, 3, 3, 4), (1, 1), "SAME", (2, 3)),
    ((1, 11, 12, 3), (3, 3, 3, 4), (1, 1), "VALID", (3, 2)),
    ((1, 6, 6, 3), (3, 3, 3, 4), (2, 1), [1, 2, 0, 3], (1, 1)),
    ((1, 4, 4, 2), (3, 3, 2, 2), (1, 1), [4, 4, 5, 5], (1, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), "VALID", (1, 1)),
    ((1, 2, 2, 3), (5, 5, 3, 2), (1, 1), "SAME", (1, 1)),  # filter > image
    ((1, 2, 2, 3), (3, 3, 3, 2), (1, 1), "VALID", (1, 1)),  # empty output
    ((0, 8, 8, 3), (3, 3, 3, 5), (1, 1), "SAME", (1, 1)),
    ((3, 30, 31, 6), (3, 3, 6, 33), (1, 1), "SAME", (1, 1)),  # several tiles
]
# image depth, filter depth, filters
GROUPS = [(6, 2, 9), (4, 1, 8), (4, 2, 2)]
# image, filter, stride, padding, dilations
DEPTHWISE = [
    ((2, 8, 9, 3), (3, 3, 3, 1), 1, "SAME", (1, 1)),
    ((1, 8, 9, 37), (3, 3, 37, 1), 1, "SAME", (1, 1)),
    ((1, 9, 8, 37), (3, 3, 37, 1), 2, "SAME", (1, 1)),
    ((1, 9, 8, 16), (2, 5, 16, 1), 1, "VALID", (1, 1)),
    ((2, 8, 9, 3), (3, 3, 3, 4), 1, "SAME", (1, 1)),
    ((1, 7, 7, 5), (1, 1, 5, 2), 2, "VALID", (1, 1)),
    ((1, 12, 13, 4), (3, 3, 4, 1), 1, "SAME", (2, 2)),
    ((1, 4, 4, 2), (3, 3, 2, 1), 1, [3, 3, 1, 2], (1, 1)),
    ((1, 1, 1, 1), (3, 3, 1, 1), 1, "SAME", (1, 1)),
    ((0, 4, 4, 2), (3, 3, 2, 1), 1, "SAME", (1, 1)),
    ((2, 4, 5, 2), (0, 2, 2, 1), 1, "VALID", (1, 1)),  # no sum has a term
]
# image, size, strides, padding
POOLS = [
    ((2, 8, 9, 3), (2, 2), (2, 2), "VALID"),
    ((2, 8, 9, 3), (3, 3), (2, 2), "SAME"),
    ((1, 7, 7, 40), (3, 2), (1, 1), "SAME"),
    ((1, 7, 7, 2), (2, 2), (3, 3), "VALID"),  # stride > window
    ((1, 3, 3, 2), (5, 5), (1, 1), "SAME"),
    ((1, 1, 1, 1), (1, 1), (1, 1), "VALID"),
    ((0, 4, 4, 2), (2, 2), (2, 2), "VALID"),
    ((1, 5, 5, 0), (2, 2), (2, 2), "VALID"),
]
NORMALIZED = [(2, 5, 6, 3), (1, 1, 1, 4), (4, 3, 3, 300), (40, 7, 9, 17),
              (0, 3, 3, 2), (2, 3, 4, 5, 6)]
LOGITS = [((4, 10), (4, 10)), ((1, 3), (1, 3)), ((0, 3), (0, 3)),
          ((4, 3), (1, 3)), ((1, 3), (4, 3)), ((4, 1), (4, 3))]


def draw(random, shape, nasty=False):
    values = random.normal(size=shape).astype(np.float32)
    if nasty:
        flat = values.reshape(-1)
        at = random.permutation(flat.size)[:len(NASTY)]
        flat[at] = NASTY[:len(at)]
    return values


def _spread(padding):
    """Returns the attributes for a padding: a name or [top, bottom, left, right]."""
    if isinstance(padding, str):
        return dict(padding=padding)
    return dict(padding="EXPLICIT",
                explicit_paddings=[0, 0, *padding, 0, 0])


def _dilate(tf, x, f, dilations, op):
    """Returns the filter for x's device, and a function that extracts the gradient
    of f from the gradient of that filter. The CPU does not support dilations in all
    ops, so its filter is padded with zeros instead."""
    rows, cols = dilations
    if "SIM" in tf.constant(x).device:
        op["dilations"] = [1, rows, cols, 1]
        return f, lambda df: df
    taps = np.s_[::rows, ::cols]
    sparse = np.zeros(((f.shape[0] - 1) * rows + 1,
                       (f.shape[1] - 1) * cols + 1, *f.shape[2:]), np.float32)
    sparse[taps] = f
    return sparse, lambda df: df[taps]


def _own(tf, own, dy, df):
    """Returns own(df), the gradient of the filter before dilation."""
    if dy.size == 0 and "CPU" in df.device:
        df = tf.zeros(df.shape)  # the CPU leaves it uninitialized
    return own(df)


def convolution(tf, random, image, filters, strides, padding, dilations,
                nasty=False):
    """Returns y and the gradients with respect to image and filter."""
    op = dict(strides=[1, *strides, 1], **_spread(padding))
    x, f = draw(random, image, nasty), draw(random, filters)
    f, own = _dilate(tf, x, f, dilations, op)
    y = tf.raw_ops.Conv2D(input=x, filter=f, **op)
    dy = draw(random, y.shape)
    return [y,
            tf.raw_ops.Conv2DBackpropInput(
                input_sizes=image, filter=f, out_backprop=dy, **op),
            _own(tf, own, dy, tf.raw_ops.Conv2DBackpropFilter(
                input=x, filter_sizes=f.shape, out_backprop=dy, **op))]


def groups(tf, random, depth, filter_depth, count):
    """Like convolution(). The CPU computes each group separately."""
    op = dict(strides=[1, 2, 1, 1], padding="SAME", dilations=[1, 1, 1, 1])
    n = depth // filter_depth
    x, f = draw(random, (2, 6, 7, depth)), draw(random, (3, 3, filter_depth,
                                                         count))
    dy = draw(random, (2, 3, 7, count))

    def run(x, f, dy):
        return [tf.raw_ops.Conv2D(input=x, filter=f, **op),
                tf.raw_ops.Conv2DBackpropInput(
                    input_sizes=x.shape, filter=f, out_backprop=dy, **op),
                tf.raw_ops.Conv2DBackpropFilter(
                    input=x, filter_sizes=f.shape, out_backprop=dy, **op)]

    if "SIM" in tf.constant(x).device:
        return run(x, f, dy)
    parts = map(run, np.split(x, n, 3), np.split(f, n, 3), np.split(dy, n, 3))
    return [tf.concat(list(part), 3) for part in zip(*parts)]


def depthwise(tf, random, image, filters, stride, padding, dilations,
              nasty=False):
    """Like convolution()."""
    op = dict(strides=[1, stride, stride, 1], **_spread(padding))
    x, f = draw(random, image, nasty), draw(random, filters)
    f, own = _dilate(tf, x, f, dilations, op)
    y = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=f, **op)
    dy = draw(random, y.shape)
    return [y,
            tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
                input_sizes=image, filter=f, out_backprop=dy, **op),
            _own(tf, own, dy, tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=f.shape, out_backprop=dy, **op))]


def pool(tf, random, image, size, strides, padding, nasty=False):
    op = dict(ksize=[1, *size, 1], strides=[1, *strides, 1], padding=padding)
    x = np.nan_to_num(draw(random, image, nasty), posinf=np.inf, neginf=-np.inf)
    # Makes several elements of a window equal to the largest one.
    x = np.where(np.abs(x) < 0.7, np.float32(0.5), x)
    largest = tf.raw_ops.MaxPool(input=x, **op)
    average = tf.raw_ops.AvgPool(value=x, **op)
    dy = draw(random, largest.shape)
    return [largest, average,
            tf.raw_ops.AvgPoolGrad(orig_input_shape=image, grad=dy, **op),
            tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=largest, grad=dy,
                                   **op)]


def second_gradient(tf, random, counts_batch, padding):
    """The second gradient of pooling with indices, for which the CPU has no kernel."""
    x, grad = draw(random, (2, 7, 6, 4)), draw(random, (2, 7, 6, 4))
    op = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding=padding)
    if "SIM" not in tf.constant(0.0).device:
        return [tf.raw_ops.MaxPoolGradGrad(
            orig_input=x, orig_output=tf.raw_ops.MaxPool(input=x, **op), grad=grad, **op)]
    op["include_batch_in_index"] = counts_batch
    argmax = tf.raw_ops.MaxPoolWithArgmax(input=x, **op).argmax
    return [tf.raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=grad, argmax=argmax, **op)]


def channels_first(tf, random, kind, dtype):
    """Like the function for the kind of op; only the plug-in's device has the channels
    first and narrow types. (The CPU rounds to them after each step.)"""
    is_sim = "SIM" in tf.constant(0.0).device
    raw = tf.raw_ops
    extent, outside = ((5, 7, 6), (5, 4, 3)) if "volumes" in kind else ((7, 6), (4, 3))
    op = dict(strides=[1, 1, 2, 2, 1][-len(extent) - 2:], padding="SAME")
    if "pool" in kind:
        op["ksize"] = [1, *[3] * len(extent), 1]
    if is_sim:
        op = {key: [v[0], v[-1], *v[1:-1]] if isinstance(v, list) else v
              for key, v in op.items()}
        op["data_format"] = ("CHANNELS_FIRST" if "any" in kind else
                             "NCHW" if len(extent) == 2 else "NCDHW")

    def typed(value):
        value = tf.cast(value, dtype)
        return value if is_sim or dtype == "float64" else tf.cast(value, tf.float32)

    def order(value):
        value = np.moveaxis(value, -1, 1) if is_sim else value
        return typed(np.ascontiguousarray(value))

    def reorder(value):
        rank = len(extent) + 2
        value = tf.transpose(value, [0, *range(2, rank), 1]) if is_sim else value
        return tf.cast(value, tf.float32)

    x, dy = order(draw(random, (2, *extent, 4))), order(draw(random, (2, *outside, 4)))
    if kind == "pool":
        y = raw.MaxPool(input=x, **op)
        both = dict(orig_input=x, orig_output=y, **op)
        results = [y, raw.AvgPool(value=x, **op), raw.MaxPoolV2(input=x, **op),
                   raw.MaxPoolGrad(grad=dy, **both),
                   raw.MaxPoolGradV2(grad=dy, **both),
                   raw.MaxPoolGradGrad(grad=x * 2, **both),
                   raw.MaxPoolGradGradV2(grad=x * 2, **both),
                   raw.AvgPoolGrad(orig_input_shape=x.shape, grad=dy, **op)]
        return [reorder(result) for result in results]
    if kind == "pool of volumes":
        y = raw.MaxPool3D(input=x, **op)
        results = [y, raw.AvgPool3D(input=x, **op),
                   raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=dy, **op),
                   raw.AvgPool3DGrad(orig_input_shape=x.shape, grad=dy, **op)]
        return [reorder(result) for result in results]
    f = typed(draw(random, (*[3] * len(extent), 4, 1 if kind == "depthwise" else 4)))
    if "any" in kind:
        return [reorder(raw.Conv(input=x, filter=f, **op))]
    name, version = {"convolution": ("Conv2D", ""), "depthwise": ("DepthwiseConv2dNative", ""),
                     "convolution of volumes": ("Conv3D", "V2")}[kind]
    results = [
        getattr(raw, name)(input=x, filter=f, **op),
        getattr(raw, f"{name}BackpropInput{version}")(
            input_sizes=x.shape, filter=f, out_backprop=dy, **op)]
    df = getattr(raw, f"{name}BackpropFilter{version}")(
        input=x, filter_sizes=f.shape, out_backprop=dy, **op)
    return [*map(reorder, results), tf.cast(df, tf.float32)]


def batch_norm(tf, random, shape, training, factor, version="V3", nasty=False,
               channels_first=False):
    """With `channels_first`, only the plug-in's device uses NCHW."""
    depth = shape[-1]
    x, dy = draw(random, shape, nasty) + 3, draw(random, shape)
    channels_first &= "SIM" in tf.constant(x).device
    data_format = "NHWC" if len(shape) == 4 else "NDHWC"
    if channels_first:
        data_format = data_format.replace("C", "").replace("N", "NC")
    op = dict(epsilon=1e-3, is_training=training, data_format=data_format)

    def order(value):
        return np.moveaxis(value, -1, 1) if channels_first else value

    def reorder(value):
        axes = [0, *range(2, len(shape)), 1]
        return tf.transpose(value, axes) if channels_first else value

    scale, offset, mean = (draw(random, (depth,)) for _ in range(3))
    variance = np.abs(draw(random, (depth,))) + np.float32(0.5)
    old = [mean, variance]
    if training and factor == 1:
        old = [np.zeros(0, np.float32)] * 2
    more = {} if version == "" else dict(exponential_avg_factor=factor)
    forward = getattr(tf.raw_ops, "FusedBatchNorm" + version)(
        x=order(x), scale=scale, offset=offset, mean=old[0], variance=old[1],
        **op, **more)
    if training and x.size:
        axes = tuple(range(len(shape) - 1))
        mean, variance = x.mean(axes), x.var(axes)
    rest = dict(reserve_space_3=np.zeros(0, np.float32))
    backward = getattr(tf.raw_ops, "FusedBatchNormGrad" + version)(
        y_backprop=order(dy), x=order(x), scale=scale, reserve_space_1=mean,
        reserve_space_2=variance, **op, **(rest if version == "V3" else {}))
    # The other outputs are private to the device; the CPU leaves some unset.
    return [reorder(forward[0]), *forward[1:5 if training and x.size else 3],
            reorder(backward[0]), *backward[1:3]]


ACTIVATIONS = ["Relu", "Relu6", "Elu", "LeakyRelu", "Selu", "Softplus",
               "Softsign"]
FUSED = [["BiasAdd"], ["FusedBatchNorm"], ["FusedBatchNorm", "Relu6"],
         ["BiasAdd", "Relu"], ["BiasAdd", "LeakyRelu"], ["BiasAdd", "Elu"],
         ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"]]
FUSABLE = ["_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul"]


def activation(tf, random, name):
    """Returns y and its gradient. (The raw ops' argument names differ.)"""
    x, dy = draw(random, (3, 700), nasty=True) * 5, draw(random, (3, 700))
    x, dy = tf.constant(x), tf.constant(dy)
    y = {"Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu,
         "Selu": tf.nn.selu, "LeakyRelu": tf.nn.leaky_relu,
         "Softplus": tf.nn.softplus, "Softsign": tf.nn.softsign,
         "Silu": tf.nn.silu}[name]
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = y(x)
    return [result, tape.gradient(result, x, output_gradients=dy)]


def cross_entropy(tf, random, logits, labels):
    y = tf.raw_ops.SoftmaxCrossEntropyWithLogits(
        features=draw(random, logits) * 20, labels=np.abs(draw(random, labels)))
    return list(y)


def pad(tf, random, shape, paddings, value):
    x = draw(random, shape, nasty=True)
    if value is None:
        return [tf.raw_ops.Pad(input=x, paddings=paddings)]
    return [tf.raw_ops.PadV2(input=x, paddings=paddings,
                             constant_values=np.float32(value))]


PADS = [((3, 4), [[1, 2], [0, 3]], None), ((2, 3, 4, 5), [[0, 0], [1, 1],
                                                         [2, 0], [0, 0]], None),
        ((3, 4), [[0, 0], [0, 0]], 7), ((0, 2), [[1, 1], [1, 0]], -1.5),
        ((5,), [[2, 3]], 7)]


def fused(tf, random, op, fused_ops):
    """Runs an op that only graph passes create; the CPU runs the unfused ops."""
    from tensorflow.python.eager import context, execute
    depth = 1 if "Depthwise" in op else 6
    filters = (3, 4, 4, depth) if "Conv" in op else (4, 6)
    channels = 4 if "Depthwise" in op else 6
    x = draw(random, (2, 5, 7, 4) if "Conv" in op else (9, 4))
    f = draw(random, filters) * 3
    args = [draw(random, (channels,)) for _ in range(
        {"BiasAdd": 1, "FusedBatchNorm": 4}.get(fused_ops[0], 0))]
    if len(args) == 4:
        args[3] = np.abs(args[3]) + np.float32(0.5)
    spatial = dict(strides=[1, 2, 2, 1], padding="SAME")
    if "SIM" in tf.constant(x).device:
        attributes = ["T", tf.float32.as_datatype_enum, "num_args", len(args),
                      "fused_ops", [name.encode() for name in fused_ops],
                      "epsilon", 1e-3, "leakyrelu_alpha", 0.3]
        if "Conv" in op:
            attributes += ["strides", spatial["strides"], "padding", b"SAME"]
        if op == "_FusedConv2D":
            attributes += ["TArgs", [tf.float32.as_datatype_enum] * len(args),
                           "num_host_args", 0]
        inputs = [tf.constant(t) for t in (x, f, *args)]
        return execute.execute(op.encode(), 1, inputs=inputs,
                               attrs=tuple(attributes),
                               ctx=context.context())
    y = (tf.raw_ops.MatMul(a=x, b=f) if op == "_FusedMatMul" else
         tf.raw_ops.Conv2D(input=x, filter=f, **spatial)
         if op == "_FusedConv2D" else
         tf.raw_ops.DepthwiseConv2dNative(input=x, filter=f, **spatial))
    if len(args) == 1:
        y += args[0]
    if len(args) == 4:
        y = tf.nn.batch_normalization(y, args[2], args[3], args[1], args[0],
                                      1e-3)
    last = fused_ops[-1]
    return [{"Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu,
             "Tanh": tf.nn.tanh, "Sigmoid": tf.nn.sigmoid,
             "LeakyRelu": lambda v: tf.nn.leaky_relu(v, 0.3)
             }.get(last, tf.identity)(y)]
