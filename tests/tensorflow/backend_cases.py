# SPDX-License-Identifier: Apache-2.0
"""Runs ops on a device that tfplug's backend kernels serve, and on the CPU, with
seeded random tensors, for test_backend_ops.py. Functions run in a child process."""

DEVICE = "/device:REFERENCE:0"

# Ops whose inputs must stay in a domain, where other values give results that are
# undefined in TensorFlow.
NONZERO = {"Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod",
           "Reciprocal", "Inv", "RealDiv"}
SHIFTS = {"LeftShift", "RightShift"}
SHAPES = [[], [0], [1], [7], [3, 0, 2], [2, 3], [1, 5, 1], [513], [2, 1, 2, 1, 3],
          [2, 1, 2, 2, 1, 2, 1, 2]]


def registered(device_type="REFERENCE"):
    """Returns [(op, {attribute: [types]}, host arguments)] of the device."""
    from tensorflow.python.framework import kernels
    return [(k.op, {c.name: list(c.allowed_values.list.type)
                    for c in k.constraint}, list(k.host_memory_arg))
            for k in kernels.get_all_registered_kernels().kernel
            if k.device_type == device_type]


def values(random, dtype, shape, op):
    """Returns a tensor's values: ordinary numbers, extremes, NaN and infinity."""
    import numpy as np
    import tensorflow as tf
    kind = dtype.as_numpy_dtype
    if dtype == tf.bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        if op in SHIFTS:
            return random.integers(0, 8 * dtype.size, shape).astype(kind)
        if op == "Pow":
            return random.integers(0, 4, shape).astype(kind)
        x = random.integers(-9 if not dtype.is_unsigned else 0, 9, shape)
        x = np.where(random.random(shape) < .1, dtype.max, x)
        x = np.where(random.random(shape) < .1, dtype.min, x)
        x = x.astype(kind)
        return np.where(x == 0, kind(3), x) if op in NONZERO else x
    x = random.normal(size=shape) * 10.0 ** random.integers(-2, 2, shape)
    if random.random() < .3:
        # No denormal numbers: TensorFlow's CPU kernels replace them by 0 at times.
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1.0])
        with_special = np.where(random.random(shape) < .2, special[
            random.integers(0, len(special), shape)], x)
        # Products and quotients of infinite complex numbers are defined nowhere.
        x = x if dtype.is_complex else with_special
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(kind)


# Ops that TensorFlow computes as a difference, which loses the digits of a small
# result: compared with the absolute error of numbers of the size of 1.
CANCELS = {"Elu", "Selu"}


def units_apart(x, y, op=""):
    """Returns the largest distance of two float arrays, in units in the last place of
    their type; infinity if one has a NaN where the other has none."""
    import numpy as np
    if x.shape != y.shape or x.dtype != y.dtype:
        return float("inf")
    if x.size == 0:
        return 0
    if x.dtype == bool or np.issubdtype(x.dtype, np.integer):
        return 0 if np.array_equal(x, y) else float("inf")
    digits = {"float64": 52, "float32": 23, "float16": 10}.get(x.dtype.name, 7)
    smallest = {"float64": 2.0**-1022, "float32": 2.0**-126,
                "float16": 2.0**-14}.get(x.dtype.name, 2.0**-126)
    if op in CANCELS:
        smallest = 1.0
    x, y = x.astype(np.float64), y.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(y), smallest) * 2.0**-digits
        apart = np.abs(x - y) / unit
    apart = np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))
    return float(apart.max())


def _cpu_types(op):
    """Returns [{attribute: types}] of the op's CPU kernels."""
    from tensorflow.python.framework import kernels
    return [{c.name: set(c.allowed_values.list.type) for c in k.constraint}
            for k in kernels.get_registered_kernels_for_op(op).kernel
            if k.device_type == "CPU"]


def elementwise(seed, runs, ops=()):
    """Returns {"op type": [worst distance, its inputs]} of element-wise ops."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    result = {}
    for op, types, _ in sorted(registered(), key=lambda kernel: kernel[0]):
        definition = op_def_registry.get(op)
        names = [a.name for a in definition.input_arg]
        if op not in BROADCASTS | UNARY or (ops and op not in ops):
            continue
        for number in types.get("T", [tf.bool.as_datatype_enum]):
            dtype = tf.as_dtype(number)
            if not any(number in t.get("T", {number}) for t in _cpu_types(op)):
                continue  # nothing to compare with
            worst = [0, ""]
            for _ in range(runs):
                inputs = _inputs(random, op, names, dtype)
                found = _compare(op, inputs, dtype)
                if isinstance(found, str):
                    worst = [-1, found]
                    break
                if found > worst[0]:
                    worst = [found, str(inputs)[:400]]
            result[f"{op} {dtype.name}"] = worst
    return result


BROADCASTS = {"Add", "AddV2", "Sub", "Mul", "MulNoNan", "Div", "RealDiv", "DivNoNan",
              "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod", "Maximum",
              "Minimum", "SquaredDifference", "Pow", "Atan2", "Xdivy", "Xlogy",
              "Xlog1py", "Equal", "NotEqual", "Less", "LessEqual", "Greater",
              "GreaterEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr",
              "BitwiseXor", "LeftShift", "RightShift", "SelectV2"}


def _inputs(random, op, names, dtype):
    import tensorflow as tf
    shape = SHAPES[random.integers(len(SHAPES))]
    inputs = {}
    for i, name in enumerate(names):
        here = list(shape)
        if op in BROADCASTS:
            here = [1 if random.random() < .3 else size for size in here]
            here = here[random.integers(len(here) + 1):] if i else here
        if op == "ClipByValue" and i:
            here = []
        kind = tf.bool if op == "SelectV2" and i == 0 else dtype
        inputs[name] = values(random, kind, here, op)
    return inputs


# Inputs all have the same shape, except for the bounds of ClipByValue.
UNARY = {"Abs", "Acos", "Acosh", "ApproximateEqual", "Asin", "Asinh", "Atan", "Atanh",
         "Ceil", "ClipByValue", "Cos", "Cosh", "Elu", "EluGrad", "Erf", "Erfc", "Exp",
         "Expm1", "Floor", "Inv", "InvGrad", "Invert", "IsFinite", "IsInf", "IsNan",
         "LeakyRelu", "LeakyReluGrad", "Lgamma", "Log", "Log1p", "LogicalNot", "Neg",
         "OnesLike", "Reciprocal", "ReciprocalGrad", "Relu", "Relu6", "Relu6Grad",
         "ReluGrad", "Rint", "Round", "Rsqrt", "RsqrtGrad", "Selu", "SeluGrad",
         "Sigmoid", "SigmoidGrad", "Sign", "Sin", "Sinh", "Softplus", "SoftplusGrad",
         "Softsign", "SoftsignGrad", "Sqrt", "SqrtGrad", "Square", "Tan", "Tanh",
         "TanhGrad", "ZerosLike"}


def _compare(op, inputs, dtype):
    """Returns the distance between the results, or a text about an error.

    TensorFlow's CPU kernels of half and bfloat16 round after each step; a result that
    agrees with that of the float kernel is right, too.
    """
    import tensorflow as tf
    device, cpu = (_run(op, inputs, place) for place in (DEVICE, CPU))
    if isinstance(cpu, str):
        return 0 if device is cpu else f"{op}: CPU fails with {cpu}"
    if isinstance(device, str):
        return f"{op}: {device}"
    apart = units_apart(device, cpu, op)
    if apart > 1 and dtype in (tf.half, tf.bfloat16):
        wide = {k: v if v.dtype == bool else v.astype("float32")
                for k, v in inputs.items()}
        result = _run(op, wide, CPU)
        if not isinstance(result, str):
            apart = min(apart, units_apart(
                device, result.astype(device.dtype), op))
    return apart


CPU = "/device:CPU:0"


def _run(op, inputs, place, attributes=None):
    """Returns the op's result on a device, a list if there are several, or the name of
    an error."""
    import tensorflow as tf
    with tf.device(place):
        try:
            tensors = {k: v if isinstance(v, (int, list)) else tf.constant(v)
                       for k, v in inputs.items()}
            result = getattr(tf.raw_ops, op)(**tensors, **(attributes or {}))
        except tf.errors.OpError as error:
            return type(error).__name__
    if isinstance(result, (list, tuple)):
        return [x.numpy() for x in result]
    return result.numpy()


# ---- Other ops ------------------------------------------------------------------


class Cases:
    """Random cases of ops that are not element-wise: (op, inputs, attributes)."""

    def __init__(self, seed):
        import numpy as np
        self.random = np.random.default_rng(seed)

    def shape(self, low=0, high=6):
        size = self.random.integers
        return [int(size(1, 5)) for _ in range(size(low, high + 1))]

    def array(self, shape, dtype="float32"):
        import numpy as np
        if np.dtype(dtype).kind in "iu":
            return self.random.integers(0, 9, shape).astype(dtype)
        if np.dtype(dtype).kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        return np.asarray(self.random.normal(size=shape)).astype(dtype)

    def axes(self, rank):
        count = self.random.integers(0, rank + 1)
        chosen = self.random.permutation(rank)[:count]
        return [int(d) - (rank if self.random.random() < .3 else 0) for d in chosen]

    def all(self):
        """Returns a list with a case of each op and type."""
        cases = []
        for name in sorted(n for n in dir(self) if n.startswith("of_")):
            cases += list(getattr(self, name)())
        return cases

    def of_reductions(self):
        import numpy as np
        for op in ("Sum", "Mean", "Prod", "Max", "Min"):
            for dtype in ("float32", "float64", "float16", "int64", "int8", "int32"):
                x = self.array(self.shape(), dtype)
                if self.random.random() < .2 and x.ndim:
                    x = x[:0]
                yield op, {"input": x, "axis": np.array(self.axes(x.ndim), "int32")}, {
                    "keep_dims": bool(self.random.integers(2))}
        for op in ("All", "Any"):
            x = self.array(self.shape(), "bool")
            yield op, {"input": x, "axis": np.array(self.axes(x.ndim), "int32")}, {}
        for op in ("ArgMax", "ArgMin"):
            for dtype in ("float32", "int32", "float16"):
                x = self.array(self.shape(1), dtype)
                yield op, {"input": x, "dimension": np.int32(
                    self.random.integers(-x.ndim, x.ndim))}, {}
        yield "L2Loss", {"t": self.array(self.shape())}, {}

    def of_softmax(self):
        import numpy as np
        n, classes = self.random.integers(1, 9, 2)
        for dtype in ("float32", "float64"):
            x = self.array([n, classes], dtype) * 9
            yield "Softmax", {"logits": x}, {}
            yield "LogSoftmax", {"logits": x}, {}
            labels = np.abs(self.array([n, classes], dtype))
            yield "SoftmaxCrossEntropyWithLogits", {
                "features": x, "labels": labels}, {}
            yield "SparseSoftmaxCrossEntropyWithLogits", {
                "features": x,
                "labels": self.random.integers(0, classes, n).astype("int32")}, {}

    def of_movement(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "int64", "bool", "float16", "int8"):
            x = self.array(self.shape(1, 5), dtype)
            rank = x.ndim
            yield "Transpose", {"x": x, "perm": self.random.permutation(rank)}, {}
            begin = np.array([i(0, n) for n in x.shape])
            size = np.array([i(-1, n - b + 1) for n, b in zip(x.shape, begin)])
            yield "Slice", {"input": x, "begin": begin, "size": size}, {}
            strides = np.array([i(1, 3) * (1 - 2 * i(2)) for _ in x.shape])
            ends = np.array([i(-n - 1, n + 2) for n in x.shape])
            masks = {k: int(i(1 << rank)) for k in ("begin_mask", "end_mask")}
            yield "StridedSlice", {"input": x, "begin": begin, "end": ends,
                                   "strides": strides}, masks
            yield "StridedSlice", {
                "input": x, "begin": begin[:1], "end": begin[:1] + 1,
                "strides": np.array([1])}, {"shrink_axis_mask": 1}
            paddings = i(0, 3, [rank, 2])
            yield "Pad", {"input": x, "paddings": paddings}, {}
            yield "PadV2", {"input": x, "paddings": paddings,
                            "constant_values": self.array([], dtype)}, {}
            for mode, edge in (("REFLECT", 1), ("SYMMETRIC", 0)):
                mirrored = np.minimum(paddings, np.array(x.shape)[:, None] - edge)
                yield "MirrorPad", {"input": x, "paddings": mirrored}, {"mode": mode}
            axis = int(i(-rank, rank))
            yield "ConcatV2", {"values": [x, x, x], "axis": np.int32(axis)}, {}
            yield "Pack", {"values": [x, x]}, {"axis": axis}
            yield "Unpack", {"value": x}, {"num": x.shape[axis], "axis": axis}
            yield "Split", {"axis": np.int32(axis), "value": x}, {
                "num_split": x.shape[axis]}
            yield "SplitV", {"value": x, "size_splits": np.array([1, -1]),
                             "axis": np.int32(axis)}, {"num_split": 2}
            yield "Tile", {"input": x, "multiples": i(0, 3, rank)}, {}
            yield "ReverseV2", {"tensor": x, "axis": np.array(
                sorted({int(d) % rank for d in self.axes(rank)}), "int32")}, {}
            yield "BroadcastTo", {"input": x[:1], "shape": np.array(
                [2, 3] + list(x.shape[1:]))}, {}
            yield "Fill", {"dims": np.array(self.shape(), "int32"),
                           "value": self.array([], dtype)}, {}
            yield "OneHot", {"indices": i(-1, 4, self.shape(0, 3)),
                             "depth": np.int32(3), "on_value": self.array([], dtype),
                             "off_value": self.array([], dtype)}, {
                                 "axis": int(i(-1, 1))}
            yield "Select", {"condition": self.array([x.shape[0]], "bool"), "x": x,
                             "y": x[::-1].copy()}, {}
            matrix = self.array([2, 3, 4], dtype)
            if dtype != "int8":
                yield "MatrixBandPart", {
                    "input": matrix, "num_lower": np.int64(i(-1, 3)),
                    "num_upper": np.int64(i(-1, 3))}, {}

    def of_conversions(self):
        types = ("float32", "float64", "float16", "bool", "int8", "int32", "int64",
                 "uint8", "uint32")
        import numpy as np
        import tensorflow as tf
        for source in types:
            for target in types + ("bfloat16",):
                x = self.array(self.shape(), source)
                # TensorFlow's results out of range depend on the position.
                if np.dtype(source).kind == "f":
                    x = np.minimum(np.abs(x * 30), 120)
                yield "Cast", {"x": x}, {"DstT": tf.as_dtype(target)}
        for dtype in ("float32", "float64", "int64"):
            kind = np.dtype(dtype).type
            yield "Range", {"start": kind(2), "limit": kind(31), "delta": kind(3)}, {}
            yield "AddN", {"inputs": [self.array([3, 2], dtype)] * 3}, {}

    def of_indexing(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "int64", "bool", "float16"):
            x = self.array([4, 3, 5, 2], dtype)
            axis = int(i(-4, 4))
            at = i(0, x.shape[axis], self.shape(0, 3))
            yield "GatherV2", {"params": x, "indices": at, "axis": np.int32(axis)}, {}
            yield "GatherV2", {"params": x, "indices": i(0, 5, [4, 3, 2]),
                               "axis": np.int32(2)}, {"batch_dims": 2}
            depth = int(i(1, 5))
            nd = np.stack([i(0, n, [2, 3]) for n in x.shape[:depth]], -1)
            yield "GatherNd", {"params": x, "indices": nd}, {}
            if dtype == "bool":
                continue
            updates = self.array([2, 3] + list(x.shape[depth:]), dtype)
            yield "ScatterNd", {"indices": nd, "updates": updates,
                                "shape": np.array(x.shape)}, {}
            for op in ("Add", "Sub", "Max", "Min", "Update"):
                if dtype == "float16" and op != "Update":
                    continue  # the CPU rounds after each addition
                yield "TensorScatter" + op, {"tensor": x, "indices": nd,
                                             "updates": updates}, {}
            for op in ("Sum", "Prod", "Max", "Min"):
                yield "UnsortedSegment" + op, {
                    "data": x, "segment_ids": i(-1, 3, [4, 3]),
                    "num_segments": np.int32(3)}, {}
            for op in ("Cumsum", "Cumprod"):
                yield op, {"x": x, "axis": np.int32(axis)}, {
                    "exclusive": bool(i(2)), "reverse": bool(i(2))}
            yield "TopKV2", {"input": x, "k": np.int32(2)}, {}

    def of_products(self):
        i = self.random.integers
        for dtype in ("float32", "float64", "int32"):
            m, k, n = (int(x) for x in i(0, 7, 3))
            for a in (False, True):
                for b in (False, True):
                    yield "MatMul", {
                        "a": self.array([k, m] if a else [m, k], dtype),
                        "b": self.array([n, k] if b else [k, n], dtype)}, {
                            "transpose_a": a, "transpose_b": b}
            yield "BatchMatMulV2", {"x": self.array([3, 1, 4, 2], dtype),
                                    "y": self.array([2, 5, 2], dtype)}, {
                                        "adj_y": True}
            if dtype == "int32":
                continue
            x = self.array([2, 3, 4, 5], dtype)
            for order, size in (("NHWC", 5), ("NCHW", 3)):
                yield "BiasAdd", {"value": x, "bias": self.array([size], dtype)}, {
                    "data_format": order}
                yield "BiasAddGrad", {"out_backprop": x}, {"data_format": order}

    def of_convolutions(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "float64", "float16"):
            for padding in ("SAME", "VALID", "EXPLICIT"):
                height, width, depth, outputs = 7, int(i(5, 9)), int(i(1, 4)), 4
                stride, dilation = int(i(1, 4)), int(i(1, 3))
                if padding != "VALID" and dilation > 1:
                    stride = 1
                attributes = {
                    "strides": [1, stride, stride, 1], "padding": padding,
                    "dilations": [1, dilation, dilation, 1]}
                if padding == "EXPLICIT":
                    attributes["explicit_paddings"] = [0, 0, 1, 2, 0, 1, 0, 0]
                x = self.array([2, height, width, depth], dtype)
                filters = self.array([3, 2, depth, outputs], dtype)
                yield "Conv2D", {"input": x, "filter": filters}, attributes
                if padding == "EXPLICIT":
                    extra = [(1, 2), (0, 1)]
                elif padding == "SAME":
                    extra = None
                else:
                    extra = [(0, 0), (0, 0)]
                size = []
                for d, (n, k) in enumerate(((height, 3), (width, 2))):
                    reach = (k - 1) * dilation + 1
                    size.append(-(-n // stride) if extra is None else
                                (n + sum(extra[d]) - reach) // stride + 1)
                dy = self.array([2, *size, outputs], dtype)
                if dilation == 1:
                    yield "Conv2DBackpropInput", {
                        "input_sizes": np.array(x.shape, "int32"), "filter": filters,
                        "out_backprop": dy}, attributes
                    yield "Conv2DBackpropFilter", {
                        "input": x, "filter_sizes": np.array(filters.shape, "int32"),
                        "out_backprop": dy}, attributes
                depthwise = self.array([3, 2, depth, 2], dtype)
                dy = self.array([2, *size, 2 * depth], dtype)
                if dilation == 1:  # the CPU has no other depthwise kernels
                    yield "DepthwiseConv2dNative", {
                        "input": x, "filter": depthwise}, attributes
                    yield "DepthwiseConv2dNativeBackpropInput", {
                        "input_sizes": np.array(x.shape, "int32"),
                        "filter": depthwise, "out_backprop": dy}, attributes
                    yield "DepthwiseConv2dNativeBackpropFilter", {
                        "input": x, "out_backprop": dy, "filter_sizes": np.array(
                            depthwise.shape, "int32")}, attributes
            x = self.array([1, 4, 5, 6, 2], dtype)
            filters = self.array([2, 3, 2, 2, 3], dtype)
            attributes = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
            if dtype != "float16":
                yield "Conv3D", {"input": x, "filter": filters}, attributes
                dy = self.array([1, 4, 3, 6, 3], dtype)
                yield "Conv3DBackpropInputV2", {
                    "input_sizes": np.array(x.shape, "int32"), "filter": filters,
                    "out_backprop": dy}, attributes
                yield "Conv3DBackpropFilterV2", {
                    "input": x, "filter_sizes": np.array(filters.shape, "int32"),
                    "out_backprop": dy}, attributes

    def of_pooling(self):
        import numpy as np
        i = self.random.integers
        for dtype in ("float32", "float64", "float16"):
            for padding in ("SAME", "VALID"):
                x = self.array([2, 6, 7, 3], dtype)
                k, stride = int(i(1, 4)), int(i(1, 4))
                attributes = {"ksize": [1, k, 2, 1], "strides": [1, stride, 2, 1],
                              "padding": padding}
                yield "MaxPool", {"input": x}, attributes
                yield "AvgPool", {"value": x}, attributes
                y = _run("MaxPool", {"input": x}, CPU, attributes)
                dy = self.array(y.shape, dtype)
                yield "MaxPoolGrad", {"orig_input": x, "orig_output": y,
                                      "grad": dy}, attributes
                yield "AvgPoolGrad", {
                    "orig_input_shape": np.array(x.shape, "int32"),
                    "grad": dy}, attributes
                if dtype == "float16":
                    continue
                x = self.array([1, 4, 5, 6, 2], "float32")
                attributes = {"ksize": [1, 2, k, 2, 1],
                              "strides": [1, 1, stride, 2, 1], "padding": padding}
                yield "MaxPool3D", {"input": x}, attributes
                yield "AvgPool3D", {"input": x}, attributes
                y = _run("MaxPool3D", {"input": x}, CPU, attributes)
                dy = self.array(y.shape, "float32")
                yield "MaxPool3DGrad", {"orig_input": x, "orig_output": y,
                                        "grad": dy}, attributes
                yield "AvgPool3DGrad", {
                    "orig_input_shape": np.array(x.shape, "int32"),
                    "grad": dy}, attributes

    def of_batch_norm(self):
        import numpy as np
        for dtype in ("float32", "float16"):
            for training in (False, True):
                x = self.array([3, 4, 2, 5], dtype)
                vectors = {name: np.abs(self.array([5])) for name in
                           ("scale", "offset", "mean", "variance")}
                yield "FusedBatchNormV3", {"x": x, **vectors}, {
                    "is_training": training, "exponential_avg_factor": .75
                    if training else 1.0}
                yield "FusedBatchNormGradV3", {
                    "y_backprop": self.array(x.shape, dtype), "x": x,
                    "scale": vectors["scale"], "reserve_space_1": vectors["mean"],
                    "reserve_space_2": vectors["variance"],
                    "reserve_space_3": np.float32(0)}, {"is_training": training}

    def of_random(self):
        import numpy as np
        import tensorflow as tf
        seed = self.random.integers(0, 1 << 40, 2)
        key, counter = _run("StatelessRandomGetKeyCounter", {"seed": seed}, CPU)
        yield "StatelessRandomGetKeyCounter", {"seed": seed}, {}
        for size in (1, 8, 1003):
            shape = np.array([size], "int32")
            v2 = {"shape": shape, "key": key, "counter": counter, "alg": np.int32(1)}
            for op in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
                for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
                    yield f"Stateless{op}V2", v2, {"dtype": dtype}
                    yield f"Stateless{op}", {"shape": shape, "seed": seed}, {
                        "dtype": dtype}
            for dtype in (tf.int32, tf.int64):
                kind = dtype.as_numpy_dtype
                bounds = {"minval": kind(-3), "maxval": kind(1000)}
                yield "StatelessRandomUniformFullIntV2", v2, {"dtype": dtype}
                yield "StatelessRandomUniformIntV2", {**v2, **bounds}, {}
                yield "StatelessRandomUniformInt", {
                    "shape": shape, "seed": seed, **bounds}, {}
                yield "RandomUniformInt", {"shape": shape, **bounds}, {
                    "seed": 3, "seed2": 4}
            for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
                yield op, {"shape": shape}, {"dtype": tf.float32, "seed": 3,
                                             "seed2": 5}


def largest_difference(device, cpu):
    """Returns the largest difference of two results, in units of the precision of
    their type at the size of the CPU's largest element; infinity for integers."""
    import numpy as np
    if isinstance(cpu, list):
        return max(largest_difference(a, b) for a, b in zip(device, cpu, strict=True))
    if device.shape != cpu.shape or device.dtype != cpu.dtype:
        return float("inf")
    if cpu.size == 0:
        return 0
    if cpu.dtype.kind in "iub":
        return 0 if np.array_equal(device, cpu) else float("inf")
    digits = {"float64": 52, "float32": 23, "float16": 10}.get(cpu.dtype.name, 7)
    a, b = device.astype("float64"), cpu.astype("float64")
    if np.array_equal(a, b, equal_nan=True):
        return 0
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        scale = max(np.abs(b[finite]).max(), 2.0**-126)
        return float(np.abs(a - b)[finite].max() / (scale * 2.0**-digits))


def others(seed, ops=()):
    """Returns {"op #": [difference, case]} of random cases of other ops."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    result = {}
    for number, (op, inputs, attributes) in enumerate(Cases(seed).all()):
        if ops and op not in ops:
            continue
        cpu = _run(op, inputs, CPU, attributes)
        device = _run(op, inputs, DEVICE, attributes)
        if isinstance(cpu, str) or isinstance(device, str):
            same = isinstance(cpu, str) and isinstance(device, str) and cpu == device
            found = 0 if same else -1
        else:
            if op.startswith("FusedBatchNorm"):
                # The others serve the gradient, in a form that depends on the CPU's
                # library.
                used = 5 if attributes["is_training"] and "Grad" not in op else 3
                device, cpu = device[:used], cpu[:used]
            found = largest_difference(device, cpu)
        shapes = {k: (str(v.dtype), v.shape) if hasattr(v, "dtype") else len(v)
                  for k, v in inputs.items()}
        result[f"{op} {number}"] = [found, f"{shapes} {attributes}"] + (
            [f"device: {device}"[:200], f"CPU: {cpu}"[:200]] if found else [])
    return result
