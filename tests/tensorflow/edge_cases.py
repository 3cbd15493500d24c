# SPDX-License-Identifier: Apache-2.0
"""Ops with arguments at the edges of what they accept, for test_edges.py: each row is a
function of TensorFlow that returns tensors or fails."""

import numpy as np


def _complex(kind, *values):
    import tensorflow as tf
    return tf.constant([complex(x) for x in values], getattr(tf, kind))


def sizes(tf, raw):
    """Sizes and steps that depend on the type in which they are computed."""
    def span(start, limit, delta, kind):
        return tf.range(*(tf.constant(x, getattr(tf, kind)) for x in (start, limit, delta)))
    rows = {f"range to {end} in {kind}": lambda end=end, kind=kind: span(
        .1, end, .1, kind) for kind in ("float32", "float64")
        for end in (.4, .7, 1.1, 1.3, 2.3, 3.1)}
    rows |= {f"range of {kind}": lambda kind=kind: tf.size(span(.1, 1.1, .1, kind))
             for kind in ("float16", "bfloat16")}
    rows |= {
        "range of NaN": lambda: span(float("nan"), 1, 1, "float32"),
        "range to NaN": lambda: span(0, float("nan"), 1, "float32"),
        "range to infinity": lambda: span(0, float("inf"), 1, "float32"),
        "range of all int64": lambda: span(-2**63, 2**63 - 1, 2**62, "int64"),
        "range of too many": lambda: span(-2**63, 2**63 - 1, 1, "int64"),
        "range in the wrong direction": lambda: span(3, 1, 1, "int64"),
        "range without a step": lambda: span(1, 3, 0, "int64"),
        "linspace to infinity": lambda: raw.LinSpace(start=1., stop=np.inf, num=4),
        "linspace from infinity": lambda: raw.LinSpace(start=-np.inf, stop=1., num=4),
        "linspace of nothing": lambda: raw.LinSpace(start=0., stop=1., num=0),
        "random integers of an empty range": lambda: tf.random.uniform(
            [2], 5, 5, tf.int32, seed=1),
        "no random integers of an empty range": lambda: tf.random.uniform(
            [0], 5, 5, tf.int32, seed=1),
        "no stateless integers of an empty range": lambda: tf.random.stateless_uniform(
            [0], [1, 2], 5, 5, tf.int32),
    }
    return rows


def products(tf, raw):
    """Products of sizes that overflow, and attributes beyond 32 bits."""
    def blocks(op, shape, block, edges):
        name = "paddings" if op.startswith("Space") else "crops"
        return getattr(raw, op)(input=tf.ones(shape), block_shape=tf.constant(
            block, tf.int64), **{name: tf.constant(edges, tf.int64)})
    return {f"StridedSlice with {mask} 2^40": lambda mask=mask: raw.StridedSlice(
        input=tf.ones([2, 3]), begin=[0], end=[1], strides=[1], **{mask: 2**40})
        for mask in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                     "shrink_axis_mask")} | {
        "DepthToSpace by 2^40": lambda: raw.DepthToSpace(
            input=tf.ones([1, 1, 1, 4]), block_size=2**40),
        "DepthToSpace by 2^31-1": lambda: raw.DepthToSpace(
            input=tf.ones([1, 1, 1, 4]), block_size=2**31 - 1),
        "SpaceToDepth by 2^40": lambda: raw.SpaceToDepth(
            input=tf.ones([1, 2, 2, 4]), block_size=2**40),
        "SpaceToBatch of 2^62": lambda: blocks("SpaceToBatchND", [4, 0, 4], [2**62], [[0, 0]]),
        "SpaceToBatch of 2^80": lambda: blocks(
            "SpaceToBatchND", [1, 0, 0, 4], [2**40, 2**40], [[0, 0], [0, 0]]),
        "SpaceToBatch of a batch of 2^64": lambda: blocks(
            "SpaceToBatchND", [16, 19, 22], [2**29, 2**31], [[0, 0], [0, 0]]),
        "SpaceToBatch by 0": lambda: blocks("SpaceToBatchND", [1, 4, 4], [0], [[0, 0]]),
        "BatchToSpace of 2^62": lambda: blocks("BatchToSpaceND", [3, 4, 4], [2**62], [[0, 0]]),
        "BatchToSpace without crops": lambda: blocks(
            "BatchToSpaceND", [4, 4, 4], [2], [[9, 0]]),
        "ReverseSequence of 2^32+1": lambda: raw.ReverseSequence(
            input=tf.ones([2, 3]), seq_lengths=[1, 2], seq_dim=2**32 + 1, batch_dim=0),
        "Tile of ten dimensions": lambda: tf.tile(
            tf.reshape(tf.range(8.), [1, 2, 1, 1, 2, 1, 1, 2, 1, 1])[..., :1],
            [2, 1, 2, 2, 2, 2, 2, 3, 2, 2]),
        "Tile of no elements": lambda: tf.tile(tf.ones([2, 3]), [0, 2]),
        "DataFormatDimMap of a letter twice": lambda: raw.DataFormatDimMap(
            x=tf.constant([0]), src_format="NHWC", dst_format="NHHC"),
        "DataFormatDimMap of 8 letters": lambda: raw.DataFormatDimMap(
            x=tf.constant([0]), src_format="12345678", dst_format="87654321"),
        "DataFormatVecPermute without H": lambda: raw.DataFormatVecPermute(
            x=tf.constant([[1, 2], [3, 4]]), src_format="1234", dst_format="4321"),
        "DataFormatVecPermute without D": lambda: raw.DataFormatVecPermute(
            x=tf.constant([1, 2, 3]), src_format="NEHWC", dst_format="NCEHW"),
        "DataFormatVecPermute of other letters": lambda: raw.DataFormatVecPermute(
            x=tf.constant([1, 2]), src_format="XHWC", dst_format="XCWH"),
    }


def numbers(tf, raw):
    """Types and shapes that few kernels have."""
    z = _complex("complex128", 1 + 1j, 2, 3 - 4j)
    matrix = tf.constant([[2 + 1j, 1 + 0j], [0j, 1j]], tf.complex128)
    right = tf.constant([[1 + 0j], [2j]], tf.complex128)
    hermitian = tf.constant([[2 + 0j, 1j], [-1j, 3 + 0j]], tf.complex64)
    small = tf.constant([1.5, 3.14, 1e9, -0.])
    rows = {
        "Conv of two batch dimensions": lambda: raw.Conv(
            input=tf.reshape(tf.range(96.), [2, 3, 2, 4, 2]), filter=tf.ones([1, 2, 2, 3]),
            strides=[1, 1, 2, 1], padding="SAME", batch_dims=2),
        "Conv of no batch dimension": lambda: raw.Conv(
            input=tf.ones([2, 4, 2]), filter=tf.ones([1, 2, 2, 3]),
            strides=[1, 1, 1, 1], padding="VALID", batch_dims=0),
        "gather": lambda: tf.gather(z, [0, 2]),
        "gather of columns": lambda: tf.gather(matrix, [1, 0], axis=1),
        "gather_nd": lambda: tf.gather_nd(z, [[0], [2]]),
        "one_hot": lambda: tf.one_hot([0, 1], 2, z[0], z[1]),
        "diagonals": lambda: tf.linalg.diag([z, z], k=1),
        "reverse_sequence": lambda: tf.reverse_sequence(matrix, [1, 2], seq_axis=1),
        "dynamic_stitch": lambda: tf.dynamic_stitch([[1, 0], [2]], [matrix, matrix[:1]]),
        "dynamic_partition": lambda: tf.dynamic_partition(z, [1, 0, 1], 2)[1],
        "band_part": lambda: tf.linalg.band_part(matrix, 0, -1),
        "select": lambda: raw.Select(condition=[False, True], x=matrix, y=-matrix),
        "cumsum": lambda: tf.cumsum(z, exclusive=True, reverse=True),
        "softplus of halves": lambda: tf.nn.softplus(tf.constant(
            [-4.94, -5.5, -8., 4.97, 5.05, 5.11], tf.float16)),
        "solve": lambda: tf.linalg.solve(matrix, right),
        "solve with the adjoint": lambda: tf.linalg.solve(matrix, right, adjoint=True),
        "inverse": lambda: tf.linalg.inv(matrix),
        "cholesky": lambda: tf.linalg.cholesky(hermitian),
        "FFT of 4 points": lambda: tf.signal.fft(_complex("complex64", 1, 2, 3, 4 + 1j)),
        "IFFT of 4 points": lambda: tf.signal.ifft(_complex("complex64", 1, 2, 3, 4 + 1j)),
        "real FFTs": lambda: [tf.signal.rfft(tf.range(1., n + 1)**.5, [length]) for n, length in (
            (1, 1), (2, 2), (3, 3), (4, 4), (6, 5), (7, 6), (12, 12))],
        "real FFTs of two dimensions": lambda: [tf.signal.rfft2d(
            tf.sin(tf.reshape(tf.range(2. * 5 * 6), [2, 5, 6])), [4, n]) for n in (4, 5, 6)],
        "inverse real FFTs, whose first and middle elements are real": lambda: [
            tf.signal.irfft(tf.complex(tf.range(4.), tf.range(4.) + 1), [n])
            for n in (1, 2, 3, 4, 5, 6)],
        "inverse real FFTs of two dimensions": lambda: [tf.signal.irfft2d(tf.complex(
            tf.sin(tf.reshape(tf.range(20.), [5, 4])), tf.ones([5, 4])), [5, n])
            for n in (5, 6)],
        "FFT of 96 points": lambda: tf.signal.rfft(tf.cos(tf.range(96.)))[:3],
    }
    rows |= {f"{a} times {b}": lambda a=a, b=b: raw.BatchMatMulV3(
        x=tf.constant([[1, 2], [3, 4]], a), y=tf.constant([[100, 99], [98, 97]], b),
        Tout=tf.int32, adj_y=True)
        for a in ("int8", "uint8") for b in ("int8", "uint8")}
    rows |= {f"cast by {kind}": lambda kind=kind: tf.cast(tf.cast(
        small, getattr(tf.dtypes.experimental, kind)), tf.float32)
             for kind in ("float8_e5m2", "float8_e4m3fn")}
    rows |= {f"complex {name}": lambda name=name: getattr(tf.math, name)(z)
             for name in ("log", "log1p", "expm1", "sqrt", "rsqrt", "tan", "tanh", "sigmoid",
                          "asin", "acos", "atan", "asinh", "acosh", "atanh")}
    rows |= {
        "complex powers": lambda: tf.pow(z, z[::-1]),
        "complex squared difference": lambda: tf.math.squared_difference(z, 2 * z),
        "complex xlogy": lambda: tf.math.xlogy(z, 1 - z),
        "complex sparse": lambda: tf.sparse.to_dense(tf.SparseTensor([[1], [2]], z[:2], [4])),
        "complex depth_to_space": lambda: tf.nn.depth_to_space(
            tf.reshape(tf.concat([z, z, z[:2]], 0), [1, 1, 2, 4]), 2)}
    rows |= {f"betainc of {a}": lambda a=a: raw.Betainc(**{
        name: tf.constant(x) for name, x in zip("abx", a)}) for a in (
            (1., 2., [.5, .25]), ([1., 2.], 2., .5), ([1., 2.], [2.], .5),
            ([1., 2.], [2., 3.], .5))}
    return rows


def _bytes(strings):
    """Returns the bytes of all strings of a tensor as an array."""
    return np.frombuffer(b"".join(strings.numpy().ravel()), np.uint8)


def others(tf, raw):
    """Ops that TensorFlow's own GPUs do not have."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops
    sparse = tf.sparse.from_dense([[1., 0, 2], [0, 3, 0]])
    other = tf.sparse.from_dense([[1., 4, -2], [0, 0, 0]])
    image = tf.reshape(tf.range(2 * 5 * 4 * 3.), [2, 5, 4, 3]) % 7
    small = tf.reshape(tf.range(2 * 3 * 6 * 3.), [2, 3, 6, 3]) % 5
    x = tf.constant([.1, .9, 1.7, 3.3, 9., 60.])
    logits = tf.sin(tf.reshape(tf.range(6 * 2 * 4.), [6, 2, 4]))
    cache = tf.reshape(tf.range(24.), [2, 3, 4])

    def ctc(**attrs):
        return raw.CTCLoss(inputs=logits, labels_indices=tf.constant(
            [[0, 0], [0, 1], [1, 0], [1, 1]], tf.int64), labels_values=[0, 0, 2, 1],
            sequence_length=[6, 4], **attrs)

    def changed_by(op):
        """The input of an op that changes it."""
        x = cache + 0
        op(x=x, i=[0, -1], v=tf.ones([2, 3, 4]))
        return x

    def ctc_of_first_blank():
        """On the CPU, which has no CTCLossV2, CTCLoss of rotated classes."""
        call = {"sequence_length": [6, 4], "labels_indices": tf.constant(
            [[0, 0], [0, 1], [1, 0], [1, 1]], tf.int64)}
        if "CPU" not in logits.device:
            return raw.CTCLossV2(inputs=logits, labels_values=[1, 1, 3, 2], **call)
        loss, gradient = raw.CTCLoss(inputs=tf.roll(logits, -1, 2),
                                     labels_values=[0, 0, 2, 1], **call)
        return loss, tf.roll(gradient, 1, 2)
    ragged = tf.RaggedTensor.from_row_splits(tf.RaggedTensor.from_value_rowids(
        tf.reshape(tf.range(12.), [6, 2]), [0, 0, 2, 3, 3, 3], nrows=4), [0, 1, 1, 4])
    rows = {op: lambda op=op: getattr(raw, op)(x=x) for op in (
        "Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence")}
    rows |= {
        "sparse add": lambda: tf.sparse.to_dense(tf.sparse.add(sparse, other)),
        "sparse add above a threshold": lambda: tf.sparse.add(
            sparse, other, threshold=1.).values,
        "sparse softmax": lambda: tf.sparse.softmax(sparse).values,
        "sparse softmax of unordered elements": lambda: tf.sparse.softmax(tf.SparseTensor(
            [[1, 2], [0, 1], [1, -3], [0, 0], [-1, 0]], [1., 2, 3, 5, 7], [2, 3])).values,
        "sparse sum": lambda: tf.sparse.reduce_sum(sparse, 0),
        "sparse sum of all": lambda: tf.sparse.reduce_sum(sparse, keepdims=True),
        "sparse maximum": lambda: tf.sparse.reduce_max(other, 1),
        "sparse sum, sparse": lambda: tf.sparse.reduce_sum(
            sparse, 1, output_is_sparse=True).values,
        "serialize sparse": lambda: _bytes(tf.io.serialize_sparse(sparse)),
        "serialize many sparse": lambda: [
            _bytes(tf.io.serialize_many_sparse(tf.SparseTensor(indices, values, [4, 2, 300])))
            for indices, values in (
                ([[0, 0, 299], [0, 1, 3], [2, 1, 0]], [1., -2., 3.]),
                ([[1, 1, 1], [3, 0, 0]], tf.constant([5, 6], tf.int64)),
                (tf.zeros([0, 3], tf.int64), tf.zeros([0], tf.complex64)))],
        "ragged to tensor": ragged.to_tensor,
        "ragged to tensor of a shape": lambda: ragged.to_tensor(
            [1., 2.], shape=[4, 2, None, 2]),
        "ragged to tensor of a wrong shape": lambda: ragged.to_tensor(shape=[4, 2, None, 3]),
        "ragged to tensor of a wrong default": lambda: ragged.to_tensor([1., 2., 3.]),
        "binomial": lambda: tf.random.stateless_binomial(
            [500, 5], [3, 4], [3., 0., 40., 1000., 9.], [.4, .5, .9, .3, 1.]),
        "binomial without a batch": lambda: tf.random.stateless_binomial(
            [3, 4], [3, 4], [3., 0., 40.], [.4, .5, .9]),
        "update a slice": lambda: gen_xla_ops.xla_dynamic_update_slice(
            input=cache, update=-tf.ones([1, 2, 4]), indices=[1, 0, 0]),
        "update a slice beyond the end": lambda: gen_xla_ops.xla_dynamic_update_slice(
            input=cache, update=-tf.ones([1, 2, 4]), indices=tf.constant([9, 2, -3], tf.int64)),
        "update by too much": lambda: gen_xla_ops.xla_dynamic_update_slice(
            input=cache, update=-tf.ones([3, 2, 4]), indices=[0, 0, 0]),
        "slice beyond the end": lambda: gen_xla_ops.xla_dynamic_slice(
            input=cache, start_indices=[1, 2, -3], size_indices=[1, 2, 4]),
        "update rows": lambda: raw.InplaceUpdate(
            x=cache + 0, i=[1, -1], v=tf.ones([2, 3, 4])),
        "add to rows of an input": lambda: changed_by(raw.InplaceAdd),
        "subtract rows": lambda: raw.InplaceSub(x=cache + 0, i=[-2], v=tf.ones([1, 3, 4])),
        "CTC": ctc,
        "CTC of which the first class is the blank": ctc_of_first_blank,
        "CTC without merging": lambda: ctc(ctc_merge_repeated=False),
        "CTC of collapsed labels": lambda: ctc(preprocess_collapse_repeated=True),
    }
    for kind in ("area", "bicubic"):
        for size in ([5, 4], [3, 7], [9, 2]):
            for aligned in (False, True):
                rows[f"{kind} {size} {aligned}"] = (
                    lambda kind=kind, size=size, aligned=aligned: getattr(
                        raw, f"Resize{kind.title()}")(
                            images=image, size=size, align_corners=aligned))
    for kind in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
                 "keyscubic", "mitchellcubic"):
        for antialias in (False, True):
            arguments = {"scale": [.7, 1.6], "translation": [.4, -.3],
                         "kernel_type": kind, "antialias": antialias}
            rows[f"{kind} {antialias}"] = lambda arguments=arguments: raw.ScaleAndTranslate(
                images=image, size=[3, 6], **arguments)
            rows[f"{kind} {antialias} gradient"] = (
                lambda arguments=arguments: raw.ScaleAndTranslateGrad(
                    grads=small, original_image=image, **arguments))
    rows |= {f"bicubic gradient {half}": lambda half=half: raw.ResizeBicubicGrad(
        grads=small, original_image=image, half_pixel_centers=half) for half in (False, True)}
    return rows


def messages(tf, raw):
    """Mistakes of which TensorFlow's own messages are well known."""
    ones = tf.ones([2, 3])
    return {
        "Pad by less than nothing": lambda: raw.Pad(input=ones, paddings=[[-1, 0], [0, 0]]),
        "Pad of another rank": lambda: raw.Pad(input=ones, paddings=[[0, 1]]),
        "Pad in three columns": lambda: raw.Pad(input=ones, paddings=[[0, 1, 2], [0, 0, 0]]),
        "MirrorPad by too much": lambda: raw.MirrorPad(
            input=ones, paddings=[[2, 0], [0, 0]], mode="REFLECT"),
        "MirrorPad by too much, with the edge": lambda: raw.MirrorPad(
            input=ones, paddings=[[3, 0], [0, 0]], mode="SYMMETRIC"),
        "Split unevenly": lambda: raw.Split(axis=1, value=ones, num_split=2),
        "Split beyond the rank": lambda: raw.Split(axis=2, value=ones, num_split=1),
        "SplitV in other sizes": lambda: raw.SplitV(
            value=ones, size_splits=[1, 1], axis=1, num_split=2),
        "SplitV in two unknown sizes": lambda: raw.SplitV(
            value=ones, size_splits=[-1, -1], axis=1, num_split=2),
        "SplitV in a negative size": lambda: raw.SplitV(
            value=ones, size_splits=[5, -2], axis=1, num_split=2),
        "ScatterNd of other updates": lambda: raw.ScatterNd(
            indices=[[0], [1]], updates=tf.ones([3, 3]), shape=[2, 3]),
        "ScatterNd of other slices": lambda: raw.ScatterNd(
            indices=[[0], [1]], updates=tf.ones([2, 4]), shape=[2, 3]),
        "ScatterNd into nothing": lambda: raw.ScatterNd(
            indices=[[0]], updates=tf.ones([1, 0]), shape=[2, 0]),
        "TensorScatterAdd of other updates": lambda: raw.TensorScatterAdd(
            tensor=ones, indices=[[0], [1]], updates=tf.ones([3, 3])),
        "TensorScatterUpdate of other slices": lambda: raw.TensorScatterUpdate(
            tensor=ones, indices=[[0], [1]], updates=tf.ones([2, 4])),
        "ScatterNdNonAliasingAdd of other updates": lambda: raw.ScatterNdNonAliasingAdd(
            input=ones, indices=[[0], [1]], updates=tf.ones([3, 3])),
        "InplaceUpdate of one row": lambda: raw.InplaceUpdate(x=ones, i=[0], v=tf.ones([3])),
        "InplaceUpdate of other rows": lambda: raw.InplaceUpdate(
            x=ones, i=[0], v=tf.ones([2, 3])),
        "MatrixSetDiag of a scalar": lambda: raw.MatrixSetDiag(input=ones, diagonal=1.),
        "MatrixSetDiag of another length": lambda: raw.MatrixSetDiag(
            input=ones, diagonal=tf.ones([3])),
        "MatrixInverse of zeros": lambda: tf.linalg.inv(tf.zeros([2, 2])),
        "Lu of zeros": lambda: tf.linalg.lu(tf.zeros([2, 2])),
        "MatrixSolve with zeros": lambda: tf.linalg.solve(tf.zeros([2, 2]), tf.ones([2, 1])),
        "Conv3DBackpropFilterV2 of a scalar size": lambda: raw.Conv3DBackpropFilterV2(
            input=tf.ones([2, 2, 2, 2, 1]), filter_sizes=0, strides=[1] * 5,
            out_backprop=tf.ones([2, 2, 2, 2, 1]), padding="VALID"),
        "Transpose of a repeated dimension": lambda: raw.Transpose(x=ones, perm=[1, 1]),
        "HistogramFixedWidth of two sizes": lambda: raw.HistogramFixedWidth(
            values=[1.], value_range=[0., 2.], nbins=[2, 3]),
        "HistogramFixedWidth of a negative size": lambda: raw.HistogramFixedWidth(
            values=[1.], value_range=[0., 2.], nbins=-5),
        "HistogramFixedWidth of three bounds": lambda: raw.HistogramFixedWidth(
            values=[1.], value_range=[0., 1., 2.], nbins=5),
        "Bincount of a negative size": lambda: raw.Bincount(
            arr=[1, 2], size=-1, weights=tf.zeros([0])),
        "Bincount of other weights": lambda: raw.DenseBincount(
            input=[1, 2], size=3, weights=tf.ones([3])),
        "Bincount of rank 3": lambda: raw.DenseBincount(
            input=[[[1]]], size=3, weights=tf.zeros([0])),
        **{f"SerializeManySparse {name}": lambda indices=indices, shape=shape: (
            raw.SerializeManySparse(sparse_indices=indices, sparse_values=[1.] * len(indices),
                                    sparse_shape=shape)) for name, indices, shape in (
            ("of a vector", [[0]], [3]), ("of a row too far", [[3, 0]], [3, 3]),
            ("of a negative size", [[0, 0]], [3, -1]),
            ("in no order", [[1, 0], [0, 0]], [3, 3]), ("repeated", [[1, 0]] * 2, [3, 3]),
            ("of a list of indices", [0, 1], [3, 3]))},
        "SparseToDense of rank 3": lambda: raw.SparseToDense(
            sparse_indices=[[[0]]], output_shape=[2], sparse_values=1., default_value=0.),
        "SparseToDense of another shape": lambda: raw.SparseToDense(
            sparse_indices=[[0, 1]], output_shape=[2], sparse_values=1., default_value=0.),
        "SparseToDense of other values": lambda: raw.SparseToDense(
            sparse_indices=[0, 1], output_shape=[2], sparse_values=[1.], default_value=0.),
        "SparseToDense of two defaults": lambda: raw.SparseToDense(
            sparse_indices=[0], output_shape=[2], sparse_values=1., default_value=[0., 1.]),
        "GatherV2 beyond the rank": lambda: raw.GatherV2(params=[1.], indices=[0], axis=1),
        "QuantizeAndDequantizeV4 beyond the rank": lambda: raw.QuantizeAndDequantizeV4(
            input=[1.], input_min=0., input_max=1., axis=10),
        "Concat of scalars": lambda: raw.ConcatV2(values=[1., 2.], axis=0),
        "MatMul of other sizes": lambda: raw.MatMul(a=ones, b=ones),
        "OneHot of a negative depth": lambda: raw.OneHot(
            indices=[0], depth=-1, on_value=1., off_value=0.),
    }


def memory(tf, raw):
    """Outputs that no memory holds."""
    return {
        "fill 10^12 empty rows": lambda: tf.sparse.fill_empty_rows(
            tf.SparseTensor([[0, 0]], [1.], [10**12, 1]), 0.)[0].values,
        "fill 10^12 empty rows of a ragged tensor": lambda: raw.RaggedFillEmptyRows(
            value_rowids=[0], values=[1.], nrows=10**12, default_value=0.)}


# What the CPU rejects, too, in the groups of which the other rows give values.
REJECTED = {
    "numbers": {"betainc of ([1.0, 2.0], [2.0], 0.5)"},
    "others": {"ragged to tensor of a wrong shape", "ragged to tensor of a wrong default",
               "binomial without a batch", "update by too much"},
    "sizes": {"range of NaN", "range to NaN", "range to infinity", "range of too many",
              "range in the wrong direction", "range without a step", "linspace of nothing",
              "random integers of an empty range"},
}
# Rows of which the results are equal to the last bit.
EXACT = {"FFT of 4 points", "IFFT of 4 points"}

GROUPS = {group.__name__: group for group in (
    sizes, products, numbers, others, messages, memory)}
