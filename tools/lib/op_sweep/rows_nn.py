# SPDX-License-Identifier: Apache-2.0
"""Arguments of matrix products, normalization, losses."""

import numpy as np

from op_sweep.rows import row


@row("MatMul _FusedMatMul SparseMatMul")
def _matmul(g):
    m, k, n = (g.integer(0 if g.chance(.1) else 1, 9 if g.chance(.9) else 70)
               for _ in range(3))
    flip = {name: g.chance(.5) for name in ("transpose_a", "transpose_b")}
    g.attrs.update(flip)
    g.tensor("a", [k, m] if flip["transpose_a"] else [m, k])
    g.tensor("b", [n, k] if flip["transpose_b"] else [k, n])
    if g.op == "_FusedMatMul":
        g.finite()
        fuse(g, n)


def fuse(g, channels):
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


@row("CTCLoss CTCLossV2")
def _ctc(g):
    steps, batch, classes = g.integer(1, 9), g.integer(1, 4), g.integer(2, 6)
    g.tensor("inputs", [steps, batch, classes], -3, 3)
    lengths, indices, labels = [], [], []
    for b in range(batch):
        count = g.integer(1, steps)
        lengths.append(g.integer(count, steps))
        indices += [(b, i) for i in range(count)]
        labels += [g.integer(0, classes - 2) + (g.op == "CTCLossV2")  # after the blank
                   for _ in range(count)]
    g.put("labels_indices", np.array(indices).reshape(-1, 2))
    g.put("labels_values", labels)
    g.put("sequence_length", lengths)
