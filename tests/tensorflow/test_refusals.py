# SPDX-License-Identifier: Apache-2.0
"""Defaults and refusals that TensorFlow's own tests expect."""

import harness


def _results(device):
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    raw, ones = tf.raw_ops, [1, 1, 1, 1]
    image = tf.reshape(tf.range(60.), [1, 5, 4, 3])
    filters = tf.reshape(tf.range(24.), [2, 2, 3, 2])
    dy = tf.ones([1, 4, 3, 2])
    pixel, pair = tf.ones(ones), tf.ones([1, 1, 1, 2])

    def argmax_gradient(grad, argmax):
        return raw.MaxPoolGradWithArgmax(
            input=pixel, grad=grad, argmax=tf.cast(argmax - 1, tf.int64), ksize=ones,
            strides=ones, padding="VALID")

    def back(sizes, filters=filters, dy=dy):
        return raw.Conv2DBackpropInput(input_sizes=sizes, filter=filters,
                                       out_backprop=dy, strides=ones, padding="VALID")

    def fake_quantize(name, low, high):
        op = getattr(raw, "FakeQuantWithMinMaxVars" + name)
        gradients = {"gradients": image} if "Gradient" in name else {}
        return op(inputs=image, min=low, max=high, **gradients)

    def quantize(version, low, high, axis=-1, **bits):
        return getattr(raw, "QuantizeAndDequantize" + version)(
            input=image, input_min=low, input_max=high, axis=axis, range_given=True,
            **bits)

    def fftnd(axes):
        return raw.FFTND(input=tf.ones([2, 2, 2], tf.complex64), axes=axes,
                         fft_length=[2] * len(axes))

    def sparse_reshape(shape, new):
        return raw.SparseReshape(
            input_indices=[[0, 0], [4, 5]], input_shape=shape, new_shape=new)[0]

    def sparse_to_dense(rows, validate=True):
        return raw.SparseToDense(
            sparse_indices=tf.reshape(tf.constant(rows, tf.int64), [-1, 1]),
            output_shape=tf.constant([5], tf.int64), sparse_values=tf.ones([len(rows)]),
            default_value=0., validate_indices=validate)

    def sparse_split(axis, parts=2):
        return raw.SparseSplit(split_dim=axis, indices=[[0, 0]], values=[1.], shape=[4, 6],
                               num_split=parts)[0][0]

    def sparse_concat(*shapes):
        return raw.SparseConcat(
            indices=[[[0] * len(shape)] for shape in shapes], values=[[1.]] * len(shapes),
            shapes=shapes, concat_dim=1)[0]

    cases = {
        "default dilations": lambda: raw.Conv(
            input=image, filter=filters, strides=ones, padding="VALID"),
        "sizes of the spatial dimensions": lambda: back([5, 4]),
        "no filter": lambda: raw.Conv2D(
            input=image, filter=filters[:0], strides=ones, padding="SAME"),
        "too few sizes": lambda: back([65534, 65534], dy=1.),
        "negative padding": lambda: raw.Conv2D(
            input=image, filter=filters, strides=ones, padding="EXPLICIT",
            explicit_paddings=[0, 0, 0, -1, 0, 0, 0, 0]),
        "batch": lambda: raw.AvgPool(value=image, ksize=ones, strides=[2, 1, 1, 1],
                                     padding="SAME"),
        "padding as large as the window": lambda: raw.MaxPool(
            input=image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
            explicit_paddings=[0, 0, 0, 1, 0, 2, 0, 0]),
        "grad": lambda: argmax_gradient(pair, pixel),
        "argmax": lambda: argmax_gradient(pixel, pair),
        "scalar": lambda: tf.strided_slice(tf.constant(3.), [0], [1]),
        "scalar output": lambda: raw.TensorScatterUpdate(
            tensor=3., indices=[[0]], updates=[.2]),
        "negative shape": lambda: raw.SparseSoftmax(
            sp_indices=[[1, 1]], sp_values=[2.], sp_shape=[-1, 1]),
        "min": lambda: fake_quantize("", [0.], 1.),
        "max of the gradient": lambda: fake_quantize("Gradient", 0., [1.]),
        "min of channels": lambda: fake_quantize("PerChannel", 0., [1.] * 3),
        "max of channels of the gradient": lambda: fake_quantize(
            "PerChannelGradient", [0.] * 3, [1., 2.]),
        "num_bits": lambda: quantize("V3", 0., 1., num_bits=[8]),
        "a vector's scalar": lambda: quantize("V3", [0.], [[1.]], num_bits=8),
        "input_min": lambda: quantize("V2", [0.], 1.),
        "input_min of an axis": lambda: quantize("V3", 0., [1.], axis=0, num_bits=8),
        "input_max of an axis": lambda: quantize("V3", [0.], [1.] * 2, axis=0, num_bits=8),
        "segments of a scalar": lambda: raw.SparseSegmentSum(
            data=1., indices=[0], segment_ids=[0]),
        "order of axes": lambda: fftnd([1, 0, 2]),
        "a gap between axes": lambda: fftnd([0, -1]),
        "last axis": lambda: fftnd([1]),
        "fft_length": lambda: raw.RFFT2D(input=tf.ones([6, 0]), fft_length=[1, -1]),
        "bitcast": lambda: tf.bitcast(tf.cast(pixel, tf.int8), tf.int32),
        "a sparse tensor": lambda: sparse_reshape([5, 6], [3, -1]),
        "repeated indices": lambda: sparse_to_dense([1, 1]),
        "unordered indices": lambda: sparse_to_dense([2, 1]),
        "indices out of range": lambda: sparse_to_dense([1, 10]),
        "indices without validation": lambda: sparse_to_dense([2, 1], False),
        "ordered indices": lambda: sparse_to_dense([0, 4]),
        "no indices": lambda: sparse_to_dense([]),
        "batch_dims": lambda: raw.GatherV2(params=image, indices=0, axis=1, batch_dims=1),
        "batch_dims beyond axis": lambda: raw.GatherV2(
            params=image, indices=[[0]], axis=0, batch_dims=1),
        "an index out of range": lambda: raw.SparseReshape(
            input_indices=[[0], [2**63 - 1]], input_shape=[3], new_shape=[1, 3])[0],
        "two unknown sizes": lambda: sparse_reshape([5, 6], [-1, 2, -1]),
        "a negative size": lambda: sparse_reshape([5, 6], [-5, 6]),
        "no multiple": lambda: sparse_reshape([5, 6], [4, -1]),
        "another number": lambda: sparse_reshape([5, 6], [4, 7]),
        "no known size": lambda: sparse_reshape([5, 6], [0, -1]),
        "empty": lambda: sparse_reshape([0, 6], [0]),
        "too many": lambda: sparse_reshape([2**62, 4], [2**62, 4]),
        "too many for a softmax": lambda: raw.SparseSoftmax(
            sp_indices=[[1, 1]], sp_values=[2.], sp_shape=[2**32, 2**31]),
        "too many for a sum": lambda: raw.SparseReduceSum(
            input_indices=[[1, 2]], input_values=[1], input_shape=[2**32, 2**31],
            reduction_axes=[0]),
        "too few values": lambda: raw.SparseReorder(
            input_indices=[[0, 0]], input_values=[1, 2], input_shape=[3, 3])[0],
        "too few sizes for indices": lambda: raw.SparseReorder(
            input_indices=[[0, 0]], input_values=[1], input_shape=[3])[0],
        "axes of a sparse tensor": lambda: sparse_split([1]),
        "no axis of a sparse tensor": lambda: sparse_split(2),
        "too many parts": lambda: sparse_split(1, 7),
        "other sizes": lambda: sparse_concat([3, 4], [2, 4]),
        "other rank": lambda: sparse_concat([3, 4], [3]),
    }
    results = {}
    for name, case in cases.items():
        with tf.device(device):
            try:
                results[name] = case().numpy().tolist()
            except tf.errors.OpError as error:
                results[name] = type(error).__name__ + ": " + error.message
    return results


WORDS = {
    "no filter": "InvalidArgumentError: {} filter must not have zero elements",
    "too few sizes": "InvalidArgumentError: {} input_sizes input must be 1-dim",
    "negative padding": "InvalidArgumentError: {} All elements of explicit_paddings must "
                        "be nonnegative",
    "batch": "UnimplementedError: {} Pooling is not yet supported on the batch dimension",
    "padding as large as the window": "InvalidArgumentError: {} Right padding 2 needs to "
                                      "be smaller than the window size 2",
    "grad": "InvalidArgumentError: {} Expected grad shape to be [1,1,1,1], but got "
            "[1,1,1,2]",
    "argmax": "InvalidArgumentError: {} Expected argmax shape to be [1,1,1,1], but got "
              "[1,1,1,2]",
    "scalar": "InvalidArgumentError: {} Attempting to slice scalar input.",
    "scalar output": "InvalidArgumentError: {} Output must be at least 1-D",
    "negative shape": "InvalidArgumentError: {} Expected shape dimensions to be "
                      "non-negative, got -1",
    "min": "InvalidArgumentError: {} `min` must be rank 0 but is rank 1",
    "max of the gradient": "InvalidArgumentError: {} `max` must be rank 0 but is rank 1",
    "min of channels": "InvalidArgumentError: {} `min` must be rank 1 but is rank 0",
    "max of channels of the gradient": "InvalidArgumentError: {} max has incorrect size, "
                                       "expected 3 was 2",
    "num_bits": "InvalidArgumentError: {} The `num_bits` tensor should be a scalar.",
    "input_min": "InvalidArgumentError: {} input_min must be a scalar.",
    "input_min of an axis": "InvalidArgumentError: {} Shape must be rank 1 for "
                            "input_min_tensor when the axis is specified",
    "input_max of an axis": "InvalidArgumentError: {} input_max_tensor has incorrect "
                            "size, was 2 expected 1 to match dim 0 of the input",
    "segments of a scalar": "InvalidArgumentError: {} Shape must be at least rank 1",
    "order of axes": "InvalidArgumentError: {} axes must be successive and ascending.",
    "a gap between axes": "InvalidArgumentError: {} axes must be successive and "
                          "ascending.",
    "last axis": "InvalidArgumentError: {} The last axis to perform transform on must be "
                 "-1.",
    "fft_length": "InvalidArgumentError: {} fft_length[1] must >= 0, but got: -1",
    "bitcast": "InvalidArgumentError: {} Cannot bitcast from 6 to 3",
    "repeated indices": "InvalidArgumentError: {} is repeated",
    "unordered indices": "InvalidArgumentError: {} is out of order",
    "indices out of range": "InvalidArgumentError: {} is out of bounds",
    "batch_dims": "InvalidArgumentError: {} Expected batch_dims in the range [0, 0], but got "
                  "1",
    "batch_dims beyond axis": "InvalidArgumentError: {} batch_dims (1) must be less than or "
                              "equal to axis (0).",
    "two unknown sizes": "InvalidArgumentError: {} only one output dimension may be -1, "
                         "not both 0 and 2",
    "a negative size": "InvalidArgumentError: {} size 0 must be non-negative, not -5",
    "no multiple": "InvalidArgumentError: {} Input to reshape is a SparseTensor with 30 "
                   "dense values, but the requested shape requires a multiple of 4",
    "another number": "InvalidArgumentError: {} Input to reshape is a tensor with 30 dense "
                      "values, but the requested shape has 28",
    "no known size": "InvalidArgumentError: {} reshape cannot infer the missing input size "
                     "for an empty tensor unless all specified input sizes are non-zero",
    "empty": "InvalidArgumentError: {} Input tensor has 2 non zero elements but input shape",
    "too many": "InvalidArgumentError: {} [4611686018427387904,4]",
    "too many for a softmax": "InvalidArgumentError: {} [4294967296,2147483648]",
    "too many for a sum": "InvalidArgumentError: {} [4294967296,2147483648]",
    "too few values": "InvalidArgumentError: {} Number of elements in indices (1) and values "
                      "(2) do not match",
    "too few sizes for indices": "InvalidArgumentError: {} Index rank (2) and shape rank (1) "
                                 "do not match",
    "axes of a sparse tensor": "InvalidArgumentError: {} Input axis should be a scalar but "
                               "received shape [1]",
    "no axis of a sparse tensor": "InvalidArgumentError: {} Input axis should be in range "
                                  "[-2, 2)",
    "too many parts": "InvalidArgumentError: {} Input num_split should be between 1 and the "
                      "splitting dimension size (6), got 7",
    "other sizes": "InvalidArgumentError: {} Input shapes must match: expected 3 for "
                   "dimension 0 but got 2 at position 1",
    "other rank": "InvalidArgumentError: {} Ranks of all input tensors must match: expected "
                  "2 but got 1 at position 1",
}


def test_defaults_and_refusals():
    cpu, sim = (harness.run(_results, device) for device in ("CPU", "SIM"))
    assert cpu.ok and sim.ok, (cpu, sim)
    if harness.release() >= (2, 22):  # The CPU refuses it; the device takes it in any release.
        assert "must be a scalar" in cpu.value.pop("a vector's scalar")
        del sim.value["a vector's scalar"]
    for name, result in sim.value.items():
        if name in WORDS:
            kind, words = WORDS[name].split(" {} ")
            assert result.startswith(kind) and words in result, (name, result)
            assert str(cpu.value[name]).startswith(kind), (name, cpu.value[name])
        else:
            assert result == cpu.value[name], (name, result, cpu.value[name])
