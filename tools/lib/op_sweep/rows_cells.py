# SPDX-License-Identifier: Apache-2.0
"""Arguments of recurrent cells, generators' states, and other ops with many arguments."""

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


@row("StatelessRandomBinomial")
def _binomial(g):
    batch = g.shape(high=2, empty=False)
    g.put("shape", [*g.shape(high=2), *batch])
    g.tensor("seed", [2], 0, 2**31 - 1)
    for name, high in (("counts", 99), ("probs", 1)):
        g.tensor(name, g.broadcast(batch), 0, high, profile="plain")
    g.put("counts", np.floor(g.args["counts"].astype("float64")))


@row("ParameterizedTruncatedNormal")
def _truncated(g):
    g.put("shape", [1000])
    g.put_all(means=0, stdevs=1, minvals=-1, maxvals=2)


@row("RandomGamma RandomPoisson RandomPoissonV2")
def _random_rates(g):
    g.put("shape", [1000])
    g.put("alpha" if g.op == "RandomGamma" else "rate", 2)


@row("CudnnRNN CudnnRNNV2 CudnnRNNV3 CudnnRNNBackprop CudnnRNNBackpropV2 "
     "CudnnRNNBackpropV3")
def _cudnn_rnn(g):
    time, batch, inputs, units = (g.integer(1, 4) for _ in range(4))
    mode = g.choice(["lstm", "gru", "rnn_tanh", "rnn_relu"])
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    stored = 4 if gates > 1 else 0
    state, output = [1, batch, units], [time, batch, units]
    cell = state if mode == "lstm" else []
    reserve = ((time + 1) * (1 + (mode == "lstm")) + time * stored) * batch * units
    _shapes(g, input=[time, batch, inputs], input_h=state, input_c=cell,
            params=[gates * units * (inputs + units + 2)], output=output,
            output_h=state, output_c=cell, output_backprop=output,
            output_h_backprop=state, output_c_backprop=cell, reserve_space=[reserve],
            host_reserved=[0])
    if g.op.endswith("V3"):
        g.put("sequence_lengths", [g.integer(0, time) for _ in range(batch)])
    g.attrs.update(rnn_mode=mode.encode(), input_mode=b"linear_input", dropout=0.0,
                   direction=b"unidirectional")
    g.attrs.update((name, value) for name, value in
                   {"is_training": True, "num_proj": 0, "time_major": True}.items()
                   if g.has(name))
