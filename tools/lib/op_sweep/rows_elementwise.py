# SPDX-License-Identifier: Apache-2.0
"""Arguments of element-wise ops, conversions, reductions and scans."""

import numpy as np
from tensorflow.python.framework import dtypes

from op_sweep.rows import row


@row("Add AddV2 Sub Mul MulNoNan Div RealDiv DivNoNan TruncateDiv FloorDiv FloorMod Mod "
     "TruncateMod Maximum Minimum SquaredDifference Atan2 Xdivy Xlogy Xlog1py Equal "
     "NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr BitwiseAnd "
     "BitwiseOr BitwiseXor SelectV2 NextAfter Complex Zeta Polygamma Igamma "
     "Igammac IgammaGradA RandomGammaGrad")
def _broadcast(g):
    if g.op == "Polygamma":
        g.finite()
    shape = g.shape()
    names = [arg.name for arg in g.definition.input_arg]
    whole = g.integer(0, len(names) - 1)
    for i, name in enumerate(names):
        g.tensor(name, shape if i == whole else g.broadcast(shape))
        if g.op == "Polygamma" and name == "a":
            g.put("a", np.abs(np.nan_to_num(g.args["a"], posinf=3, neginf=0) % 5 // 1))


@row("Pow")
def _pow(g):
    shape = g.shape()
    g.tensor("x", g.broadcast(shape))
    is_integer = np.dtype(g.dtype("y")).kind in "iu"
    g.tensor("y", shape, *((0, 4) if is_integer else ()))


@row("SigmoidGrad")
def _sigmoid_grad(g):
    # Of other values, TensorFlow's CPU computes the last ones in another order.
    y = g.tensor("y", g.shape(), 0, 1)
    g.tensor("dy", y.shape)


@row("InvGrad ReciprocalGrad")
def _reciprocal_grad(g):
    # TensorFlow's CPU flushes a denormal dy to 0, whose product is 0 whatever y is.
    g.has_double = False
    y = g.tensor("y", g.shape())
    g.tensor("dy", y.shape)


@row("LeftShift RightShift")
def _shift(g):
    shape = g.shape()
    g.tensor("x", g.broadcast(shape))
    g.tensor("y", shape, 0, 8 * np.dtype(g.dtype("y")).itemsize - 1)


@row("ClipByValue")
def _clip(g):
    shape = g.shape()
    g.tensor("t", shape)
    for name in ("clip_value_min", "clip_value_max"):
        g.tensor(name, shape if g.chance(.3) else [])


@row("Betainc")
def _betainc(g):
    shape = g.shape()
    for name in ("a", "b"):
        g.tensor(name, shape if g.chance(.7) else [], .1, 5)
    g.tensor("x", shape, 0, 1)


@row("Cast")
def _cast(g):
    source, target = (dtypes.as_dtype(g.types[name]) for name in ("SrcT", "DstT"))
    shape = g.shape()
    if (source.is_floating or source.is_complex) and target.is_integer:
        # What a number out of range becomes is undefined.
        real = source.real_dtype
        low = max(float(target.min), float(real.min), -2.0**31)
        high = min(float(target.max), float(real.max), 2.0**31 - 200)
        small = g.chance(.5)
        g.tensor("x", shape, max(low, -9) if small else low / 2,
                 9 if small else high / 2)
    else:
        g.tensor("x", shape)


@row("Bitcast")
def _bitcast(g):
    source, target = (dtypes.as_dtype(g.types[name]).size for name in ("T", "type"))
    shape = g.shape(high=6)
    g.tensor("input", shape + [target // source] if target > source else shape,
             profile="plain")


@row("Fill")
def _fill(g):
    g.tensor("value", [])
    g.put("dims", g.shape())


@row("Range")
def _range(g):
    start, count = g.integer(-9, 9), g.integer(0, 30)
    unsigned = np.dtype(g.dtype("start")).kind == "u"
    step = 1 if unsigned else g.choice([1, 2, -1, -3])
    start = 0 if unsigned else start
    scale = g.choice([1, .5, .125]) if np.dtype(g.dtype("start")).kind not in "iu" else 1
    g.put("start", start * scale)
    g.put("limit", (start + step * count) * scale)
    g.put("delta", step * scale)


@row("LinSpace")
def _lin_space(g):
    g.tensor("start", [], -9, 9)
    g.tensor("stop", [], -9, 9)
    g.put("num", g.integer(1, 40))


@row("AccumulateNV2")
def _accumulate(g):
    shape = g.shape()
    g.attrs["shape"] = shape
    g.attrs["N"] = g.integer(1, 5)
    g.args["inputs"] = [g.values(g.dtype("inputs"), shape) for _ in range(g.attrs["N"])]


@row("ApproximateEqual")
def _approximate(g):
    x = g.tensor("x", g.shape(), profile="plain")
    g.put("y", x + g.values(g.dtype("y"), x.shape, -2e-5, 2e-5)
          if x.dtype.kind == "f" else x)


@row("Bucketize")
def _bucketize(g):
    g.tensor("input", g.shape())
    g.attrs["boundaries"] = sorted(float(g.integer(-9, 9)) for _ in range(g.integer(0, 9)))


@row("CheckNumerics CheckNumericsV2")
def _check_numerics(g):
    g.tensor("tensor", g.shape(), profile="plain" if g.chance(.7) else "special")
    g.attrs["message"] = b"checked"


@row("Sum Prod Max Min Mean EuclideanNorm All Any")
def _reduce(g):
    shape = g.shape()
    # A product of some elements may be denormal, or infinite, which later ones show.
    g.tensor("input", shape, profile=(
        "plain" if g.op == "Prod" and g.profile == "special" else None))
    count = g.integer(0, len(shape))
    axes = [d - (len(shape) if g.chance(.3) else 0)
            for d in g.permutation(len(shape))[:count]]
    g.put("reduction_indices", axes[0] if len(axes) == 1 and g.chance(.5) else axes)


@row("ArgMax ArgMin")
def _arg(g):
    shape = g.shape(low=1, high=5, empty=False)
    x = g.tensor("input", shape)
    if x.dtype.kind not in "iub":
        g.put("input", np.nan_to_num(x.astype("float64") if x.dtype.kind != "c" else x))
    g.put("dimension", g.axis(len(shape)))


@row("Cumsum Cumprod CumulativeLogsumexp")
def _scan(g):
    if g.op == "CumulativeLogsumexp":
        g.finite()
    shape = g.shape(low=1)
    g.tensor("x", shape, profile=(
        # A denormal product of some elements has lost digits that later ones show.
        "plain" if g.op == "Cumprod" and g.profile == "special" else None))
    g.put("axis", g.axis(len(shape)))


@row("TopK TopKV2")
def _top_k(g):
    shape = g.shape(low=1, high=4)
    g.tensor("input", shape, profile="ties" if g.profile == "special" else None)
    k = g.integer(0, shape[-1])
    if g.op == "TopK":
        g.attrs["k"] = k
    else:
        g.put("k", k)
    g.attrs["sorted"] = True


@row("ApproxTopK")
def _approx_top_k(g):
    shape = g.shape(low=1, high=4)
    g.tensor("input", shape, profile="ties" if g.profile == "special" else None)
    # TensorFlow's CPU finds only the largest along the last dimension.
    g.attrs.update(k=g.integer(0, shape[-1]), reduction_dimension=-1, is_max_k=True,
                   recall_target=1.0, aggregate_to_topk=True)


@row("NthElement")
def _nth(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("input", shape, profile="ties")
    g.put("n", g.integer(0, shape[-1] - 1))


@row("InTopK InTopKV2")
def _in_top_k(g):
    rows, classes = g.integer(0, 9), g.integer(1, 9)
    g.tensor("predictions", [rows, classes])
    g.tensor("targets", [rows], 0, classes - 1)
    k = g.integer(1, classes)
    if g.op == "InTopK":
        g.attrs["k"] = k
    else:
        g.put("k", k)


@row("Bincount DenseBincount")
def _bincount(g):
    size = g.integer(1, 9)
    name = "arr" if g.op == "Bincount" else "input"
    shape = g.shape(low=1, high=1 if g.op == "Bincount" else 2)
    g.tensor(name, shape, 0, size + 1)
    g.put("size", size)
    g.tensor("weights", shape if g.chance(.5) else [0])


@row("HistogramFixedWidth")
def _histogram(g):
    g.tensor("values", g.shape(), -9, 9)
    g.put("value_range", [-5, 5])
    g.put("nbins", g.integer(1, 9))


@row("Cross")
def _cross(g):
    shape = g.shape(high=4) + [3]
    g.tensor("a", shape)
    g.tensor("b", shape)


@row("QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 "
     "QuantizeAndDequantizeV4")
def _quantize(g):
    g.tensor("input", g.shape(low=1, high=4), -9, 9)
    if g.op != "QuantizeAndDequantize":
        g.put("input_min", -5)
        g.put("input_max", 5)
    if g.op.endswith("V3"):
        g.put("num_bits", 8)
    g.attrs["axis"] = -1


@row("FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient "
     "FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient")
def _fake_quantize(g):
    shape = g.shape(low=1, high=4)
    if "Gradient" in g.op:
        g.tensor("gradients", shape)
    g.tensor("inputs", shape, -9, 9)
    bounds = [shape[-1]] if "Channel" in g.op else []
    g.tensor("min", bounds, -6, -.1)
    g.tensor("max", bounds, .1, 6)
